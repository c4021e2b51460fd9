/**
 * The program of {@code flink run}: starts the job clicks, in the Flink of the playground.
 *
 * <p>The properties {@code playground.kafka} and {@code playground.home} are set by the command
 * {@code flink} of the playground.
 */
public final class ClicksJob {
    private ClicksJob() {}

    public static void main(String[] args) throws Exception {
        String home = java.nio.file.Paths.get(System.getProperty("playground.home")).toUri().toString();
        PlaygroundJob.clicks(System.getProperty("playground.kafka"), home).execute("clicks");
    }
}
