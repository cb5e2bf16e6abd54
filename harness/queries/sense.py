"""Whether a run without faults proves anything at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bettong.harness.queries.raised import cause, remedy
from bettong.harness.queries.run.job import NO_QUERY
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.sink.commits import NO_JOURNAL
from bettong.harness.queries.sink.rows import JUDGED
from bettong.lineage.errors import BettongError, UsageError
from bettong.lineage.trace import TraceEvent

_DAYS = ("%Y-%m-%d", "%Y%m%d", "%Y/%m/%d", "%Y_%m_%d")
_DATED = "files are named by the day ("
DATED_ANEW = "dated_anew"
"""Of an execution: what becomes of files that are named by the day was seen in it."""


class VacuousError(BettongError):
    """The clean run proves nothing. Exit code 3."""


def expect_one_query(name: str, run: QueryRun) -> None:
    """Raises VacuousError where several were started: their steps could not be told apart."""
    if run.queries > 1:
        raise VacuousError(
            f"{name}: it starts {several(run.queries)}: have it start one of them, for instance by "
            "an argument or a variable, and judge each by itself"
        )


def several(queries: int) -> str:
    """Why a run in which so many were started is not judged."""
    return f"{queries} streaming queries, and one is judged at a time"


def expect_sense(name: str, run: QueryRun) -> None:
    """Raises VacuousError or UsageError when a run without faults proves nothing."""
    expect_one_query(name, run)
    for error in run.errors:
        if NO_QUERY in error:
            raise UsageError(f"{name}: {error.partition(': ')[2]}")
    if not any(e.step == "batch=0/offsets" for e in run.events):
        why = _failure(run.errors[0]) if run.errors else "no error"
        raise VacuousError(f"{name}: no batch was begun: {why}")
    if not run.drained:
        if not run.errors:
            _expect_checkpoint(name, run)  # elsewhere nobody sees what it has consumed
            raise VacuousError(f"{name}: the query does not end though no fault was injected")
        why = _failure(run.errors[-1])
        raise VacuousError(f"{name}: the query fails without any fault: {why}")
    if run.unused:
        raise UsageError(
            f"{name}: no byte crossed the link to {', '.join(run.unused)}: connect to "
            f"env.address({run.unused[0]!r}) instead of the server's own address"
        )
    if run.left:
        raise UsageError(
            f"{name}: its client asked {', '.join(run.left)} where to go and went past the "
            "link: have the broker advertise itself as localhost or 127.0.0.1, with the port "
            "of the endpoint"
        )
    _expect_checkpoint(name, run)
    if run.unreadable:
        raise UsageError(
            f"{name}: read() fails after a run without faults: {cause(run.unreadable)}"
        )
    if not run.rows:
        raise VacuousError(
            f"{name}: read() returned nothing after a run without faults: "
            "it must return the rows that are in the target"
        )


def _expect_checkpoint(name: str, run: QueryRun) -> None:
    if not run.checkpoint_used:
        raise UsageError(
            f"{name}: its query does not use env.checkpoint: "
            'give it .option("checkpointLocation", env.checkpoint)'
        )


def _failure(error: str) -> str:
    raised = cause(error)
    return f"{raised.rstrip('.')}; {remedy(raised)}"


def expect_empty(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raises UsageError when ``setup`` has left rows of the run before: they would make up for
    rows that are lost."""
    if rows:
        raise UsageError(
            f"{name}: setup() leaves {len(rows)} row(s) of an earlier run, such as "
            f"{rows[0].get('id')}: it must make an empty target, or they would hide a loss"
        )


def expect_over_links(name: str, run: QueryRun) -> None:
    """Raises UsageError where the query was seen to be connected to a server past its link: what it
    asks there is not seen, never hit, and taken to leave nothing behind."""
    if run.past:
        past = sorted(run.past)
        raise UsageError(
            f"{name}: its query connects to {', '.join(past)} past the link, where no request is "
            f"hit: connect to env.address({past[0]!r}) in tasks, threads and settings as well, and "
            "have a server that tells its clients where to go next name localhost or 127.0.0.1"
        )


def expect_keys(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raises UsageError when an order is promised of rows whose key nobody sees: it would count as
    kept without having been looked at."""
    if not any("key" in row for row in rows):
        raise UsageError(
            f"{name}: ordered = True, but read() returns rows without `key`: return the key as "
            "well, or leave the order out"
        )


def expect_values(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raises UsageError where each row without a fault has nothing in a column that is judged: it
    is lost, or it is not the sink's to keep."""
    for column in JUDGED:
        given = [row[column] for row in rows if column in row]
        if given and all(value is None for value in given):
            raise UsageError(
                f"{name}: read() returns None as `{column}` in every row: it is lost, or asked for "
                "under another name; leave it out of what read() returns if it is not kept"
            )


def keeps_in_sight(run: QueryRun) -> bool:
    """Whether each batch of a run without faults, all of which have rows, changed something in
    its folder or sent a server anything between its plan and its end. If not, the rows are
    elsewhere."""
    return all(_batches_in_sight(run))


def unasked(run: QueryRun) -> list[str]:
    """Endpoints to which bytes went, in ``setup`` or ``read``, and of which the query itself has
    asked nothing."""
    met = {talk.endpoint for talk in run.recording.conversations}
    asked = (r.endpoint for r in run.recording.requests if r.order > run.starts[0])
    return sorted(met.difference(asked))


def expect_asked(name: str, run: QueryRun) -> None:
    """Raises UsageError when nothing is seen of what the query writes, and it asks nothing of an
    endpoint over the link: it goes past it, so that no request would be hit."""
    if (past := unasked(run)) and not keeps_in_sight(run):
        raise UsageError(
            f"{name}: no request of write() crossed the link to {', '.join(past)}, and nothing "
            f"changed in env.workdir: connect to env.address({past[0]!r}) there as well as in "
            "setup() and read()"
        )


def changes_in_sight(run: QueryRun) -> bool:
    """Whether any batch of a run without faults did so: not every batch of a job puts something
    out."""
    return any(_batches_in_sight(run))


def _batches_in_sight(run: QueryRun) -> Iterator[bool]:
    durable = {(m.point.step, m.point.phase): m.durable for m in run.crash_points}
    for n in {m.batch for m in run.crash_points if m.batch is not None}:
        planned = durable.get((f"batch={n}/offsets", "after"))
        yield planned != durable.get((f"batch={n}/commits", "before"))


def difference(first: QueryRun, second: QueryRun) -> str:
    """In what two runs without faults differ."""
    a, b = first.steps, second.steps
    if a != b:
        odd = sorted(set(a) ^ set(b))
        differs = f"their steps do, e.g. {odd[0] if odd else 'how often one is taken'}"
    else:
        differs = "the rows that were read back do"
    beside = first.concurrent | second.concurrent
    return f"{differs}; {in_turn(beside)}" if beside else differs


def dated(events: Iterable[TraceEvent], today: datetime) -> set[str]:
    """Of files whose names hold the day on which they are written one, as what makes a verdict
    unsure; none if there are none. By another clock it may be the day before, or after."""
    found = _days_named(events, today)
    return {f"{_DATED}{min(found)}"} if found else set()


def dated_anew(events: Iterable[TraceEvent], today: datetime) -> bool:
    """Whether files that were written after a restart are named by a day by which those before it
    are not."""
    before: list[TraceEvent] = []
    after: list[TraceEvent] = []
    for event in events:
        (before if event.incarnation == 1 else after).append(event)
    return bool(_days_named(after, today) - _days_named(before, today))


def undated(beside: Iterable[str]) -> set[str]:
    """What makes a verdict unsure, where it was tried what becomes of files that are named by the
    day."""
    return {each for each in beside if not each.startswith(_DATED)}


def _days_named(events: Iterable[TraceEvent], today: datetime) -> set[str]:
    """The days around this one that names of files hold, as they are written there."""
    return days_in((str(e.detail.get("path", "")) for e in events if e.detail.get("op")), today)


def days_in(texts: Iterable[str], today: datetime) -> set[str]:
    """The days around this one that any of these texts has, as they are written there."""
    looked_at = set(texts)
    days = {(today + timedelta(days=n)).strftime(f) for n in range(-1, 3) for f in _DAYS}
    return {day for day in days if any(day in text for text in looked_at)}


def in_turn(beside: Collection[str]) -> str:
    """What to do where a query's code does several things at once, of which these are some."""
    if (first := min(beside)).startswith(NO_JOURNAL):
        return (
            f"of {first} a crash amid a commit leaves what nobody can tell, seldom a database: "
            "leave the mode as it is, or take WAL"
        )
    if first.startswith(_DATED):
        return (
            f"{first}): a replay on the next day gives them other names, which was not tried: take "
            "names from the batch's id or from its rows"
        )
    return (
        f"its code does several things at once ({first}), and which of them are done when "
        "the driver dies is chance: give them to a ThreadPoolExecutor, whose threads go on in turn "
        "under a check, or have the function's own thread do them, one after the other, and wait "
        "for what it starts; where they come in any order, check each"
    )
