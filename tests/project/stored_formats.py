"""The one description of what Bettong stores: how each format is written, what of it is read, and
where its records end. Damage of all of them is made from it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.ingest.journal import Journal
from bettong.engine.net.block import Block
from bettong.engine.receiver.ledger import Ledger
from bettong.engine.receiver.output import read_lines
from bettong.engine.sinks.files import FileSink, read_rows
from bettong.engine.sources.directory import DirectorySource
from bettong.engine.sources.landed import LandedFolder
from bettong.engine.state.planned import PlannedBatch, note
from bettong.engine.state.store import LocalStore
from bettong.engine.storage.log import Position, RecordLog, segment_path
from bettong.harness.faults.kinds import Crash
from bettong.harness.faults.point import Point
from bettong.harness.faults.schedule import Schedule
from bettong.harness.queries import counterexample as of_queries
from bettong.harness.queries.request import Request
from bettong.harness.runs.counterexample import CounterexampleFile
from bettong.lineage.results import Anomaly, Result
from bettong.lineage.search.question_log import QuestionLog
from bettong.lineage.trace import MessageRange, TraceEvent, read_trace, write_trace
from bettong.scenarios.applications.word_count import app

Edges = Sequence[int]
"""Where the records of a file end, in bytes."""


@dataclass(frozen=True)
class Format:
    """One stored format.

    Attributes:
        write: fills an empty folder.
        files: patterns of the files in it that have the format, one for each kind of them.
        meaning: what whoever uses the folder gets from it; may change the folder.
        cut_is_a_crash: a file that ends early is what a crash may leave: then a part of the
            meaning, from its beginning on, is right.
    """

    name: str
    write: Callable[[Path], object]
    files: Sequence[str]
    meaning: Callable[[Path], Any]
    cut_is_a_crash: bool = False


def edges_of(file: Path, content: bytes) -> Edges:
    """Of text the ends of lines, of a log of records those that its records have."""
    if file.suffix == ".log":
        found: list[Position] = []
        log = RecordLog(
            file.parent,
            head=bytes,
            on_head=lambda _: None,
            visit=lambda record: found.append(record.position),
        )
        log.close()
        starts = [p.offset for p in found if segment_path(file.parent, p.segment) == file]
        return [*starts, len(content)]
    ends = [n + 1 for n, byte in enumerate(content) if byte == 0x0A]
    return ends or [len(content) // 2, len(content)]


def damages(content: bytes, edges: Edges, seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Kinds of damage, ``count`` of each, each different from the content."""
    draw = random.Random(seed)
    records = [content[a:b] for a, b in zip([0, *edges], edges, strict=False)]
    records.append(content[edges[-1] :] if edges else b"")
    yield from (("emptied", b""), ("zeroed", bytes(len(content))), ("doubled", content * 2))
    for _ in range(count):
        at = draw.randrange(len(content))
        yield "cut", content[:at]
        yield "cut at a record", content[: draw.choice([0, *edges])]
        flipped = bytes([content[at] ^ 1 << draw.randrange(8)])
        yield "bit", content[:at] + flipped + content[at + 1 :]
        size = min(draw.choice((1, 16, 512)), len(content) - at)
        yield "zero block", content[:at] + bytes(size) + content[at + size :]
        one, other = draw.randrange(len(records)), draw.randrange(len(records))
        swapped = list(records)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        yield "records swapped", b"".join(swapped)
        yield "record twice", b"".join([*records[:one], records[one], *records[one:]])
        yield "record removed", b"".join(records[:one] + records[one + 1 :])
        numbers = list(re.finditer(rb"(?<![\w.\"-])\d+(?![\w.\"])", content))
        if numbers:
            number = draw.choice(numbers)
            wrong = draw.choice((b"null", b'"x"', b"[]", b"-1", b"1e400", b"true"))
            yield "wrong type", content[: number.start()] + wrong + content[number.end() :]


# --- answers of searches


def _result(folder: Path) -> None:
    anomaly = Anomaly("Duplicate", ("lines/3.1",), "they", 1, {"times": 2})
    Result(
        "word_count", "invalid", "at-least-once", "per-key", anomalies=(anomaly,), seed=7,
        reason="told twice", assumptions=("kills",), details={"n": 3},
    ).write(folder)  # fmt: skip


def _counterexample(folder: Path) -> None:
    crash = Crash("driver", Point("batch=1/sink.commit", "after", 2), False)
    found = CounterexampleFile("word_count", Schedule((crash,)), {"workers": 2, "replay": False})
    found.write(folder / "counterexample-1.json")


def _trace(folder: Path) -> None:
    write_trace(
        folder / "good.jsonl",
        [
            TraceEvent(f"batch={n}/sink.commit", phase, "driver", 1, (f"batch={n}/read",),
                       (MessageRange("lines", n, n + 4),), "driver->receiver", {"rows": n})
            for n in range(6)
            for phase in ("before", "after")
        ],
    )  # fmt: skip


def _known(folder: Path) -> list[dict[str, Any]]:
    known: list[dict[str, Any]] = []
    QuestionLog(folder / "search.jsonl", "q", lambda v: known.append(v) is None).close()
    return known


def _search_log(folder: Path) -> None:
    log = QuestionLog(folder / "search.jsonl", "q", lambda _: True)
    for n in range(6):
        log.add({"schedule": [f"crash:{n}"], "outcome": "good", "runs": n})
    log.close()


# --- what the gateway and the receiver keep


def _journal(folder: Path) -> None:
    journal = Journal(folder / "lines", "lines", segment_bytes=300)
    for n in range(0, 24, 2):
        journal.append(Block.of([b"message %d" % n, b"message %d" % (n + 1)]))
    journal.close()


def _messages(folder: Path) -> list[bytes]:
    journal = Journal(folder / "lines", "lines", segment_bytes=300)
    try:
        assert journal.base == 0
        pieces = list(journal.read(0, journal.end))
        return [message for piece in pieces for message in piece.messages.payloads()]
    finally:
        journal.close()


def _ledger(folder: Path) -> None:
    ledger = Ledger(folder / "app", "app", segment_bytes=400)
    ledger.open(1)
    for batch in range(6):
        row = b'{"id":"lines/%d"}\n' % batch
        ledger.prepare(1, batch, 0, 0, 0, True, row)
        ledger.commit(1, batch, {0: 0})
    ledger.close()


def _visible(folder: Path) -> list[bytes]:
    """What readers see once the receiver has started again and the batches it does not know of
    were committed once more."""
    ledger = Ledger(folder / "app", "app", segment_bytes=400)
    try:
        ledger.open(ledger.epoch + 1)
        for batch in range(6):
            if not ledger.is_committed(batch):
                row = b'{"id":"lines/%d"}\n' % batch
                ledger.prepare(ledger.epoch, batch, 0, 0, 0, True, row)
                ledger.commit(ledger.epoch, batch, {0: 0})
    finally:
        ledger.close()
    return list(read_lines(folder / "app"))


def _landed(folder: Path) -> None:
    landed = LandedFolder(folder / "landed")
    for batch in range(3):
        landed.put("query", batch, pa.array([b"%d, %d" % (batch, n) for n in range(4)]))


def _of_landing(folder: Path) -> list[bytes]:
    landed = LandedFolder(folder / "landed")
    assert landed.extent().begin == 0
    messages: list[bytes] = landed.read(0, landed.extent().end).to_pylist()
    return messages


# --- a run's checkpoint: state files, manifests, plans, epochs, the index of a folder


def _config(folder: Path, end: str | None) -> RunConfig:
    return RunConfig(
        folder / "checkpoint",
        {"lines": DirectorySource(folder / "in", folder / "checkpoint" / "index", end)},
        {"totals": FileSink(folder / "out")},
        batch_messages=8,
        state_partitions=2,
    )


def _file(folder: Path, name: str, first: int) -> None:
    lines = [f"they know number {n % 5}" for n in range(first, first + 8)]
    (folder / "in" / name).write_text("\n".join(lines) + "\n")


def _checkpoint(folder: Path) -> None:
    (folder / "in").mkdir()
    for first, name in enumerate("ab"):
        _file(folder, name, 8 * first)
        run_in_process(app, _config(folder, None))
    store = LocalStore(folder / "checkpoint" / "state")
    note(store, PlannedBatch(2, {"lines": 16}, {"lines": 19}))  # and then the driver was killed


def _gone_on(folder: Path) -> list[str]:
    _file(folder, "z", 16)
    run_in_process(app, _config(folder, "z"))
    return sorted(json.dumps(row) for row in read_rows(folder / "out"))


CHECKPOINT = (
    "checkpoint/index/*.json",
    "checkpoint/state/epochs/*.json",
    "checkpoint/state/manifests/*.json",
    "checkpoint/state/planned/*.json",
    "checkpoint/state/state/*/*.arrow",
)
"""Each kind of file that a run keeps, but for Spark's own."""

FORMATS = (
    Format("result", _result, ("result.json",), lambda f: Result.read(f).to_dict()),
    Format(
        "counterexample",
        _counterexample,
        ("counterexample-1.json",),
        lambda f: CounterexampleFile.read(f / "counterexample-1.json"),
    ),
    Format(
        "counterexample of a sink",
        lambda f: of_queries.write(Request("s.py:S"), ("crash:1",), f),
        ("counterexample-1.json",),
        lambda f: of_queries.read(f / "counterexample-1.json", {}, {}),
    ),
    Format("trace", _trace, ("good.jsonl",), lambda f: list(read_trace(f / "good.jsonl"))),
    Format("search log", _search_log, ("search.jsonl",), _known, cut_is_a_crash=True),
    Format("journal", _journal, ("lines/*.log",), _messages, cut_is_a_crash=True),
    Format("ledger", _ledger, ("app/log/*.log",), _visible),
    Format("output", _ledger, ("app/output.jsonl",), _visible),
    Format("length of the output", _ledger, ("app/output.length",), _visible),
    Format("landed batches", _landed, ("landed/*.landed",), _of_landing),
    Format("checkpoint", _checkpoint, CHECKPOINT, _gone_on),
    Format("epochs of a sink", _checkpoint, ("out/_epochs/*",), _gone_on),
)
