"""One run of a scenario under one fault schedule, carried out and judged."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from bettong.engine import Application
from bettong.engine.interpreter import Interpretation
from bettong.harness.backends.base import Backend
from bettong.harness.checkers import Judgement, Record, check_outputs, judge, undecided
from bettong.harness.checkers.oracle import as_told, by_number, expected_outputs
from bettong.harness.checkers.registry import History, check_history, checkers
from bettong.harness.cluster.layout import Layout
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked, Carried
from bettong.harness.runs.interpreting import interpreted, not_repeatable
from bettong.harness.runs.left_state import check_left_state
from bettong.harness.runs.observed import Observed, accepted, boundaries
from bettong.harness.runs.record import RunRecord
from bettong.harness.scenario import Messages, Scenario
from bettong.lineage.errors import BettongError
from bettong.lineage.results import Anomaly, Outcome
from bettong.lineage.trace import TraceEvent

_OF_CONTENT = ("Corrupt", "Loss", "Phantom", "Reorder", "StateDivergence")
"""The anomalies that functions which give other results each time can explain."""


def run_once(
    backend: Backend,
    scenario: Scenario,
    schedule: Schedule,
    folder: Path,
    asked: Asked = Asked(),  # noqa: B008 - immutable
    messages: Messages | None = None,
) -> RunRecord:
    """Run a scenario once under a schedule and judge it.

    Args:
        folder: a folder of this run's own; what remains in it are logs and data.
        asked: how it is carried out. A run without faults is judged by what was seen before its
            last batch was done again. What was left on the disks is put in ``again`` if a new
            start changed nothing; the steps of that start are in the file of the trace if it
            changed anything, and nowhere else.
        messages: the input, by default the scenario's.

    Raises:
        ScheduleError: the schedule names what this backend does not have.
        BettongError: the system cannot be started, although no fault has fired.
    """
    schedule.check(backend.topology(scenario))
    began = time.monotonic()
    input_ = scenario.messages() if messages is None else messages
    layout = Layout(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for stream, sent in input_.items():
        layout.input(stream).write_bytes(b"".join(message + b"\n" for message in sent))
    carried = Carried(backend, scenario, schedule, layout, input_, asked)
    carried.carry_out(lambda: _judge_carried(carried, carried.seen())[1].verdict == "valid")
    last = carried.last or carried.seen()
    before, judgement = _judge_carried(carried, last)
    changed = before.verdict == "valid" and judgement.verdict != "valid"
    carried.lap("judge")
    judged = judgement if schedule.faults or asked.again is not None else before
    if before.verdict == "invalid" and judged.verdict != "invalid":
        judged = before  # nobody starts it again for its readers
    if _rests_on_functions(judged, schedule):
        judged = _if_repeatable(judged, scenario, input_)
    if asked.again is not None and carried.left and judged.verdict == "valid":
        asked.again.add(carried.left)
    again_changed = ""
    if changed and carried.started_again and judgement.verdict == "invalid":
        again_changed = carried.how_ended
        _append(asked.trace, carried.control.events)
    notes = [note for course in carried.courses for note in course.notes]
    if judged.verdict == "unknown":
        notes.append(judged.reason)
    return RunRecord(
        schedule,
        _outcome(judged, carried.first.not_fired),
        carried.first.events,
        judged,
        changed and not again_changed,
        carried.first.evidence,
        carried.first.not_fired,
        time.monotonic() - began,
        carried.laps,
        tuple((str(r.id), str(r.value)) for r in last.records),
        "; ".join(notes),
        carried.first.times,
        again_changed,
        carried.jvms_spared,
    )


def _judge_carried(carried: Carried, last: Observed) -> tuple[Judgement, Judgement]:
    """What was right before anything was done again, and after it."""
    scenario, layout, application = carried.scenario, carried.layout, carried.application
    looked = carried.looks.judged((carried.drained or last).records)
    also = [*carried.stuck, *carried.died, *looked]
    taken_in = accepted(scenario, layout, carried.messages)
    try:
        ends = boundaries(scenario, layout, taken_in)
    except BettongError as e:
        also.append(Anomaly("StateDivergence", seen=str(e)))
        ends = [{stream: len(taken) for stream, taken in taken_in.items()}]
    right = interpreted(scenario.application, taken_in, ends)
    expected = _expected(application, scenario, taken_in, right)
    diverged = (check_left_state(application, right, state) for state in carried.states)
    wrong = [(*a, *b) for a, b in zip_longest(diverged, carried.left_behind, fillvalue=())]
    if carried.blind:
        judgement = undecided(carried.blind)
    else:
        history = History(expected, last.records, carried.events)
        judgement = _judge(history, last, also, next(filter(None, wrong), ()))
    if carried.unended:
        judgement = _all_the_same(judgement, carried.unended)
    if carried.drained is None:
        return judgement, judgement
    history = History(expected, carried.drained.records, carried.until_drained)
    left = wrong[0] if wrong else ()
    before = [*carried.died_before, *looked]
    return _judge(history, carried.drained, before, left), judgement


def _append(trace: Path | None, events: Sequence[TraceEvent]) -> None:
    """What came after the last batch, to the file of what came until then."""
    if trace is not None:
        with trace.open("a", encoding="utf-8") as file:
            file.writelines(event.to_json() + "\n" for event in events)


def _expected(
    application: Application,
    scenario: Scenario,
    messages: Messages,
    right: Interpretation,
) -> list[Record]:
    expected = expected_outputs(application, right)
    if scenario.inputs == "kafka":  # a topic's one partition is a stream of its own
        expected = [replace(r, id=str(r.id).replace("/", "-0/", 1)) for r in expected]
    if scenario.rows and messages == scenario.messages():
        expected = as_told(expected, scenario.rows)
    return expected


def _judge(
    history: History, seen: Observed, also: Sequence[Anomaly], left: Sequence[Anomaly]
) -> Judgement:
    found, failures = check_history(history, checkers())
    also = [*seen.unreadable, *also, *found]
    judgement = check_outputs(history.expected, history.observed, also=also)
    if left and judgement.guarantee == "effectively-once":
        judgement = check_outputs(history.expected, history.observed, also=[*also, *left])
    return (
        undecided("; ".join(failures)) if failures and judgement.verdict == "valid" else judgement
    )


def _all_the_same(judgement: Judgement, unended: tuple[str, ...]) -> Judgement:
    """The judgement of a run that did not end while faults were in force that had not come to
    their own end: that it did not, and what is missing, says nothing."""
    wrong = [a for a in judgement.anomalies if a.kind not in ("Stuck", "Loss")]
    if wrong:
        return judge(wrong)
    return undecided(f"{', '.join(unended)} was still in force when the run ended")


def _rests_on_functions(judged: Judgement, schedule: Schedule) -> bool:
    """Whether it would say nothing if the functions gave other results each time: that all is well
    without faults, and what is wrong with the outputs, if nothing else is."""
    if judged.verdict == "invalid":
        return all(a.kind in _OF_CONTENT for a in judged.anomalies)
    return judged.verdict == "valid" and not schedule.faults


def _if_repeatable(judged: Judgement, scenario: Scenario, messages: Messages) -> Judgement:
    ends = by_number(messages, scenario.batch)
    differs = not_repeatable(scenario.application, messages, ends)
    if not differs:
        return judged
    return undecided(
        f"the functions of {scenario.application} do not give the same results each time "
        f"({differs}): make them depend on message and state alone, not on a clock, chance or the "
        "order of a set"
    )


def _outcome(judgement: Judgement, not_fired: tuple[str, ...]) -> Outcome:
    if judgement.verdict == "unknown":
        return "unknown"
    if judgement.verdict == "invalid":
        return "violation"
    return "not-injected" if not_fired else "good"
