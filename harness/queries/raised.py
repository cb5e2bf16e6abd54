"""What was raised, in one line, out of what two Pythons and a JVM say who quote each other; and
what to do about it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from bettong.harness.queries.sink.loading import as_written
from bettong.lineage.secrets import masked

DIED_UNHEARD = "exited unexpectedly"
"""What Spark says of a Python worker that is gone: what it died of the worker alone has said."""
JVM_GONE = (
    "the JVM of its Spark ended by itself, as for want of memory or by a crash of its own "
    "(hs_err_pid*.log, dmesg)"
)
_NOBODY_THERE = re.compile(r"connect_to_java_server[\s\S]*ConnectionRefusedError|Py4JNetworkError")
"""What py4j says when nobody listens to it: of the JVM it has no word."""
_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):\n(?P<frames>(?:[ \t].*\n)*)(?P<raised>\S.*)"
)
_FRAME = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+).*\n(?: *(?P<code>\S.*))?')
_SAID = re.compile(
    r"^(?:Caused by: |: )?(?P<raised>(?:[\w.$]+\.)?\w*(?:Error|Exception|Warning|Exit)\b: \S.*)$",
    re.MULTILINE,
)
_MISSING = re.compile(
    r"No module named '(?P<module>[\w.]+)'"
    r"|cannot import name '\w+' from '(?P<package>[\w.]+)' \(unknown location\)"
)
_OF_THE_PIPE = re.compile("BrokenPipeError|ConnectionResetError|EOFError|java.io.EOFException")
_PACKAGES = {"google": "protobuf"}
"""What is not called as the module is that Spark's own Python imports."""


def cause(error: str) -> str:
    """The line of a failed query's error that says most: what was raised first of all."""
    return masked(raised_in(error) or error.strip().partition("\n")[0])


def raised_in(text: str) -> str | None:
    """The last line that names an exception and what it says. An exception of Python's that says
    nothing is named with its place. Where a worker has died unheard, what its peer says of the pipe
    between them is no cause."""
    found = [*_pythons(text), *((m.start(), m["raised"]) for m in _SAID.finditer(text))]
    if DIED_UNHEARD in text:
        found = [each for each in found if not _OF_THE_PIPE.match(each[1])]
    return max(found)[1].strip() if found else None


def _pythons(text: str) -> Iterator[tuple[int, str]]:
    for match in _TRACEBACK.finditer(text):
        raised = match["raised"].strip()
        frames = list(_FRAME.finditer(match["frames"]))
        if re.fullmatch(r"[\w.]+:?", raised) and frames:
            last = frames[-1]
            code = f": {last['code'].strip()}" if last["code"] else ""
            place = f"{Path(last['file']).name}, line {last['line']}"
            raised = f"{raised.rstrip(':')} ({place}{code})"
        yield match.start("raised"), as_written(raised)


def jvm_is_gone(traceback: str) -> bool:
    """Whether Python could not reach the JVM of its Spark."""
    return _NOBODY_THERE.search(traceback) is not None


def remedy(cause: str) -> str:
    """What to do where a query fails by itself, given what was raised."""
    missing = _MISSING.search(cause)
    if missing:
        module = missing["module"] or missing["package"]
        package = _PACKAGES.get(module.partition(".")[0], "")
        by = f": {sys.executable} -m pip install {package}" if package else ""
        return f"install what brings {module} for the Python that Spark uses, {sys.executable}{by}"
    if JVM_GONE in cause:
        return "have less beside it (--one-at-a-time), or give it more memory, and start it again"
    if DIED_UNHEARD in cause:
        return (
            "a Python process of Spark's died without a word, as by os._exit, by a crash of an "
            "extension or for want of memory: have its work done in plain Python to see which"
        )
    return "mend that first: what faults do is seen once it runs to its end without any"
