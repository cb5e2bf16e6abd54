package bettong.hooks;

import org.apache.hadoop.fs.LocalFileSystem;

/** Hadoop's local files with checksums, made without a process for each of them. */
public final class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new RawLocalFiles());
    }
}
