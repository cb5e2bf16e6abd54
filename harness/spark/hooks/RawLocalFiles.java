package bettong.hooks;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermission;
import java.util.EnumSet;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's own local files, save that permissions are set by Java: without its native library,
 * which pyspark does not bring, Hadoop starts a process (chmod) for each file that is made. What
 * changes a file stays behind the {@link Fence}, and is noted where it is {@link Outside}.
 */
public final class RawLocalFiles extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws IOException {
        Fence.enter();
        try {
            if (permission.getStickyBit()) { // Java's own permissions have none
                super.setPermission(path, permission);
            } else {
                Files.setPosixFilePermissions(pathToFile(path).toPath(), allowed(permission));
            }
        } finally {
            Fence.leave();
        }
    }

    protected OutputStream createOutputStream(Path path, boolean append) throws IOException {
        Fence.enter();
        try {
            Outside.note(pathToFile(path));
            return new FencedOutput(super.createOutputStream(path, append));
        } finally {
            Fence.leave();
        }
    }

    protected OutputStream createOutputStreamWithMode(
        Path path, boolean append, FsPermission permission
    ) throws IOException {
        Fence.enter();
        try {
            Outside.note(pathToFile(path));
            return new FencedOutput(super.createOutputStreamWithMode(path, append, permission));
        } finally {
            Fence.leave();
        }
    }

    protected boolean mkOneDirWithMode(Path path, File file, FsPermission permission)
            throws IOException {
        Fence.enter();
        try {
            if (!file.exists()) { // it is asked for each folder on the way
                Outside.note(file);
            }
            return super.mkOneDirWithMode(path, file, permission);
        } finally {
            Fence.leave();
        }
    }

    public boolean rename(Path source, Path target) throws IOException {
        Fence.enter();
        try {
            Outside.note(pathToFile(target));
            return super.rename(source, target);
        } finally {
            Fence.leave();
        }
    }

    public boolean delete(Path path, boolean recursive) throws IOException {
        Fence.enter();
        try {
            if (pathToFile(path).exists()) {
                Outside.note(pathToFile(path));
            }
            return super.delete(path, recursive);
        } finally {
            Fence.leave();
        }
    }

    public boolean truncate(Path path, long length) throws IOException {
        Fence.enter();
        try {
            Outside.note(pathToFile(path));
            return super.truncate(path, length);
        } finally {
            Fence.leave();
        }
    }

    public void createSymlink(Path target, Path link, boolean createParent) throws IOException {
        Fence.enter();
        try {
            Outside.note(pathToFile(link));
            super.createSymlink(target, link, createParent);
        } finally {
            Fence.leave();
        }
    }

    private static Set allowed(FsPermission permission) {
        Set allowed = EnumSet.noneOf(PosixFilePermission.class);
        allow(allowed, permission.getUserAction(), PosixFilePermission.OWNER_READ,
            PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_EXECUTE);
        allow(allowed, permission.getGroupAction(), PosixFilePermission.GROUP_READ,
            PosixFilePermission.GROUP_WRITE, PosixFilePermission.GROUP_EXECUTE);
        allow(allowed, permission.getOtherAction(), PosixFilePermission.OTHERS_READ,
            PosixFilePermission.OTHERS_WRITE, PosixFilePermission.OTHERS_EXECUTE);
        return allowed;
    }

    private static void allow(
        Set allowed,
        FsAction action,
        PosixFilePermission read,
        PosixFilePermission write,
        PosixFilePermission execute
    ) {
        if (action.implies(FsAction.READ)) {
            allowed.add(read);
        }
        if (action.implies(FsAction.WRITE)) {
            allowed.add(write);
        }
        if (action.implies(FsAction.EXECUTE)) {
            allowed.add(execute);
        }
    }
}
