"""Every command of the README and the docs, run for real, in a folder outside of the checkout that
holds what a reader of the page has."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from docs_samples import arguments, commands, files, write_files

from bettong.harness.catalog import entries

BETTONG = str(Path(sys.executable).with_name("bettong"))

Commands = Sequence[tuple[str, int]]
"""Commands as they are written, each with its exit code."""


def histories(folder: Path, *names: str, **columns: str) -> None:
    """Two histories of 30 records, with one record twice in the second."""
    ids = [f"orders/{n}" for n in range(30)]
    keys = [f"customer-{n % 4}" for n in range(30)]
    for name, places in zip(names, (range(30), [*range(30), 7]), strict=True):
        values = {
            columns.get("id", "id"): [ids[n] for n in places],
            columns.get("key", "key"): [keys[n] for n in places],
            "seq": list(places),
        }
        pq.write_table(pa.table(values), folder / name)


def shards(folder: Path) -> None:
    """What four machines bring of a search that they share."""
    for index in range(1, 5):
        line = f"bettong run word_count --runner in-process --faults random:4 --shard {index}/4"
        assert run(folder, f"{line} --out part-{index}").returncode == 0


def run(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a command as the reader types it."""
    env = os.environ | {"PYTHONPATH": str(folder)}
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        env.pop(name, None)
    words = [BETTONG, *arguments(line)]
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)


def run_all(folder: Path, lines: Commands) -> list[str]:
    """What the commands print; each ends as it should."""
    reported = []
    for line, code in lines:
        done = run(folder, line)
        assert done.returncode == code, f"{line}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        reported.append(done.stdout)
    return reported


PROTOCOL = "bettong protocol retry --eot 6 --eff 3 --crashes 1 --find-all"

WORDS = (
    "bettong start words:app --source lines=words.txt --sink totals=totals "
    "--checkpoint checkpoint --metrics metrics.jsonl"
)
TOP = "bettong top metrics.jsonl --once"


def words(folder: Path) -> None:
    """The application of the page on the engine, and its input."""
    write_files("engine.md", folder)
    (folder / "words.txt").write_text("they know they\nfound it\n")


# By page, and by what they need: Prepare, commands.
Prepare = Callable[[Path], None]
QUICK: dict[str, tuple[Prepare, Commands]] = {
    "README.md": (
        lambda folder: histories(folder, "expected.parquet", "observed.parquet", key="account"),
        [
            (PROTOCOL, 1),
            ("bettong check expected.parquet observed.parquet --key account --order seq", 1),
        ],
    ),
    "check-histories.md": (
        lambda folder: histories(
            folder, "expected.parquet", "observed.parquet", id="order_id", key="customer"
        ),
        [("bettong check expected.parquet observed.parquet --id order_id --key customer", 1)],
    ),
    "mutants.md": (
        lambda folder: None,
        [("bettong list", 0), ("bettong run sink_fences_nobody --runner in-process", 0)],
    ),
    "read-a-report.md": (
        lambda folder: None,
        [
            ("bettong run word_count --runner in-process", 0),
            ("bettong report bettong-out/word_count --otlp --openlineage --dot", 0),
        ],
    ),
    "write-a-protocol.md": (
        lambda folder: write_files("write-a-protocol.md", folder),
        [
            ("bettong protocol handover.py:HandOver", 1),
            ("bettong protocol handover.py:HandOverAgain", 0),
        ],
    ),
    "ci.md": (shards, [("bettong report part-1 part-2 part-3 part-4 --out report", 0)]),
}
CRASH = "--faults crash.yaml"
SPARK: dict[str, tuple[Prepare, Commands]] = {
    "engine.md": (words, [(WORDS, 0), (TOP, 0), (WORDS, 0)]),
    "five-minutes.md": (
        lambda folder: write_files("five-minutes.md", folder),
        [
            (".venv/bin/bettong run word_count", 0),
            (f"bettong run word_count {CRASH}", 0),
            (f"bettong run sink_commits_again {CRASH}", 1),
        ],
    ),
    "check-histories.md": (
        lambda folder: histories(folder, "hdfs-expected.parquet", "hdfs-observed.parquet"),
        [("bettong check hdfs-expected.parquet hdfs-observed.parquet --spark local[8]", 1)],
    ),
}


def job_files(folder: Path) -> None:
    """The files of the page on jobs, and the orders that its script is fed."""
    write_files("check-your-job.md", folder)
    orders = "".join(f'{{"id": "o{n}", "amount": {n}}}\n' for n in range(12))
    (folder / "orders.jsonl").write_text(orders)


def readme_files(folder: Path) -> None:
    """The sink and the job of the pages, called as in the README."""
    sink = files("check-your-sink.md")["mysink.py"].replace("MySink", "OrdersSink")
    (folder / "my_sink.py").write_text(sink)
    job = files("check-your-job.md")["myjob.py"].replace("MyJob", "ClicksPerMinute")
    (folder / "my_job.py").write_text(job)


REACH = "--faults ldfi --crashes 1 --losses 1"
MY_SINK = "bettong check-sink mysink.py:MySink"
MY_JOB = "bettong check-job myjob.py:MyJob"
MY_SCRIPT = (
    "bettong check-job --script main.py --set IN={work}/in --set OUT={work}/out.jsonl "
    "--set CKPT={work}/ckpt --input orders.jsonl@dir:in --read reader.py:reader"
)
ONLY = "--only 'crash(driver, before batch=0/commits)'"
SLOW: dict[str, tuple[Prepare, Commands]] = {
    "README.md": (
        lambda folder: readme_files(folder),
        [
            ("bettong check-sink my_sink.py:OrdersSink --expect effectively-once", 1),
            ("bettong check-job my_job.py:ClicksPerMinute --expect effectively-once", 1),
            ("bettong run word_count --faults each-step", 0),
            (f"bettong run counting {REACH} --batches 2", 0),
        ],
    ),
    "ldfi.md": (
        lambda folder: None,
        [
            (f"bettong run word_count {REACH} --batches 2", 0),
            ("bettong why bettong-out/word_count lines/9.1", 0),
            ("bettong why bettong-out/word_count gateway.ack/lines/11 --dependents", 0),
        ],
    ),
    "mutants.md": (lambda folder: None, [("bettong run mutants", 1)]),
    "write-a-scenario.md": (
        lambda folder: write_files("write-a-scenario.md", folder),
        [("bettong run orders --faults each-step", 0), (f"bettong run orders {REACH}", 0)],
    ),
    "check-your-job.md": (
        lambda folder: job_files(folder),
        [(MY_JOB, 1), (f"{MY_JOB} --faults none", 0), (MY_SCRIPT, 1)],
    ),
    "museum.md": (lambda folder: None, [("bettong museum SPARK-28650", 0)]),
    "check-your-sink.md": (
        lambda folder: write_files("check-your-sink.md", folder),
        [
            (MY_SINK, 1),
            (f"{MY_SINK} {ONLY}", 1),
            (f"{MY_SINK} --expect at-least-once --out result/", 1),
            ("bettong check-sink format:parquet", 0),
            ("bettong check-sink format:json --option compression=gzip", 0),
        ],
    ),
}

# Run by tests of their own, which have what they need: an engine, a master.
ELSEWHERE = {
    ".venv/bin/bettong demo",  # `test_demo_command.py`
    "bettong run word_count --backend docker",
    "bettong run word_count --master spark://127.0.0.1:7077",
}


def test_every_command_is_run_by_a_test() -> None:
    groups = (QUICK, SPARK, SLOW)
    known = {line for group in groups for _, lines in group.values() for line, _ in lines}
    reported = {line for _, line in commands()}
    # They take minutes; tests of their own run them at small sizes.
    benches = {line for line in reported if line.startswith("bettong bench ")}
    assert {arguments(line)[1] for line in benches} <= {entry.name for entry in entries("bench")}
    assert reported >= ELSEWHERE
    reported -= benches | ELSEWHERE
    assert reported - known == set(), "commands of the docs that no test runs"
    assert known - reported <= {f"{MY_SINK} {ONLY}"}, "no longer in the docs"


@pytest.mark.parametrize("page", QUICK)
def test_quick_commands(page: str, tmp_path: Path) -> None:
    prepare, lines = QUICK[page]
    prepare(tmp_path)
    reported = run_all(tmp_path, lines)
    if page == "check-histories.md":
        assert "Duplicate orders/7 (key customer-3): distant" in reported[0]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("page", SPARK)
def test_commands_on_spark(page: str, tmp_path: Path) -> None:
    prepare, lines = SPARK[page]
    prepare(tmp_path)
    reported = run_all(tmp_path, lines)
    if page == "five-minutes.md":
        (line,) = re.findall(r"bettong replay .*", reported[-1])
        assert run(tmp_path, line).returncode == 1
        assert run(tmp_path, "bettong why bettong-out/word_count lines/9.1").returncode == 0


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("page", SLOW)
def test_commands_that_search(page: str, tmp_path: Path) -> None:
    prepare, lines = SLOW[page]
    prepare(tmp_path)
    run_all(tmp_path, lines)


@pytest.mark.slow
@pytest.mark.spark
def test_a_project_made_from_the_docs_fails_for_the_right_reason(tmp_path: Path) -> None:
    """A sink and a test file as the pages show them, in a pytest of their own."""
    write_files("check-your-sink.md", tmp_path)
    write_files("ci.md", tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mysink.py", "test_mysink.py"]
    assert len((tmp_path / "test_mysink.py").read_text().splitlines()) <= 10
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--junitxml=junit.xml", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    (case,) = ElementTree.parse(tmp_path / "junit.xml").iter("testcase")
    (failure,) = case.iter("failure")
    text = f"{failure.get('message')}\n{failure.text}"
    for reported in (
        "MySink: invalid",
        "minimal faults: ",
        "Duplicate m/",
        "replay: bettong check-sink",
    ):
        assert reported in text, text
    assert "py4j" not in text and "\tat " not in text, "no wall of Java"
    assert json.dumps(case.get("name")) == '"test_my_sink_is_effectively_once"'
