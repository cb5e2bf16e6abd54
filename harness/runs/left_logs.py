"""What the logs of the gateway and the receiver say when all is done, to who starts from them: all
that was sent is there to its end, nothing is kept that nobody wants any more, and no rows wait for
a commit. A mistake in what is written down shows in no output until a restart falls at the moment
that needs it; in the log it is there at once.

What cannot be read is left to its server, which says so when it is started again, if it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from bettong.engine.ingest.journal import Journal
from bettong.engine.receiver.ledger import Ledger
from bettong.harness.cluster.layout import Layout
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Storage
from bettong.harness.faults.step_ids import FAULT, NODE_START, StepId
from bettong.harness.runs.folder_content import MOST_KNOWN, FolderContent
from bettong.lineage.errors import BettongError
from bettong.lineage.results import Anomaly
from bettong.lineage.trace import TraceEvent

_Log = TypeVar("_Log", Journal, Ledger)

_LAST_SEGMENTS = 2
"""The one that holds the last messages, and an empty one that was begun for more."""
_COMMIT = "receiver.commit/"
_DISTURBS = (FAULT, NODE_START)


def check_logs(
    layout: Layout,
    sent: Mapping[str, int],
    *,
    swept: Collection[str] = (),
    unswept: Collection[int] | None = None,
    not_started: Collection[str] = (),
) -> tuple[Anomaly, ...]:
    """A StateDivergence for each stream that the gateway does not have whole and each log that its
    server could not start from, a Leak for each kind of thing that a log keeps.

    Args:
        layout: of the run, of which every sender and batch has come to its end.
        sent: how many messages each stream has, all of them acknowledged.
        swept: streams whose old segments the last release has had the occasion to remove.
        unswept: batches whose commit may not have removed the old segments of the receiver; None
            where that may be any.
        not_started: servers that nobody starts again, so that they cannot say themselves what they
            could not start from. Only such as write what the engine's own do: others may write
            what is theirs alone to read.
    """
    damaged: list[Anomaly] = []
    found = (
        *_journals(layout.gateway / "streams", sent, swept, damaged),
        *_ledgers(layout.receiver, unswept, damaged),
    )
    return (*found, *(a for a in damaged if a.seen["server"] in not_started))


def swept_in_the_end(
    sent: Mapping[str, int], faults: Sequence[Fault], events: Sequence[TraceEvent] = ()
) -> set[str]:
    """Streams whose last release nothing has disturbed: a call to the disk that failed before it is
    no reason to keep what it was to remove, nor is any fault that was over when it began.

    Args:
        events: the trace of the run.
    """
    if not _fail_once(faults):
        early = _begun_before_the_end_of_faults(events)
        last = {s: f"gateway.release/{s}/{number - 1}" for s, number in sent.items()}
        return {s for s, step in last.items() if not early.get(step, True)}
    hit = {point.step for fault in faults for point in fault.points}
    return {s for s, number in sent.items() if f"gateway.release/{s}/{number - 1}" not in hit}


def commits_disturbed(
    faults: Sequence[Fault], events: Sequence[TraceEvent] = ()
) -> set[int] | None:
    """The batches amid whose commit a call to the disk has failed, or of which one had begun while
    faults of other kinds were not over; None where nothing tells of these.

    Args:
        events: the trace of the run.
    """
    if not _fail_once(faults):
        if not events:
            return None
        early = _begun_before_the_end_of_faults(events)
        known = ((StepId.parse(s).batch, e) for s, e in early.items() if s.startswith(_COMMIT))
        return {batch for batch, is_early in known if is_early and batch is not None}
    ids = (StepId.parse(point.step) for fault in faults for point in fault.points)
    return {id.batch for id in ids if id.batch is not None and str(id).startswith(_COMMIT)}


def _begun_before_the_end_of_faults(events: Sequence[TraceEvent]) -> dict[str, bool]:
    """For each step whether it was begun before the last that a fault did, or a node started."""
    last = max((n for n, e in enumerate(events) if e.step.startswith(_DISTURBS)), default=-1)
    first: dict[str, int] = {}
    for n, event in enumerate(events):
        if event.phase == "before":
            first.setdefault(event.step, n)
    return {step: n < last for step, n in first.items()}


def _fail_once(faults: Sequence[Fault]) -> bool:
    return all(isinstance(fault, Storage) and not fault.lasting for fault in faults)


def _journals(
    streams: Path, sent: Mapping[str, int], swept: Collection[str], damaged: list[Anomaly]
) -> Iterator[Anomaly]:
    folders = _folders(streams)
    for stream in sorted(sent.keys() - {folder.name for folder in folders}) if folders else ():
        yield _not_noted(stream, sent[stream], 0, False)
    for folder in folders:
        journal = _journal(FolderContent.of(folder))
        if isinstance(journal, str):
            damaged.append(_cannot_be_opened("gateway", folder.name, journal))
            continue
        number = sent.get(folder.name)
        if number is not None and (journal.end, journal.ended) != (number, True):
            yield _not_noted(folder.name, number, journal.end, journal.ended)
        if journal.released < journal.end:
            yield leak(
                f"all {journal.end} messages of {folder.name} released",
                f"released below {journal.released}",
                f"the gateway keeps messages of {folder.name} that nobody asks for again",
            )
        segments = len(list(folder.glob("segment-*.log")))
        if folder.name in swept and segments > _LAST_SEGMENTS:
            yield leak(
                f"at most {_LAST_SEGMENTS} segments of {folder.name}",
                f"{segments} segments",
                f"the gateway keeps segments of {folder.name} that hold released messages only",
            )


@dataclass(frozen=True, slots=True)
class _Noted:
    """What a journal says to who starts from it."""

    end: int
    ended: bool
    released: int


@lru_cache(MOST_KNOWN)
def _journal(content: FolderContent) -> _Noted | str:
    """What it says, or why nobody can start from it."""
    journal = _opened(Journal, content)
    if isinstance(journal, str):
        return journal
    return _Noted(journal.end, journal.ended, journal.released)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a ledger says to who starts from it.

    Attributes:
        staged: the batches of which it has rows that are not committed.
        last: the last that is; -1 without any.
    """

    staged: tuple[int, ...]
    last: int


@lru_cache(MOST_KNOWN)
def _ledger(content: FolderContent) -> _Kept | str:
    """What it says, or why nobody can start from it."""
    ledger = _opened(Ledger, content)
    if isinstance(ledger, str):
        return ledger
    return _Kept(tuple(sorted(ledger.staged)), ledger.committed.last if ledger.committed else -1)


def _opened(kind: Callable[[Path, str], _Log], content: FolderContent) -> _Log | str:
    """A log as it is for who starts from it, closed again, or why nobody can."""
    with content.copied() as copy:
        try:
            log = kind(copy, content.name)
        except BettongError as e:
            return str(e).replace(f"{copy}/", "").replace(str(copy), copy.name)
        log.close()
    return log


def _not_noted(stream: str, number: int, end: int, ended: bool) -> Anomaly:
    return Anomaly(
        "StateDivergence",
        expected={"messages": number, "ended": True},
        seen={"messages": end, "ended": ended},
        note=f"the gateway has not noted all of {stream} that it has acknowledged",
    )


def _cannot_be_opened(server: str, log: str, said: str) -> Anomaly:
    return Anomaly(
        "StateDivergence",
        expected={"server": server, "starts from": log},
        seen={"server": server, "says": said},
        note=f"the {server} could not be started again: {said}",
    )


def _ledgers(
    receiver: Path, unswept: Collection[int] | None, damaged: list[Anomaly]
) -> Iterator[Anomaly]:
    """Every batch is committed, and an epoch that begins drops what older ones have staged."""
    for folder in _folders(receiver):
        kept = _ledger(FolderContent.of(folder))
        if isinstance(kept, str):
            damaged.append(_cannot_be_opened("receiver", folder.name, kept))
            continue
        if kept.staged:
            yield leak(
                f"no rows of {folder.name} that wait for a commit",
                f"rows of {', '.join(f'batch {batch}' for batch in kept.staged)}",
                f"the receiver keeps rows of {folder.name} that no batch will commit",
            )
        segments = len(list(folder.glob("log/segment-*.log")))
        if unswept is not None and kept.last not in unswept and segments > _LAST_SEGMENTS:
            yield leak(
                f"at most {_LAST_SEGMENTS} segments of the log of {folder.name}",
                f"{segments} segments",
                f"the receiver keeps segments of {folder.name} that hold committed rows only",
            )


def _folders(top: Path) -> list[Path]:
    return sorted(path for path in top.iterdir() if path.is_dir()) if top.is_dir() else []


def leak(expected: str, seen: object, note: str) -> Anomaly:
    """What is left over."""
    return Anomaly("Leak", expected=expected, seen=seen, note=note)
