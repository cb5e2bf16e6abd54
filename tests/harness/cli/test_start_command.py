"""``bettong start`` and ``bettong top``."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bettong.engine import interpret
from bettong.engine.address import Address
from bettong.engine.net.access import ListenConfig
from bettong.engine.receiver.server import Receiver
from bettong.harness.cli import cli
from bettong.lineage.errors import UsageError
from bettong.scenarios.applications.word_count import app

LINES = ["they know they", "found it"] * 20
APPLICATION = "bettong.scenarios.applications.word_count:app"


def bettong(*words: object) -> Result:
    done = CliRunner().invoke(cli, list(map(str, words)), catch_exceptions=True)
    if done.exit_code == 2:
        raise UsageError(done.stderr)
    return done


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The command for a small run in this process."""
    (tmp_path / "words.txt").write_text("\n".join(LINES) + "\n")
    return [
        *("start", APPLICATION, "--runner", "in-process", "--batch", "15"),
        *("--checkpoint", str(tmp_path / "checkpoint")),
        *("--source", f"lines={tmp_path / 'words.txt'}", "--sink", f"totals={tmp_path / 'out'}"),
    ]


def test_it_runs_to_the_end_and_goes_on_there(words: list[str], tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    done = bettong(*words, "--metrics", metrics)
    assert (done.exit_code, done.output) == (0, "word_count: 3 batches done\n")
    rows = [
        (row["id"], row["key"], row["data"])
        for path in sorted((tmp_path / "out").glob("batch-*.jsonl"))
        for row in map(json.loads, path.read_text().splitlines())
    ]
    outputs = interpret(app, {"lines": [line.encode() for line in LINES]}).outputs
    assert sorted(rows) == sorted((o.id, o.key, o.data.decode()) for o in outputs)
    with (tmp_path / "words.txt").open("a") as text:
        text.write("and more\n")
    assert json.loads(bettong(*words, "--json").output) == {"batches": 4, "gives_up": []}
    picture = bettong("top", metrics, "--once").output
    for reported in ("batch 2", "over 3 batches", "WordTotal", "driver: execute"):
        assert reported in picture


def test_without_resilience_it_says_what_it_gives_up(words: list[str]) -> None:
    reported = json.loads(bettong(*words, "--resilience", "off", "--json").output.splitlines()[-1])
    assert reported["gives_up"][0].startswith("nothing is durable")
    with pytest.raises(UsageError, match="cannot be gone on with: give an empty folder"):
        bettong(*words)


def test_a_new_checkpoint_does_not_begin_in_a_folder_with_batches(
    words: list[str], tmp_path: Path
) -> None:
    """They would be taken for its own, which have the same numbers, and its own be lost."""
    bettong(*words)
    (tmp_path / "checkpoint").rename(tmp_path / "mislaid")
    with pytest.raises(UsageError, match="has batches of an earlier run"):
        bettong(*words)
    assert not (tmp_path / "checkpoint").exists(), "nothing was begun, and it stays so"
    (tmp_path / "mislaid").rename(tmp_path / "checkpoint")
    assert bettong(*words).exit_code == 0


def test_a_new_checkpoint_does_not_begin_with_a_receiver_that_has_batches(
    words: list[str], tmp_path: Path
) -> None:
    receiver = Receiver(ListenConfig(Address("127.0.0.1", 0)), tmp_path / "receiver")
    threading.Thread(target=receiver.run, daemon=True).start()
    host, port = receiver.address
    at_receiver = [*words[:-1], f"totals={host}:{port}"]
    try:
        assert bettong(*at_receiver).exit_code == 0
        assert bettong(*at_receiver).exit_code == 0, "the same checkpoint goes on"
        (tmp_path / "checkpoint").rename(tmp_path / "mislaid")
        for _ in range(2):  # who is started again is not let in for that
            with pytest.raises(UsageError, match=f"totals={host}:{port}: it has batches of an ear"):
                bettong(*at_receiver)
    finally:
        receiver.close()


def test_a_failure_is_a_line_of_the_log_too(words: list[str], tmp_path: Path) -> None:
    """Who reads the log alone is told why a run has ended."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "batch-00000000.jsonl").touch()
    done = CliRunner().invoke(cli, [*words, "--log-format", "json"])
    assert done.exit_code == 2
    *logged, plain = done.stderr.splitlines()
    last = json.loads(logged[-1])
    assert last["level"] == "error"
    assert plain == f"bettong: {last['message']}"
    assert "has batches of an earlier run" in plain


def test_two_sinks_do_not_share_a_folder(tmp_path: Path) -> None:
    (tmp_path / "numbers.txt").write_text("1\n2\n")
    with pytest.raises(UsageError, match="each needs its own"):
        bettong(
            *("start", "bettong.scenarios.applications.counting:app", "--runner", "in-process"),
            *("--source", f"numbers={tmp_path / 'numbers.txt'}"),
            *("--checkpoint", tmp_path / "checkpoint"),
            *("--sink", f"doubled={tmp_path}/out", "--sink", f"counted={tmp_path}/./out"),
        )


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (("--source", "lines=nowhere"), "no such file, nor is it a HOST:PORT"),
        (("--source", "lines"), "write NAME=WHERE"),
        (("--source", "lines=kafka://one:9092"), "write kafka://HOST:PORT/TOPIC"),
        (("--source", "lines=landed:none"), "no folder none yet: make it, or start the query"),
        (("--sink", "other=out"), r"has the sinks \['totals'\]"),
        (("--metrics", "0.0.0.0:9000"), "give --tls-cert FILE --tls-key FILE"),
    ],
)
def test_what_cannot_be_meant_is_said(option: tuple[str, str], why: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("one\n")
    options = {"--source": f"lines={tmp_path / 'words.txt'}", "--sink": f"totals={tmp_path}/out"}
    options |= {"--checkpoint": str(tmp_path / "checkpoint"), "--runner": "in-process"}
    options |= dict([option])
    with pytest.raises(UsageError, match=why):
        bettong("start", APPLICATION, *(word for pair in options.items() for word in pair))
    assert not (tmp_path / "checkpoint").exists(), "nothing was begun"


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("they know\n")
    with pytest.raises(UsageError, match=r"some\.txt: not a line of a metrics file: 'they know'"):
        bettong("top", tmp_path / "some.txt", "--once")
    with pytest.raises(UsageError, match=r"none\.jsonl: No such file"):
        bettong("top", tmp_path / "none.jsonl", "--once")
