package bettong.hooks;

import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.catalyst.expressions.CurrentDate;
import org.apache.spark.sql.catalyst.expressions.CurrentTimestampLike;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.LocalTimestamp;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.types.DataTypes;
import scala.Function1;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * SQL's clock set ahead by as many seconds as the property, or else the variable, says, for what a
 * batch's own code asks it. What a streaming query asks is left alone: a replay is given the time
 * of what it replays.
 *
 * Spark finds it as a service, whatever a session's settings say of extensions or of Java.
 */
public final class ClockAhead extends AbstractFunction1
    implements SparkSessionExtensionsProvider {
    public static final String PROPERTY = "bettong.ahead_s";
    public static final String VARIABLE = "BETTONG_AHEAD_S";

    private static final long FROM_START = fromStart();

    private static long fromStart() {
        String seconds = System.getenv(VARIABLE);
        return seconds == null ? 0L : Long.parseLong(seconds);
    }

    public Object apply(Object extensions) {
        ((SparkSessionExtensions) extensions).injectPostHocResolutionRule(
            new AbstractFunction1() {
                public Object apply(Object session) {
                    return new Ahead();
                }
            });
        return BoxedUnit.UNIT;
    }

    private static final class Ahead extends Rule {
        public TreeNode apply(TreeNode given) {
            long seconds = Long.getLong(PROPERTY, FROM_START).longValue();
            LogicalPlan plan = (LogicalPlan) given;
            if (seconds == 0L || plan.isStreaming()) {
                return plan;
            }
            return plan.resolveExpressions(new Later(Instant.now().plusSeconds(seconds)));
        }
    }

    private static final class Later extends AbstractPartialFunction {
        private final Instant now;

        Later(Instant now) {
            this.now = now;
        }

        public boolean isDefinedAt(Object expression) {
            return expression instanceof CurrentDate
                || expression instanceof CurrentTimestampLike
                || expression instanceof LocalTimestamp;
        }

        public Object applyOrElse(Object expression, Function1 otherwise) {
            if (expression instanceof CurrentDate) {
                ZoneId zone = ((CurrentDate) expression).zoneId();
                int day = (int) LocalDate.ofInstant(this.now, zone).toEpochDay();
                return new Literal(Integer.valueOf(day), DataTypes.DateType);
            }
            if (expression instanceof CurrentTimestampLike) {
                long at = DateTimeUtils.instantToMicros(this.now);
                return new Literal(Long.valueOf(at), DataTypes.TimestampType);
            }
            if (expression instanceof LocalTimestamp) {
                ZoneId zone = ((LocalTimestamp) expression).zoneId();
                LocalDateTime local = LocalDateTime.ofInstant(this.now, zone);
                long at = DateTimeUtils.instantToMicros(local.toInstant(ZoneOffset.UTC));
                return new Literal(Long.valueOf(at), DataTypes.TimestampNTZType);
            }
            return otherwise.apply(expression);
        }
    }
}
