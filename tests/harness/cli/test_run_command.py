"""Mistakes on the command line, found before anything is started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bettong.harness import cli
from bettong.harness.search.bounds import SearchBounds
from bettong.harness.suites.jobs import plan_jobs, share
from bettong.harness.suites.suite import Shard, SuiteRun
from bettong.lineage.errors import UsageError
from bettong.lineage.search.loop import Budget


def bettong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["bettong", *arguments])
    monkeypatch.setattr(cli, "supervised", lambda command: command())  # in this process
    with pytest.raises(SystemExit) as ended:
        cli.main()
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out, captured.err


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("crash: {node: driver, before: batch=1/sink.comit}", "did you mean batch=1/sink.commit?"),
        ("crash: {node: drivr, before: batch=1/sink.commit}", "did you mean driver?"),
        ("omit: {link: driver->reciever, at: batch=1/sink.commit}", "driver->receiver?"),
        ("omitt: {link: driver->receiver, at: batch=1/sink.commit}", "did you mean omit?"),
    ],
)
def test_a_misspelled_name_in_a_schedule_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    schedule: str,
    message: str,
) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text(f"faults:\n  - {schedule}\n")
    code, out, err = bettong(capsys, monkeypatch, "run", "word_count", "--faults", str(file))
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "word_cont"], "did you mean word_count?"),
        (["run", "word_count", "--faults", "each-stop"], "did you mean each-step?"),
        (["run", "word_count", "--input", "/no/such/file"], "cannot read the input"),
        (["run", "word_count", "--budget", "soon"], "write a number of runs"),
        (["replay", "/no/such/file.json"], "cannot read the counterexample"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    code, out, err = bettong(capsys, monkeypatch, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_the_list_names_every_mutant_with_the_schedule_that_shows_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = bettong(capsys, monkeypatch, "list", "--json")
    found = {(e["kind"], e["name"]): e for e in json.loads(out)}
    assert code == 0
    assert found["scenario", "word_count"]["expect"] == "valid"
    mutants = [
        e for (kind, _), e in found.items() if kind == "scenario" and e["expect"] == "invalid"
    ]
    assert len(mutants) >= 5
    assert all(Path(mutant["schedule"]).is_file() for mutant in mutants)


def test_a_suite_is_its_runs_and_a_shard_a_part_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bettong.toml").write_text(
        """
        [[suite.own.run]]
        name = "word_count"
        faults = "random:2"
        [[suite.own.run]]
        name = "sink_commits_again"
        workers = 2
        """
    )
    monkeypatch.chdir(tmp_path)
    jobs = plan_jobs(["own", "word_count"], SuiteRun(""), SearchBounds(), None)
    assert [(j.scenario.name, j.run.workers, str(j.out)) for j in jobs] == [
        ("word_count", 0, "bettong-out/own/01-word_count"),
        ("sink_commits_again", 2, "bettong-out/own/02-sink_commits_again"),
        ("word_count", 0, "bettong-out/word_count"),
    ]
    second = share(jobs, Shard.parse("2/2"))
    assert [j.scenario.name for j, _ in second] == ["word_count", "sink_commits_again"]


def test_the_suites_that_ship_can_be_planned() -> None:
    jobs = plan_jobs(["word_count_faults"], SuiteRun(""), SearchBounds(), Path("x"))
    assert [str(job.out) for job in jobs] == ["x"]
    assert len(jobs[0].plan.given) >= 10  # type: ignore[union-attr]


def test_a_budget_is_runs_or_time() -> None:
    assert Budget.parse(None) == Budget()
    assert Budget.parse("200") == Budget(runs=200)
    assert Budget.parse("5m") == Budget(seconds=300)
    for wrong in ("0", "5d", "-1", "1.5h"):
        with pytest.raises(UsageError):
            Budget.parse(wrong)


@pytest.mark.parametrize(
    ("host", "arguments", "message"),
    [
        ("unix:///nowhere/engine.sock", [], "no engine answers at unix:///nowhere/engine.sock"),
        ("tcp://198.51.100.1:2375", [], "may be another machine's"),
        ("unix:///nowhere/engine.sock", ["--workers", "2"], "leave out --workers 2"),
    ],
)
def test_the_docker_backend_says_what_it_lacks(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    host: str,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    command = ["run", "word_count", "--backend", "docker", "--out", str(tmp_path)]
    code, out, err = bettong(capsys, monkeypatch, *command, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_shard_for_which_there_is_nothing_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = "[[suite.two.run]]\nname = 'word_count'\n[[suite.two.run]]\nname = 'counting'\n"
    (tmp_path / "bettong.toml").write_text(runs)
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(cli.cli, ["run", "two", "--shard", "3/3"])
    assert found.exit_code == 3
    assert "fewer pieces of work than shards" in found.stderr


def test_a_second_run_leaves_what_the_first_writes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trace = tmp_path / "traces" / "clean.jsonl"
    trace.parent.mkdir()
    trace.write_text("of the first")
    program = (
        "import sys; from pathlib import Path; from bettong.lineage.own_folder import own_folder\n"
        "with own_folder(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        arguments = ("run", "counting", "--runner", "in-process", "--out", str(tmp_path))
        code, out, err = bettong(capsys, monkeypatch, *arguments)
        first.kill()
    assert (code, out) == (2, "")
    assert "another run still writes to" in err
    assert trace.read_text() == "of the first"
