package bettong.hooks;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * Spark's own checkpoint file manager, which takes a step around the rename that makes a file of
 * the checkpoint, or of a file sink's metadata log, visible.
 */
public final class CheckpointFiles extends FileSystemBasedCheckpointFileManager {
    private static final Pattern LOG =
        Pattern.compile(".*/(offsets|commits|_spark_metadata)/(\\d+)(\\.compact)?");
    private static final Pattern SOURCE = Pattern.compile(".*/sources/(\\d+)/(\\d+)(\\.compact)?");
    // A state file's version is the batch that made it, counted from 1.
    private static final Pattern STATE = Pattern.compile(
        ".*/state/(\\d+)/(\\d+)/(?:([^/]+)/)?(\\d+)(?:_[0-9a-f-]+)?\\.(delta|changelog|zip)");
    private static final Pattern STATE_METADATA =
        Pattern.compile(".*/state/(\\d+)/_metadata/(?:[^/]*/)*([a-zA-Z]+)[^/]*");

    public CheckpointFiles(Path path, Configuration configuration) {
        super(path, configuration);
    }

    /** The step of a file, or null for files that are not steps (snapshots, checksums). */
    public static String stepOf(String path) {
        Matcher m = LOG.matcher(path);
        if (m.matches()) {
            return "batch=" + m.group(2) + "/" + m.group(1);
        }
        m = SOURCE.matcher(path);
        if (m.matches()) {
            return "source=" + m.group(1) + "/log=" + m.group(2);
        }
        m = STATE.matcher(path);
        if (m.matches()) {
            String store = m.group(3) == null ? "" : m.group(3) + "/";
            return "batch=" + (Long.parseLong(m.group(4)) - 1) + "/state/op=" + m.group(1)
                + "/p=" + m.group(2) + "/" + store + m.group(5);
        }
        m = STATE_METADATA.matcher(path);
        if (m.matches()) {
            return "state/op=" + m.group(1) + "/metadata";
        }
        return path.endsWith("/metadata") ? "metadata" : null;
    }

    public void renameTempFile(Path source, Path target, boolean overwriteIfPossible) {
        try {
            rename(source, target, overwriteIfPossible);
        } catch (IOException e) {
            // Scala declares no checked exceptions; Spark expects this one.
            CheckpointFiles.<RuntimeException>unchecked(e);
        }
    }

    private void rename(Path source, Path target, boolean overwriteIfPossible) throws IOException {
        String instrumentation = Conductor.currentFor(target.toUri().getPath());
        String step = instrumentation == null ? null : stepOf(target.toUri().getPath());
        if (step == null) {
            super.renameTempFile(source, target, overwriteIfPossible);
            return;
        }
        ObjectNode detail = Conductor.detail();
        detail.put("path", target.toUri().getPath());
        Conductor.tell(instrumentation, step, "before", detail);
        try {
            super.renameTempFile(source, target, overwriteIfPossible);
        } catch (RuntimeException e) {
            detail.put("error", e.toString());
            Conductor.tell(instrumentation, step, "failed", detail);
            throw e;
        }
        Conductor.tell(instrumentation, step, "after", detail);
    }

    private static <E extends Throwable> void unchecked(Throwable error) throws E {
        throw (E) error;
    }
}
