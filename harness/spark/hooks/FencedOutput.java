package bettong.hooks;

import java.io.IOException;
import java.io.OutputStream;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.hadoop.fs.Syncable;

/** A file that is being written by a JVM whose driver may die meanwhile. */
final class FencedOutput extends OutputStream implements Syncable, StreamCapabilities {
    private final OutputStream file;

    FencedOutput(OutputStream file) {
        this.file = file;
    }

    public void write(int b) throws IOException {
        Fence.enter();
        try {
            file.write(b);
        } finally {
            Fence.leave();
        }
    }

    public void write(byte[] bytes, int offset, int length) throws IOException {
        Fence.enter();
        try {
            file.write(bytes, offset, length);
        } finally {
            Fence.leave();
        }
    }

    public void flush() throws IOException {
        file.flush();
    }

    /** Closing writes nothing: what is buffered is in the streams around this one. */
    public void close() throws IOException {
        file.close();
    }

    public void hflush() throws IOException {
        ((Syncable) file).hflush();
    }

    public void hsync() throws IOException {
        ((Syncable) file).hsync();
    }

    public boolean hasCapability(String capability) {
        return ((StreamCapabilities) file).hasCapability(capability);
    }
}
