package bettong.hooks;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;

/**
 * Notes what this JVM changes elsewhere than among its temporary files, one file of each folder, for
 * whoever asks what a query keeps in places that nobody looks at.
 */
final class Outside {
    private static final String HOME = System.getProperty("java.io.tmpdir");
    private static final File NOTES = new File(HOME, "bettong-outside.txt");
    private static final Set FOLDERS = new HashSet();

    private Outside() {}

    /** A file is about to change. */
    static synchronized void note(File file) throws IOException {
        String path = file.getAbsolutePath();
        if (path.startsWith(HOME + "/")) {
            return;
        }
        if (!NOTES.exists()) { // who asks has forgotten what was noted
            FOLDERS.clear();
        }
        if (FOLDERS.add(file.getAbsoluteFile().getParent())) {
            FileOutputStream notes = new FileOutputStream(NOTES, true);
            try {
                notes.write((path + "\n").getBytes(StandardCharsets.UTF_8));
            } finally {
                notes.close();
            }
        }
    }
}
