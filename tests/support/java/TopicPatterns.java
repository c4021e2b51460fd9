import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/**
 * Matches topics with Java patterns. Each line of standard input contains a pattern, a tab, and a
 * topic. The answer shows whether the whole topic matches, as Flink's Kafka source requires, or is
 * "invalid" if the pattern is not valid.
 */
public final class TopicPatterns {
    private TopicPatterns() {}

    public static void main(String[] args) throws Exception {
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", -1);
            try {
                System.out.println(Pattern.compile(parts[0]).matcher(parts[1]).matches());
            } catch (PatternSyntaxException invalid) {
                System.out.println("invalid");
            }
        }
    }
}
