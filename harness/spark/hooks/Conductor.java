package bettong.hooks;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.TaskContext;

/**
 * Tells the conductor of a step and waits for its answer; the Java side of engine/steps.py.
 *
 * What is told to whom is read at each step, so that one JVM serves many runs: first from the
 * local property that Spark carries from the thread that started a query to its tasks, then from
 * what was installed in this JVM, then from the environment.
 */
public final class Conductor {
    /** JSON object: run, node, incarnation, conductor ("host:port" or null), trace (or null). */
    public static final String PROPERTY = "bettong.instrumentation";

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ThreadLocal CONNECTION = new ThreadLocal();
    private static volatile String installed = fromEnvironment();

    private Conductor() {}

    /** The conductor has ended the run: nothing may be done any more. */
    public static final class RunOverException extends IOException {
        public RunOverException(String message) {
            super(message);
        }
    }

    private static final class Connection {
        final String address;
        final Socket socket;
        final OutputStream out;
        final BufferedReader in;

        Connection(String address) throws IOException {
            this.address = address;
            int colon = address.lastIndexOf(':');
            socket = new Socket(
                address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)));
            socket.setTcpNoDelay(true);
            out = socket.getOutputStream();
            in = new BufferedReader(
                new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
        }
    }

    /** What this JVM uses where no local property says otherwise; null turns it off. */
    public static void install(String instrumentation) {
        installed = instrumentation;
    }

    private static String fromEnvironment() {
        String conductor = System.getenv("BETTONG_CONDUCTOR");
        String trace = System.getenv("BETTONG_TRACE");
        if ((conductor == null || conductor.isEmpty()) && (trace == null || trace.isEmpty())) {
            return null;
        }
        ObjectNode value = JSON.createObjectNode();
        value.put("run", or(System.getenv("BETTONG_RUN"), ""));
        value.put("node", or(System.getenv("BETTONG_NODE"), ""));
        value.put("incarnation", Integer.parseInt(or(System.getenv("BETTONG_INCARNATION"), "1")));
        value.put("conductor", or(conductor, null));
        value.put("trace", or(trace, null));
        return value.toString();
    }

    private static String or(String value, String otherwise) {
        return value == null || value.isEmpty() ? otherwise : value;
    }

    /** The instrumentation of the current thread, or null when nothing is told. */
    public static String current() {
        TaskContext task = TaskContext.get();
        if (task != null) {
            String carried = task.getLocalProperty(PROPERTY);
            return carried == null || carried.isEmpty() ? installed : carried;
        }
        scala.Option context = SparkContext$.MODULE$.getActive();
        if (context.isDefined()) {
            String local = ((SparkContext) context.get()).getLocalProperty(PROPERTY);
            if (local != null && !local.isEmpty()) {
                return local;
            }
        }
        return installed;
    }

    /**
     * The instrumentation of the current thread for a file. A thread of a pool has inherited what
     * held when it was made, perhaps for another run: there the run tells that the path names.
     */
    public static String currentFor(String path) {
        String found = current();
        String own = installed;
        boolean pooled = TaskContext.get() == null
            && !Thread.currentThread().getName().startsWith("stream execution thread");
        if (!pooled || own == null || found == null || found.equals(own)) {
            return found;
        }
        try {
            String run = text(JSON.readTree(own), "run", "");
            return !run.isEmpty() && path.contains("/" + run + "/") ? own : found;
        } catch (IOException e) {
            return found;
        }
    }

    /** An empty object for a step's detail. */
    public static ObjectNode detail() {
        return JSON.createObjectNode();
    }

    /**
     * Tell one phase of a step and return when the process may go on.
     *
     * @throws RunOverException when the run is over
     * @throws IOException when a storage fault is injected here
     */
    public static void tell(String instrumentation, String step, String phase, ObjectNode detail)
            throws IOException {
        if (instrumentation == null) {
            return;
        }
        if (Fence.isClosed()) {
            drop();
            throw new RunOverException("step " + step + ": the driver is dead");
        }
        JsonNode who = JSON.readTree(instrumentation);
        ObjectNode event = JSON.createObjectNode();
        event.put("step", step);
        event.put("phase", phase);
        String own = System.getenv("BETTONG_NODE");
        boolean worker = own != null && !own.isEmpty();
        event.put("node", worker ? own : text(who, "node", ""));
        int incarnation = worker
            ? Integer.parseInt(or(System.getenv("BETTONG_INCARNATION"), "1"))
            : number(who, "incarnation", 1);
        if (incarnation != 1) {
            event.put("incarnation", incarnation);
        }
        if (detail != null && detail.size() > 0) {
            event.set("detail", detail);
        }
        String conductor = text(who, "conductor", null);
        String trace = text(who, "trace", null);
        if (conductor != null) {
            ask(conductor, text(who, "run", ""), step, event);
        } else if (trace != null) {
            FileOutputStream file = new FileOutputStream(trace, true);
            try {
                file.write((event.toString() + "\n").getBytes(StandardCharsets.UTF_8));
            } finally {
                file.close();
            }
        }
    }

    private static void ask(String address, String run, String step, ObjectNode event)
            throws IOException {
        ObjectNode request = JSON.createObjectNode();
        request.put("run", run);
        request.put("pid", ProcessHandle.current().pid());
        request.set("event", event);
        JsonNode answer;
        try {
            answer = JSON.readTree(exchange(address, request.toString() + "\n"));
        } catch (IOException e) {
            drop();
            throw new RunOverException(
                "step " + step + ": the conductor does not answer (" + e.getMessage() + ")");
        }
        JsonNode go = (JsonNode) answer.get("go");
        if (go == null || !go.booleanValue()) {
            drop(); // the steps that this thread has begun end here
            throw new RunOverException(
                "step " + step + ": " + text(answer, "error", "the run is over"));
        }
        if (answer.has("errno")) {
            throw new IOException(message(number(answer, "errno", 5)));
        }
    }

    private static String text(JsonNode object, String name, String otherwise) {
        JsonNode value = (JsonNode) object.get(name);
        return value == null || !value.isTextual() ? otherwise : value.textValue();
    }

    private static int number(JsonNode object, String name, int otherwise) {
        JsonNode value = (JsonNode) object.get(name);
        return value == null || !value.isNumber() ? otherwise : value.intValue();
    }

    private static String exchange(String address, String line) throws IOException {
        Connection connection = (Connection) CONNECTION.get();
        if (connection == null || !connection.address.equals(address)) {
            drop();
            connection = new Connection(address);
            CONNECTION.set(connection);
        }
        connection.out.write(line.getBytes(StandardCharsets.UTF_8));
        connection.out.flush();
        String answer = connection.in.readLine();
        if (answer == null) {
            throw new IOException("connection closed");
        }
        return answer;
    }

    private static void drop() {
        Connection connection = (Connection) CONNECTION.get();
        CONNECTION.remove();
        if (connection != null) {
            try {
                connection.socket.close();
            } catch (IOException e) {
                // it was of no use any more
            }
        }
    }

    private static String message(int errno) {
        switch (errno) {
            case 2: return "No such file or directory";
            case 5: return "Input/output error";
            case 13: return "Permission denied";
            case 28: return "No space left on device";
            case 30: return "Read-only file system";
            case 122: return "Disk quota exceeded";
            default: return "I/O error, errno " + errno;
        }
    }
}
