"""The first process of a node's container. Run as a file, needs nothing but the standard library.

The file that its argument names says what to run: ``{"command": [...], "environment": {...},
"hears": BOOL}``. It reaps orphans as process 1 has to, ends with the program's own status, and,
when the program does not hear, ends it as soon as nobody holds the container's standard input any
more: a node outlives nobody.
"""

from __future__ import annotations

import json
import os
import sys
import threading


def hold() -> None:
    """End when standard input does; with process 1 the whole container ends."""
    while os.read(0, 4096):
        pass
    os._exit(1)


def main() -> None:
    """Run the program."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - the less that is imported
        asked = json.load(file)
    child = os.fork()
    if child == 0:
        os.setsid()
        if not asked["hears"]:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        command = asked["command"]
        os.execvpe(command[0], command, asked["environment"])  # noqa: S606
    if not asked["hears"]:
        threading.Thread(target=hold, daemon=True).start()
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
