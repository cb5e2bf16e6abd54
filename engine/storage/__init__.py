"""Files that survive a crash: a record log, and the few file operations it stands on."""
