"""What works beside the function of a batch: threads and processes that it has started."""

from __future__ import annotations

from pathlib import Path

import pytest
from probed import BATCH, moments

USERS = """
import os, subprocess, sys, threading
from multiprocessing.pool import ThreadPool
from pathlib import Path

GO_ON = threading.Event()

def past_python(path):
    os.mkfifo(path)

def text(path):
    Path(path).write_text("x")

def come_to_rest(pool):
    [thread] = pool._pool
    while Path(f"/proc/self/task/{thread.native_id}/stat").read_text().split()[2] != "S":
        pass

def shell(script):
    subprocess.run(["sh", "-c", script], check=True)

def each(folder, batch):
    a, b = f"{folder}/a", f"{folder}/b"
    LINES
"""


def beside(
    tmp_path: Path, *lines: str, after: str = "", replace: tuple[str, str] = ("", "")
) -> list[str]:
    """Who has worked beside the function, as its moments tell."""
    (tmp_path / "aim").mkdir()
    users = USERS.replace("LINES", "\n    ".join(lines))
    (tmp_path / "aim" / "users.py").write_text(users)
    code = BATCH.replace(*replace) + after if replace[0] else BATCH + after
    told = (moment.partition(": ") for moment in moments(tmp_path, code))
    return [f"{moment}: {who}" for moment, _, who in told if who]


def test_a_thread_that_writes_a_file_is_told(tmp_path: Path) -> None:
    lines = "with ThreadPool(1) as pool:", "    pool.apply(text, (a,))"
    who = "the thread 'Thread (worker)' did"
    assert beside(tmp_path, *lines)[:2] == [f"open a: {who} open a", f"write a: {who} write a"]


@pytest.mark.parametrize("last", [(), ("x = 1",)])
def test_a_thread_that_was_at_work_while_files_changed_past_python_is_told(
    tmp_path: Path, last: tuple[str, ...]
) -> None:
    """Also where the function has no line after that."""
    lines = "pool = ThreadPool(1)", "pool.apply(past_python, (a,))", *last
    who = "the thread 'Thread (worker)' worked while files changed"
    assert beside(tmp_path, *lines) == [f"change a: {who}"]


def test_threads_that_only_read_are_nothing(tmp_path: Path) -> None:
    """Nobody takes the interpreter from the thread before it waits for more to do, so that it
    sleeps only there."""
    lines = (
        "sys.setswitchinterval(1000)",
        "pool = ThreadPool(1)",
        "assert pool.map(len, ['x']) == [1]",
        "come_to_rest(pool)",
        "text(a)",
        "past_python(b)",
        "os.rename(a, b)",
    )
    assert beside(tmp_path, *lines) == []


def test_a_thread_that_was_left_at_work_is_told(tmp_path: Path) -> None:
    lines = "threading.Thread(target=lambda: GO_ON.wait(), name='late-7').start()", "x = 1"
    who = "the thread 'late' was still at work when the function returned"
    assert beside(tmp_path, *lines, after="users.GO_ON.set()") == [f"change *: {who}"]


def test_what_a_thread_does_after_the_function_has_returned_is_told(tmp_path: Path) -> None:
    lines = (
        "late = threading.Thread(target=lambda: GO_ON.wait() and text(a), name='late')",
        "late.start()",
        "each.late = late",
    )
    after = "users.GO_ON.set(); users.each.late.join()"
    assert beside(tmp_path, *lines, after=after)[1:] == [
        "open a: the thread 'late' did open a",
        "write a: the thread 'late' did write a",
    ]


@pytest.mark.parametrize(
    "script", ["f'touch {a}; touch {b}'", "f'echo x > {a}'", "f'mkfifo {a}; mv {a} {b}'"]
)
def test_a_process_that_does_more_than_one_thing_is_told(tmp_path: Path, script: str) -> None:
    who = "the process 'sh' changed files in more than one step"
    assert [x.partition(": ")[2] for x in beside(tmp_path, f"shell({script})")] == [who]


def test_a_process_that_does_one_thing_is_done_or_not(tmp_path: Path) -> None:
    assert beside(tmp_path, "text(a)", "shell(f'mv {a} {b}')", "x = 1") == []


def test_a_process_that_was_left_at_work_is_told(tmp_path: Path) -> None:
    lines = "each.left = subprocess.Popen(['cat'], stdin=subprocess.PIPE)", "x = 1"
    who = "the process 'cat' was still at work when the function returned"
    after = "users.each.left.communicate()"
    assert beside(tmp_path, *lines, after=after) == [f"change *: {who}"]


AFTER_LOOK = """
from bettong.harness.queries.sink import unseen
look = unseen.FolderWatch.changed
def looks(watch):
    found = look(watch)
    if hasattr(users.each, "ends") and not hasattr(users.each, "ended"):
        users.each.ended = True
        users.each.ends()
    return found
unseen.FolderWatch.changed = looks
each ="""


@pytest.mark.parametrize("more", [("x = 1", "x = 2"), ("x = 1",), ()])
@pytest.mark.parametrize(
    ("starts", "who"),
    [
        (
            (
                "script = f'read x; mkfifo {a}; mv {a} {b}'",
                "p = subprocess.Popen(['sh', '-c', script], stdin=subprocess.PIPE)",
                "each.ends = lambda: p.communicate(b'1\\n')",
            ),
            "the process 'sh' ",
        ),
        (
            (
                "late = threading.Thread(target=lambda: GO_ON.wait() and past_python(a))",
                "late.start()",
                "each.ends = lambda: (GO_ON.set(), late.join())",
            ),
            "the thread 'Thread (<lambda>)' ",
        ),
    ],
)
def test_who_changes_files_and_ends_while_they_are_looked_at_is_told(
    tmp_path: Path, starts: tuple[str, ...], who: str, more: tuple[str, ...]
) -> None:
    """When they have been looked at, and before it is asked who is at work."""
    found = beside(tmp_path, *starts, *more, replace=("each =", AFTER_LOOK))
    assert len(found) == 1
    assert found[0].partition(": ")[2].startswith(who)


def test_a_process_that_an_earlier_batch_has_left_is_told_in_the_next_ones(tmp_path: Path) -> None:
    lines = (
        "if batch == 0:",
        "    script = f'while read x; do mkfifo {folder}/$x; mkfifo {folder}/$x$x; echo; done'",
        "    pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE}",
        "    each.p = subprocess.Popen(['sh', '-c', script], bufsize=0, **pipes)",
        "else:",
        "    each.p.stdin.write(b'c\\n'); each.p.stdout.readline()",
        "    x = 1",
    )
    after = "seen.append('next')\neach.func(folder, 1)\nusers.each.p.communicate()"
    found = beside(tmp_path, *lines, after=after)
    assert found[0] == "change *: the process 'sh' was still at work when the function returned"
    assert found[1] == "change cc: the process 'sh' changed files in more than one step"


def test_a_process_that_outlives_the_one_that_started_it_is_told(tmp_path: Path) -> None:
    pipe = "r, w = os.pipe(); os.dup2(r, 9); os.set_inheritable(9, True)"
    who = "the process 'cat <&9 &' was still at work when the function returned"
    assert beside(tmp_path, pipe, "os.system('cat <&9 &')", "x = 1") == [f"change *: {who}"]


def test_what_a_process_does_that_was_forked_is_told(tmp_path: Path) -> None:
    lines = (
        "pid = os.fork()",
        "if pid == 0:",
        "    text(a)",
        "    os._exit(0)",
        "assert os.waitpid(pid, 0)[1] == 0",
        "x = 1",
    )
    who = "a process that it forked changed files in more than one step"
    assert beside(tmp_path, *lines) == [f"change a: {who}"]


def test_the_jobs_of_a_thread_are_marked_once_and_again_when_it_takes_over_properties(
    tmp_path: Path,
) -> None:
    """The greeting of a connection is no call; nothing is marked in a batch's own thread."""
    lines = (
        "give = connection.send_command",
        "give('c\\nown\\ne\\n')",
        "texts = 'A\\nword\\n', 'c\\no1\\ncount\\ne\\n', 'c\\no1\\nsetLocalProperties\\ne\\n'",
        "with ThreadPool(1) as pool:",
        "    for text in (*texts, texts[1], texts[1]):",
        "        pool.apply(give, (text,))",
    )
    replaced = """
commands = []
py4j.clientserver.ClientServerConnection.send_command = lambda self, text: commands.append(text)
class Active: _target_id = "o7"
class Context: _jsc = Active
import pyspark; pyspark.SparkContext._active_spark_context = Context
sys.audit"""
    (tmp_path / "aim").mkdir()
    (tmp_path / "aim" / "users.py").write_text(USERS.replace("LINES", "\n    ".join(lines)))
    code = BATCH.replace("sys.audit", replaced).replace(
        "each =",
        "users.connection = object.__new__(py4j.clientserver.ClientServerConnection); each =",
    )
    mark = "setLocalProperty sbettong.concurrent sthe thread 'Thread (worker)' e"
    shown = "\nseen[:] = [' '.join(x.split('\\n')[2:]).strip() for x in commands]"
    assert moments(tmp_path, code + shown) == [
        *("e", ""),
        *(mark, "count e"),
        *("setLocalProperties e", mark),
        *("count e", "count e"),
    ]
