package bettong.hooks;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.UUID;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSession$;
import org.apache.spark.sql.streaming.StateOperatorProgress;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryListener;

/**
 * Tells what a query that somebody else has started is up to: that it has nothing left to do, and
 * what its batches have read and dropped.
 *
 * These steps come when Spark's listener bus has time: they show progress and place no fault.
 */
public final class QueryEvents extends StreamingQueryListener {
    private UUID explained;

    public void onQueryStarted(StreamingQueryListener.QueryStartedEvent event) {
        tell("query.started", null);
    }

    public void onQueryProgress(StreamingQueryListener.QueryProgressEvent event) {
        ObjectNode detail = Conductor.detail();
        detail.put("rows", event.progress().numInputRows());
        StateOperatorProgress[] operators = event.progress().stateOperators();
        long dropped = 0;
        for (int i = 0; i < operators.length; i++) {
            dropped += operators[i].numRowsDroppedByWatermark();
        }
        detail.put("dropped", dropped);
        detail.put("operators", operators.length);
        if (!event.progress().runId().equals(explained)) {
            explained = event.progress().runId();
            detail.put("plan", plan(event.progress().id()));
        }
        tell("query.progress", detail);
    }

    public void onQueryIdle(StreamingQueryListener.QueryIdleEvent event) {
        tell("query.idle", null);
    }

    public void onQueryTerminated(StreamingQueryListener.QueryTerminatedEvent event) {
        ObjectNode detail = Conductor.detail();
        if (event.exception().isDefined()) {
            detail.put("error", (String) event.exception().get());
        }
        tell("query.terminated", detail);
    }

    /** As Spark explains it; empty for a query that is not there any more, or is not told of. */
    private static String plan(UUID id) {
        scala.Option session = SparkSession$.MODULE$.getDefaultSession();
        if (session.isEmpty()) {
            return "";
        }
        StreamingQuery query = ((SparkSession) session.get()).streams().get(id);
        try {
            return query == null ? "" : (String) query.getClass()
                .getMethod("explainInternal", new Class[] {boolean.class})
                .invoke(query, new Object[] {Boolean.TRUE});
        } catch (ReflectiveOperationException e) {
            return "";
        }
    }

    private static void tell(String step, ObjectNode detail) {
        String instrumentation = Conductor.current();
        try {
            Conductor.tell(instrumentation, step, "before", detail);
            Conductor.tell(instrumentation, step, "after", detail);
        } catch (IOException e) {
            // The run is over.
        }
    }
}
