package bettong.hooks;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.Map;
import org.apache.spark.TaskContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;

/**
 * Makes each task attempt of a streaming batch a step, taken in the task's own thread; one of a job
 * that a function of foreachBatch starts in a thread of its own may not say of which batch it is.
 */
public final class TaskAttempts implements SparkPlugin {
    /** Who has started a job beside the thread of a batch. */
    private static final String CONCURRENT = "bettong.concurrent";

    public DriverPlugin driverPlugin() {
        return null;
    }

    public ExecutorPlugin executorPlugin() {
        return new Attempts();
    }

    public static final class Attempts implements ExecutorPlugin {
        private static final long POLL_MS = 20;

        private String executor = "";

        public void init(PluginContext context, Map<String, String> configuration) {
            executor = context.executorID();
        }

        public void onTaskStart() {
            TaskContext task = TaskContext.get();
            if (Fence.isClosed()) {
                untilKilled(task);
                return;
            }
            String batch = task.getLocalProperty("streaming.sql.batchId");
            boolean own = batch != null || task.getLocalProperty(CONCURRENT) != null;
            String instrumentation = own ? Conductor.current() : null;
            if (instrumentation == null) {
                return;
            }
            Attempt attempt = new Attempt(instrumentation, batch, executor, task);
            try {
                Conductor.tell(instrumentation, attempt.step, "before", attempt.detail);
            } catch (Conductor.RunOverException e) {
                untilKilled(task);
                return;
            } catch (IOException e) {
                // Spark swallows what a plugin throws; an interrupted task it kills and retries.
                task.markInterrupted(e.getMessage());
                return;
            }
            // Spark calls listeners last added first: these run after everything the task does.
            task.addTaskCompletionListener((TaskCompletionListener) attempt);
            task.addTaskFailureListener((TaskFailureListener) attempt);
        }

        /**
         * Nothing may be done any more, and nothing that is thrown here would stop the task. A kill
         * that comes before Spark knows the task's thread marks the task and interrupts nobody.
         */
        private static void untilKilled(TaskContext task) {
            try {
                while (!task.isInterrupted()) {
                    Thread.sleep(POLL_MS);
                }
            } catch (InterruptedException e) {
                // Handed on below.
            }
            Thread.currentThread().interrupt();
        }
    }

    static final class Attempt implements TaskCompletionListener, TaskFailureListener {
        final String instrumentation;
        final String step;
        final ObjectNode detail = Conductor.detail();
        private boolean failed = false;

        Attempt(String instrumentation, String batch, String executor, TaskContext task) {
            this.instrumentation = instrumentation;
            String beside = task.getLocalProperty(CONCURRENT);
            step = (batch == null ? "" : "batch=" + batch + "/")
                + (beside == null ? "" : "concurrent/") + "stage=" + task.stageId()
                + "/p=" + task.partitionId() + "/a=" + task.attemptNumber() + "/task";
            if (beside != null) {
                detail.put("concurrent", beside + " started a job of Spark");
            }
            detail.put("task", task.taskAttemptId());
            detail.put("stageAttempt", task.stageAttemptNumber());
            detail.put("executor", executor);
            String query = task.getLocalProperty("sql.streaming.queryId");
            if (query != null) {
                detail.put("query", query);
            }
        }

        public void onTaskFailure(TaskContext task, Throwable error) {
            failed = true;
            detail.put("error", String.valueOf(error));
        }

        public void onTaskCompletion(TaskContext task) {
            try {
                Conductor.tell(instrumentation, step, failed ? "failed" : "after", detail);
            } catch (IOException e) {
                // Thrown here, it fails an attempt whose work is done.
                throw new IllegalStateException(e.getMessage(), e);
            }
        }
    }
}
