"""No code that a command loads chooses its exit code; what goes wrong is told in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bettong.harness.cli import COMMANDS, cli
from bettong.harness.cli.console import unless_gone
from bettong.harness.cli.outermost import guarded
from bettong.harness.cli.output import exit_code
from bettong.harness.cli.printing import plain
from bettong.lineage.results import Anomaly, Counterexample, Result
from bettong.reports import write_reports

MAIN = "from bettong.harness.cli import main; main()"
LOADERS = (
    ("check-sink", "{}.py:Sink"),
    ("protocol", "{}.py:Protocol"),
    ("start", "{}:app", "--checkpoint", "c"),
)


def bettong(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        cwd=folder, capture_output=True, text=True, timeout=600, env={**os.environ, **env},
    )  # fmt: skip


@pytest.mark.parametrize("words", LOADERS, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("code", "output"),
    [("import sys; sys.exit(0)", "sys.exit(0)"), ("import os; os._exit(0)", "exit code 0")],
)
def test_a_module_that_ends_the_process_is_no_pass(
    tmp_path: Path, words: tuple[str, ...], code: str, output: str
) -> None:
    (tmp_path / "users.py").write_text(f"# mine\n{code}\n")
    done = bettong(tmp_path, *(word.format("users") for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bettong: ") and done.stderr.count("\n") == 1
    assert output in done.stderr and "users" in done.stderr


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("raise SystemExit", "sys.exit(None)"),
        ("import nothing_of_that_name", "nothing_of_that_name"),
        ("raise ValueError('one\\n\\ntwo')", "ValueError: one two"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_an_error_of_a_module_shows_its_line(tmp_path: Path, code: str, output: str) -> None:
    (tmp_path / "users.py").write_text(f"# mine\n{code}\n")
    done = CliRunner().invoke(cli, ["protocol", f"{tmp_path}/users.py:P"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("bettong: ") and done.stderr.count("\n") == 1
    assert output in done.stderr and "users.py:2" in done.stderr


def test_an_import_that_does_not_return_has_a_limit(tmp_path: Path) -> None:
    (tmp_path / "users.py").write_text("import threading\nthreading.Event().wait()\n")
    done = bettong(tmp_path, "protocol", "users.py:P", BETTONG_LOAD_LIMIT_S="0.3")
    assert done.returncode == 2
    assert "users.py" in done.stderr and "within 0.3 s" in done.stderr


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("os._exit(0)", "exit code 0"),
        ("os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("sys.exit(0)", "sys.exit(0)"),
        ("atexit.register(os._exit, 0); sys.exit(1)", "sys.exit(1)"),
    ],
)
def test_code_that_runs_later_cannot_choose_either(tmp_path: Path, body: str, output: str) -> None:
    (tmp_path / "users.py").write_text(
        "import atexit, os, sys\n"
        "from bettong.scenarios.protocols.delivery import Simple\n"
        "class Mine(Simple):\n"
        f"    def given(self): {body}\n"
    )
    done = bettong(tmp_path, "protocol", "users.py:Mine")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("bettong: no result: ") and done.stderr.count("\n") == 1
    assert output in done.stderr


def raised(error: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(click.exceptions.Exit) as ended, guarded():
        raise error
    return ended.value.exit_code, capsys.readouterr().err


def test_what_nobody_foresaw_is_unknown_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, output = raised(ZeroDivisionError("of all\nthings"), capsys)
    (kept,) = tmp_path.iterdir()
    assert code == 3 and output.count("\n") == 1 and str(kept) in output
    assert "ZeroDivisionError: of all" in output and "Traceback" in kept.read_text()


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (PermissionError(13, "", "/some/where"), 2, "/some/where: Permission denied"),
        (OSError(28, "No space"), 2, "No space left"),
        (BrokenPipeError(32, ""), 2, "has gone"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (SystemExit(0), 3, "sys.exit(0)"),
        (UnicodeEncodeError("utf-8", "a\ud800", 1, 2, "no"), 2, "cannot"),
    ],
)
def test_what_the_machine_refuses_is_no_traceback(
    error: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, output = raised(error, capsys)
    assert found == code and output.count("\n") == 1
    assert words in output or isinstance(error, UnicodeEncodeError)


def test_a_full_disk_under_the_answer_is_no_pass(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "list", "--json"], stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=600,
        )  # fmt: skip
    assert done.returncode == 2 and "No space left" in done.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("protocol", "simple", "--eot", "3"), 1),
        (("protocol", "simple", "--eot", "3", "--json"), 1),
        (("list",), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_reader_that_goes_away_changes_no_answer(
    tmp_path: Path, words: tuple[str, ...], code: int
) -> None:
    """As ``head`` does when it has its lines."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *words], stdout=write, stderr=subprocess.PIPE,
            text=True, timeout=600, cwd=tmp_path,
        )  # fmt: skip
    finally:
        os.close(write)
    assert done.returncode == code, done.stderr
    assert "defect" not in done.stderr and "no result" not in done.stderr


def test_a_reader_of_the_progress_that_goes_away_ends_no_search(
    capfd: pytest.CaptureFixture[str],
) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        unless_gone(lambda: print("first", file=gone, flush=True), gone)
        print("nobody reads this", file=gone, flush=True)
    assert capfd.readouterr().out == ""


def test_a_command_dies_with_its_supervisor(tmp_path: Path) -> None:
    (tmp_path / "users.py").write_text(
        "import os, threading\nprint(os.getpid(), flush=True)\nthreading.Event().wait()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "protocol", "users.py:P"], cwd=tmp_path,
        stdout=subprocess.PIPE, text=True,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert child != parent.pid
        parent.send_signal(signal.SIGKILL)
        assert parent.stdout.read() == ""  # its last holder, the child, is gone
    parent.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_command(tmp_path: Path, number: int) -> None:
    (tmp_path / "users.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "protocol", "users.py:P"], cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None and parent.stderr is not None
        assert parent.stdout.readline() == "here\n", parent.stderr.read()
        parent.send_signal(number)
        _, output = parent.communicate(timeout=600)
    assert parent.returncode == 128 + number, output
    assert "Traceback" not in output


COUNTS = """
import os, signal, time
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"asked\\n"))  # print may be under way
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
print("here", flush=True)
while True:
    time.sleep(0.1)  # not signal.pause(), which sleeps on after a signal that came just before it
"""


def test_a_signal_to_all_of_a_terminal_comes_once(tmp_path: Path) -> None:
    (tmp_path / "users.py").write_text(COUNTS)
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "protocol", "users.py:P"], cwd=tmp_path,
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        assert parent.stdout.readline() == "here\n"
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.stdout.readline() == "asked\n"
        parent.send_signal(signal.SIGTERM)  # it is passed on after what would have been before
        assert parent.stdout.read() == ""


def test_only_an_anomaly_is_a_violation() -> None:
    invalid = Result("x", "invalid")
    assert exit_code([invalid]) == 3
    assert exit_code([Result("x", "invalid", anomalies=(Anomaly("Loss"),))]) == 1
    example = Counterexample(("f",), (Anomaly("Loss"),))
    assert exit_code([Result("x", "invalid", counterexamples=(example,))]) == 1
    assert exit_code([]) == 3
    assert exit_code([Result("x", "valid")]) == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n::error::x", r"a\n::error::x"),
        ("::stop-commands::x", r"\::stop-commands::x"),
        ("  ##[error]x", r"  ##\[error]x"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\u2028b\u202ec\ud800", r"a\u2028b\u202ec\ud800"),
        ("ünïcode ✔", "ünïcode ✔"),
    ],
)
def test_data_is_printed_as_data(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_wrong_calls_name_the_help() -> None:
    done = CliRunner().invoke(cli, ["check"])
    assert done.exit_code == 2
    assert done.stderr == "bettong: Missing argument 'EXPECTED'. (see cli check --help)\n"


ANSWER = ("result.json", "report.html", "report.md", "junit.xml")


@pytest.mark.parametrize(
    "words",
    [
        ("check", "missing.jsonl", "missing.jsonl", "--out", "out"),
        ("protocol", "nobody-knows-it", "--out", "out"),
        ("run", "nobody-knows-it", "--out", "out"),
        ("check-sink", "missing.py:Sink", "--out", "out"),
        ("check-job", "missing.py:Job", "--out", "out"),
        ("replay", "missing.json", "--out", "out"),
    ],
    ids=lambda words: words[0],
)
def test_a_run_that_fails_leaves_no_earlier_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    earlier = Result("earlier", "valid")
    earlier.write(tmp_path / "out")
    write_reports(earlier, tmp_path / "out")
    assert CliRunner().invoke(cli, list(words)).exit_code == 2
    assert [name for name in ANSWER if (tmp_path / "out" / name).exists()] == []
    assert Result.read(tmp_path / "out" / "result.json.old").scenario == "earlier"


@pytest.mark.parametrize("command", ["check", "protocol", "run"])
def test_an_answer_that_could_not_be_written_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "h.jsonl").write_text('{"id": 1}\n')
    words = {"check": ["h.jsonl", "h.jsonl"], "protocol": ["simple"], "run": ["word_count"]}
    done = CliRunner().invoke(cli, [command, *words[command], "--out", "file/out"])
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("bettong: file/out: Not a directory")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "h.jsonl"]


def test_a_report_cannot_command_ci(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text('{"id": "a\\n::error::x\\u001b[2J"}\n{"id": "::stop::b"}\n')
    (tmp_path / "o.jsonl").write_text("")
    done = CliRunner().invoke(cli, ["check", f"{tmp_path}/e.jsonl", f"{tmp_path}/o.jsonl"])
    assert done.exit_code == 1
    assert "\x1b" not in done.output
    assert not any(line.lstrip().startswith("::") for line in done.output.splitlines())


def test_a_closed_output_does_not_choose_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n')
    (tmp_path / "b.jsonl").write_text('{"id": 1}\n{"id": 1}\n')
    for observed, code in (("a.jsonl", 0), ("b.jsonl", 1)):
        words = f"'{sys.executable}' -c '{MAIN}' check a.jsonl {observed} >&- <&-"
        done = subprocess.run(words, shell=True, cwd=tmp_path, capture_output=True, timeout=120)
        assert (done.returncode, done.stderr) == (code, b"")


def test_each_command_is_said_whole_in_the_help_of_all() -> None:
    done = CliRunner().invoke(cli, ["--help"])
    _, _, listed = done.stdout.partition("Commands:\n")
    assert [line.split()[0] for line in listed.splitlines()] == list(COMMANDS)
    assert "..." not in listed
