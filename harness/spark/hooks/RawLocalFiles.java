package bettong.hooks;

import java.io.IOException;
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
 * which pyspark does not bring, Hadoop starts a process (chmod) for each file that is made.
 */
public final class RawLocalFiles extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws IOException {
        if (permission.getStickyBit()) { // Java's own permissions have none
            super.setPermission(path, permission);
            return;
        }
        Set allowed = EnumSet.noneOf(PosixFilePermission.class);
        allow(allowed, permission.getUserAction(), PosixFilePermission.OWNER_READ,
            PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_EXECUTE);
        allow(allowed, permission.getGroupAction(), PosixFilePermission.GROUP_READ,
            PosixFilePermission.GROUP_WRITE, PosixFilePermission.GROUP_EXECUTE);
        allow(allowed, permission.getOtherAction(), PosixFilePermission.OTHERS_READ,
            PosixFilePermission.OTHERS_WRITE, PosixFilePermission.OTHERS_EXECUTE);
        Files.setPosixFilePermissions(pathToFile(path).toPath(), allowed);
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
