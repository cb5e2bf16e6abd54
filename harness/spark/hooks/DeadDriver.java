package bettong.hooks;

import java.util.Iterator;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.execution.streaming.state.StateStore$;
import py4j.Gateway;

/** Makes a JVM whose driver was killed ready for the next one: nothing of the dead one is left. */
public final class DeadDriver {
    private static final long POLL_MS = 2;
    /** Whoever has a frame of these on its stack acts for a driver. */
    private static final String[] ACTING = {
        "bettong.hooks.",
        "org.apache.spark.SparkContext",
        "org.apache.spark.api.python.",
        "org.apache.spark.executor.Executor$TaskRunner",
        "org.apache.spark.sql.",
        "py4j.ClientServerConnection",
        "py4j.GatewayConnection",
    };

    private DeadDriver() {}

    /**
     * Stop the dead driver's Spark context with its queries, tasks and state stores, wait until no
     * thread acts for it, forget the objects that it held, and open the fence.
     *
     * @param gateway what the next driver speaks with, over its only connection
     * @return empty, or which thread of the dead driver still runs after so many milliseconds; the
     *     fence is closed then, and the JVM of no use
     */
    public static String clear(Gateway gateway, long patience) throws InterruptedException {
        scala.Option context = SparkContext$.MODULE$.getActive();
        if (context.isDefined()) {
            ((SparkContext) context.get()).stop();
        }
        StateStore$.MODULE$.stop();
        long end = System.nanoTime() + patience * 1000000L;
        for (String left = interrupted(); !left.isEmpty(); left = interrupted()) {
            if (System.nanoTime() > end) {
                return left;
            }
            Thread.sleep(POLL_MS);
        }
        Iterator names = gateway.getBindings().keySet().iterator();
        while (names.hasNext()) {
            if (((String) names.next()).matches("o\\d+")) {
                names.remove();
            }
        }
        Conductor.install(null);
        Fence.open();
        return "";
    }

    /** Interrupt every thread that acts for the dead driver; one of them, or empty. */
    private static String interrupted() {
        String found = "";
        Iterator threads = Thread.getAllStackTraces().entrySet().iterator();
        while (threads.hasNext()) {
            Map.Entry entry = (Map.Entry) threads.next();
            Thread thread = (Thread) entry.getKey();
            String frame = acting((StackTraceElement[]) entry.getValue());
            // "main" waits for the end of standard input.
            if (frame != null && thread != Thread.currentThread()
                    && !thread.getName().equals("main")) {
                thread.interrupt();
                found = thread.getName() + " in " + frame;
            }
        }
        return found;
    }

    private static String acting(StackTraceElement[] stack) {
        for (int i = 0; i < stack.length; i++) {
            for (int j = 0; j < ACTING.length; j++) {
                if (stack[i].getClassName().startsWith(ACTING[j])) {
                    return stack[i].toString();
                }
            }
        }
        return null;
    }
}
