package bettong.hooks;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.invoke.VarHandle;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;

/**
 * Keeps a JVM whose driver has died from acting on anything durable, until nothing of that driver
 * is left in it.
 *
 * The JVM shares eight bytes with its owner, the file of the system property "bettong.fence". While
 * every thread of the JVM stands still, the owner reads whether one of them is amid an operation on
 * a file (the second integer), and closes the fence (the first one): no operation begins any more.
 */
public final class Fence {
    private static final int CLOSED = 0;
    private static final int OPERATIONS = 4;

    private static final MappedByteBuffer SHARED = shared();
    private static int operations = 0;

    private Fence() {}

    private static MappedByteBuffer shared() {
        String path = System.getProperty("bettong.fence");
        if (path == null) {
            return null;
        }
        try {
            RandomAccessFile file = new RandomAccessFile(new File(path), "rw");
            try {
                return file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 8);
            } finally {
                file.close();
            }
        } catch (IOException e) {
            throw new IllegalStateException("the fence " + path + " cannot be shared", e);
        }
    }

    /** Whether this JVM's driver is dead. */
    public static boolean isClosed() {
        return SHARED != null && SHARED.getInt(CLOSED) != 0;
    }

    /** An operation on a file begins; {@link #leave} must follow. Refused when the driver is dead. */
    public static void enter() throws IOException {
        if (SHARED == null) {
            return;
        }
        synchronized (Fence.class) {
            operations++;
            SHARED.putInt(OPERATIONS, operations);
            VarHandle.fullFence(); // told before the look: the owner closes, then reads
            if (SHARED.getInt(CLOSED) == 0) {
                return;
            }
        }
        leave();
        throw new IOException("the driver is dead");
    }

    /** The operation is over. */
    public static void leave() {
        if (SHARED == null) {
            return;
        }
        synchronized (Fence.class) {
            operations--;
            SHARED.putInt(OPERATIONS, operations);
        }
    }

    /** Nothing of the dead driver is left. */
    static void open() {
        if (SHARED != null) {
            SHARED.putInt(CLOSED, 0);
        }
    }
}
