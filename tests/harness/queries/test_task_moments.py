"""What a task changes past Python: a moment, or told as work beside it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from probed import TASK, moments

USERS = """
import mmap, multiprocessing, os, subprocess, threading
from pathlib import Path

def shell(script):
    subprocess.run(["sh", "-c", script], check=True)

def fork(make):
    pid = os.fork()
    if pid == 0:
        make()
        os._exit(0)
    return pid

def each(folder, batch):
    a, b = f"{folder}/a", f"{folder}/b"
    LINES
"""
SPARK = {
    **dict.fromkeys(("__init__.py", "logger/__init__.py"), ""),
    **dict.fromkeys(("sql/__init__.py", "sql/worker/__init__.py"), ""),
    "logger/worker_io.py": "import contextlib\ncapture_outputs = contextlib.nullcontext",
    "worker.py": """
from pyspark.logger.worker_io import capture_outputs
def main(eval_type, function, *arguments):
    with capture_outputs():
        function(*arguments)
""",
    "sql/worker/write_into_data_source.py": """
def write(function):
    return lambda *arguments: function(*arguments)
""",
    "sql/worker/python_streaming_sink_runner.py": """
from pyspark.logger.worker_io import capture_outputs
def main(commit, *arguments):
    with capture_outputs():
        commit(*arguments)
""",
    "sql/worker/plan_data_source_read.py": """
def read(function):
    return lambda *arguments: function(*arguments)
""",
}
COMMIT = """
from pyspark.sql.worker.python_streaming_sink_runner import main; main(users.each, folder, 0)
"""
RDD = "import pyspark.worker; pyspark.worker.main(0, users.each, folder, 0)"
SOURCE = """
from pyspark.sql.worker.write_into_data_source import write
import pyspark.worker; pyspark.worker.main(207, write(users.each), folder, 0)
"""
ARROW = "import pyspark.worker; pyspark.worker.main(207, users.each, folder, 0)"
PANDAS = "import pyspark.worker; pyspark.worker.main(205, users.each, folder, 0)"
READER = """
from pyspark.sql.worker.plan_data_source_read import read
import pyspark.worker; pyspark.worker.main(207, read(users.each), folder, 0)
"""
VALUES = "import pyspark.worker; pyspark.worker.main(200, users.each, folder, 0)"
STEPS = "changed files in more than one step"
LEFT = "was still at work when the task ended"
AT_ONCE = "worked while files changed"


def told(tmp_path: Path, *lines: str, task: str = TASK) -> list[str]:
    """The moments of a task that runs these lines."""
    for name, text in SPARK.items():
        file = tmp_path / "aim" / "pyspark" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    users = USERS.replace("LINES", "\n    ".join(lines))
    (tmp_path / "aim" / "users.py").write_text(users)
    return moments(tmp_path, task)


@pytest.mark.parametrize(
    "does",
    [
        "shell(f'mkfifo {a}')",
        "os.system(f'mkfifo {a}')",
        "os.spawnlp(os.P_WAIT, 'mkfifo', 'mkfifo', a)",
        "os.waitpid(os.posix_spawnp('mkfifo', ['mkfifo', a], os.environ), 0)",
        "subprocess.Popen(['mkfifo', a]).communicate()",
        "os.waitpid(fork(lambda: os.mkfifo(a)), 0)",
    ],
)
def test_the_one_change_of_a_process_is_a_moment(tmp_path: Path, does: str) -> None:
    lines = (does, "Path(b).touch()", "shell(f'mv {b} {a}')", "shell('true')")
    assert told(tmp_path, *lines) == ["change a", "open b", "change a"]


@pytest.mark.parametrize(
    "script", ["f'touch {a}; touch {b}'", "f'echo x > {a}'", "f'cp {__file__} {a}'"]
)
def test_a_process_that_does_more_than_one_thing_is_told(tmp_path: Path, script: str) -> None:
    found = told(tmp_path, f"shell({script})")
    assert [moment.partition(": ")[2] for moment in found] == [f"the process 'sh' {STEPS}"]


def test_a_process_that_changes_one_thing_after_the_other_is_told(tmp_path: Path) -> None:
    """Also where each of them is seen by itself."""
    lines = (
        "script = f'read x; touch {a}; echo; read x; touch {b}'",
        "pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE}",
        "p = subprocess.Popen(['sh', '-c', script], bufsize=0, **pipes)",
        "p.stdin.write(b'1\\n'); p.stdout.readline()",
        "p.poll()",
        "p.communicate(b'2\\n')",
    )
    assert told(tmp_path, *lines) == ["change a", f"change b: the process 'sh' {STEPS}"]


@pytest.mark.parametrize(
    "beside",
    [
        "Path(b).touch()",
        "subprocess.run(['mkfifo', b])",
        "subprocess.Popen(['mkfifo', b]).communicate()",
    ],
)
def test_a_process_and_what_is_done_beside_it_are_told(tmp_path: Path, beside: str) -> None:
    """Each is one change; which of both comes first is chance."""
    lines = (
        "p = subprocess.Popen(['sh', '-c', f'read x; mkfifo {a}'], stdin=subprocess.PIPE)",
        beside,
        "p.communicate(b'1\\n')",
    )
    assert any(moment.endswith(AT_ONCE) for moment in told(tmp_path, *lines))


@pytest.mark.parametrize(
    ("starts", "name"),
    [
        ("p = subprocess.Popen(['cat'], stdin=subprocess.PIPE)", "cat"),
        ("os.system('cat <&9 &')", "cat <&9 &"),
        (
            "p = multiprocessing.get_context('spawn').Process(target=os.read, args=(9, 1))\n"
            "    p.start()",
            Path(sys.executable).name,
        ),
    ],
)
def test_a_process_that_is_left_at_work_is_told(tmp_path: Path, starts: str, name: str) -> None:
    """Also where the one that has started it has ended."""
    pipe = "r, w = os.pipe(); os.dup2(r, 9); os.set_inheritable(9, True)"
    found = told(tmp_path, pipe, starts)
    assert found == [f"change *: the process {name!r} {LEFT}"]


@pytest.mark.parametrize(
    ("task", "seen"),
    [(RDD, 1), (SOURCE, 1), (COMMIT, 1), (ARROW, 1), (PANDAS, 1), (VALUES, 1), (READER, 0)],
)
def test_after_each_change_there_is_a_moment_before_the_next_line(
    tmp_path: Path, task: str, seen: int
) -> None:
    """Who reads a data source does not write."""
    lines = ("Path(a).touch()", "os.mkfifo(b)", "shell(f'mv {b} {a}')", "x = 1")
    change = ["change a"], ["change b"]
    found = told(tmp_path, *lines, task=TASK.partition("with")[0] + task)
    assert found == ["open a", *change[0] * seen, *change[1] * seen, "change a"]


@pytest.mark.parametrize(("task", "seen"), [(COMMIT, 1), (RDD, 0), (SOURCE, 0), (READER, 0)])
def test_where_a_commit_looks_there_is_a_moment(tmp_path: Path, task: str, seen: int) -> None:
    """What a task finds out is its attempt's."""
    lines = ("os.listdir(folder)", "Path(a).touch()", "shell(f'mv {a} {b}')", "open(b).close()")
    found = told(tmp_path, *lines, task=TASK.partition("with")[0] + task)
    looks = [moment for moment in found if moment.startswith("look")]
    assert looks == ["look *", "look b"] * seen


@pytest.mark.parametrize(("task", "lines"), [(RDD, 3), (PANDAS, 3), (VALUES, 0), (READER, 0)])
def test_the_lines_that_ran_are_noted_of_what_is_not_there_for_a_value(
    tmp_path: Path, task: str, lines: int
) -> None:
    ran = tmp_path / "ran"
    aims = f"aiming.aim(folder, Instrumentation(), ran=Path({str(ran)!r}))"
    whole = f"{aims}\n{TASK.partition('with')[0]}{task}"
    told(tmp_path, "x = 1", "y = 2", task=whole)
    noted = ran.read_text().splitlines() if ran.exists() else []
    assert len([line for line in noted if " each " in line]) == lines


@pytest.mark.parametrize("task", [RDD, ARROW, PANDAS, READER])
def test_what_is_changed_in_memory_that_is_a_file_is_a_moment(tmp_path: Path, task: str) -> None:
    lines = (
        "Path(a).write_bytes(b'xyz')",
        "f = open(a, 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0:1] = b'1'",
        "Path(b).touch()",
        "m[1:2] = b'2'",
        "m[2:3] = b'3'",
    )
    found = told(tmp_path, *lines, task=TASK.partition("with")[0] + task)
    end = found[found.index("open b") - 1 :]
    assert end == ["change a", "open b", *["change b"] * (task != READER), *["change a"] * 2]


@pytest.mark.parametrize("task", [RDD, SOURCE])
def test_the_line_that_changes_a_file_is_told_and_asked_before(tmp_path: Path, task: str) -> None:
    lines = ("Path(a).touch()", "for name in 'bc':", "    os.mkfifo(f'{folder}/{name}')")
    number = next(n for n, x in enumerate(USERS.splitlines(), 1) if "LINES" in x) + 2
    tells = f"""
aiming.aim(folder, Instrumentation(), lines=[{number}])
Recorder.notify = lambda self, e: seen.append([e.detail["op"], e.detail.get("line")])
"""
    assert told(tmp_path, *lines, task=tells + TASK.partition("with")[0] + task) == [
        ["open", None],
        ["change", None],
        ["line", [number, 1]],
        ["change", [number, 1]],
        ["line", [number, 2]],
        ["change", [number, 2]],
    ]


def test_what_was_left_at_work_is_watched_in_the_next_task(tmp_path: Path) -> None:
    """It may make one change in each of them, and none of them starts it."""
    lines = (
        "if batch == 0:",
        "    script = f'while read x; do mkfifo {folder}/$x; echo; done'",
        "    pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE}",
        "    each.p = subprocess.Popen(['sh', '-c', script], bufsize=0, **pipes)",
        "else:",
        "    each.p.stdin.write(b'a\\n'); each.p.stdout.readline()",
        "    Path(b).touch()",
    )
    again = "seen.append('next')\nwith capture_outputs(): users.each(folder, 1)"
    found = told(tmp_path, *lines, task=f"{TASK}\n{again}\nusers.each.p.communicate()")
    left = f"change *: the process 'sh' {LEFT}"
    beside = f"change a: the process 'sh' {AT_ONCE}"
    assert found == [left, "next", beside, "open b", f"change b: the process 'sh' {AT_ONCE}", left]


def test_what_an_earlier_run_has_left_is_none_of_the_next_one(tmp_path: Path) -> None:
    """What that one starts is seen none the less."""
    lines = (
        "pipes = {'stdin': subprocess.PIPE}",
        "each.left = getattr(each, 'left', None) or subprocess.Popen(['cat'], **pipes)",
        "Path(a).touch()",
        "shell(f'mkdir {b}')",
        "shell(f'touch {b}/1 {b}/2')",
    )
    again = """
seen.clear()
other = folder.with_name("other"); other.mkdir()
aiming.aim(other, Instrumentation())
with capture_outputs(): users.each(other, 1)
users.each.left.communicate()
"""
    found = told(tmp_path, *lines, task=TASK + again)
    assert found == ["open a", "change b", f"change b/2: the process 'sh' {STEPS}"]


@pytest.mark.parametrize("task", [RDD, PANDAS])
def test_a_process_that_a_thread_starts_is_told(tmp_path: Path, task: str) -> None:
    lines = (
        "thread = threading.Thread(target=shell, args=[f'mkfifo {a}'])",
        "thread.start()",
        "thread.join()",
    )
    found = told(tmp_path, *lines, task=TASK.partition("with")[0] + task)
    assert [moment.partition(" '")[0] for moment in found] in (
        ["change a: the thread"],
        ["change a: the process"],
    )


def test_what_a_forked_process_does_is_told_as_its_own(tmp_path: Path) -> None:
    lines = (
        "def make():",
        "    Path(a).touch()",
        "    Path(b).write_text(seen[0])",
        "os.waitpid(fork(make), 0)",
    )
    moved = TASK.replace("import users", "import users; users.seen = seen")
    assert told(tmp_path, *lines, task=moved)[-1].endswith(STEPS)
    by_itself = (tmp_path / "own" / "b").read_text()
    assert by_itself == "open a: a process that it forked did open a"


def test_what_spark_itself_writes_meanwhile_is_none_of_a_processs(tmp_path: Path) -> None:
    lines = (
        "part = 'part-00000-01234567-89ab-cdef-0123-456789abcdef-c000.snappy.parquet'",
        "shell(f'mkdir {a}')",
        "shell(f'echo 1 > {folder}/.{part}.crc; echo 1 > {folder}/{part}')",
    )
    assert told(tmp_path, *lines) == ["change a"]


def test_who_starts_processes_and_changes_nothing_is_nothing(tmp_path: Path) -> None:
    lines = (
        "shell('true')",
        "p = subprocess.Popen(['cat'], stdin=subprocess.PIPE)",
        "p.communicate()",
        "Path(a).touch()",
        "os.rename(a, b)",
    )
    assert told(tmp_path, *lines) == ["open a", "rename b"]
