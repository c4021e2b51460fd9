package testjobs;

import java.util.function.Supplier;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;

/** A DataGeneratorSource, in the Flink versions that have one. */
final class Generator implements Supplier<Source<String, ?, ?>> {
    @Override
    public Source<String, ?, ?> get() {
        return new DataGeneratorSource<>(
                number -> "generated," + number,
                1_000_000,
                RateLimiterStrategy.perSecond(50),
                Types.STRING);
    }
}
