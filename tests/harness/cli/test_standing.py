"""Progress tells what was found, what is tried, and how much is left."""

from __future__ import annotations

import io
import json

from bettong.harness.cli.standing import ProgressLines, Standing
from bettong.harness.events import (
    Event,
    Finished,
    RunJudged,
    RunStarted,
    Started,
    ViolationConfirmed,
)
from bettong.lineage.results import Result, Run

CRASH = ("crash(driver, before batch=1/commits)",)


def judged(number: int, planned: int | None) -> RunJudged:
    return RunJudged(f"run{number}", Run(CRASH, "good"), number, planned)


def test_what_is_left_takes_as_long_as_what_was() -> None:
    now = 100.0
    standing = Standing(clock=lambda: now)
    assert (standing.words(), standing.left_s) == ("", None)
    standing(Started("Mine", "sink"))
    now = 105.0
    standing(RunStarted("run1", CRASH))
    assert (standing.now, standing.left_s) == (CRASH, None)
    now = 125.0
    for number in range(1, 5):
        standing(judged(number, 12))
    assert (standing.seconds, standing.left_s) == (25.0, 40.0)
    standing(ViolationConfirmed(CRASH, ("Duplicate",)))
    assert standing.words() == "4 of 12 runs, 1 found, about 40 s left"


def test_runs_without_a_fault_say_nothing_of_how_long_the_others_take() -> None:
    now = 0.0
    standing = Standing(clock=lambda: now)
    standing(Started("Mine", "job"))
    for number in (1, 2):
        standing(RunStarted("clean", ()))
        now += 50.0
        standing(judged(number, None))
    standing(RunStarted("two steps a batch", ()))
    now += 30.0
    standing(judged(3, 23))
    assert standing.left_s == 600.0  # as if the third one, made ahead, had taken all that time
    now += 10.0
    for number in (4, 5, 6):
        standing(RunStarted(f"run{number}", CRASH))
        standing(judged(number, 23))
    assert standing.left_s == 170.0


def test_where_it_is_not_known_how_much_is_left_nothing_is_promised() -> None:
    standing = Standing(clock=lambda: 0.0)
    standing(Started("Mine", "sink"))
    standing(judged(3, None))
    assert (standing.words(), standing.left_s) == ("3 runs", None)
    standing(judged(1, None))
    assert standing.words() == "1 run"


def test_each_question_begins_anew() -> None:
    standing = Standing()
    for event in (Started("Mine", "sink"), judged(9, 9), ViolationConfirmed(CRASH, ("Loss",))):
        standing(event)
    standing(Started("Other", "sink"))
    assert (standing.subject, standing.runs, standing.found) == ("Other", 0, [])


def test_lines_of_json_tell_the_same() -> None:
    written = io.StringIO()
    lines = ProgressLines(written)
    events: list[Event] = [
        Started("Mine", "sink"),
        RunStarted("run1", CRASH),
        judged(1, 4),
        ViolationConfirmed(CRASH, ("Duplicate",)),
        Finished(Result("Mine", "sink", "invalid")),
    ]
    for event in events:
        lines(event)
    told = [json.loads(line) for line in written.getvalue().splitlines()]
    assert len(told) == len(events)
    assert told[1]["now"] == list(CRASH)
    assert (told[2]["runs"], told[2]["planned"]) == (1, 4)
    assert (told[4]["planned"], told[4]["left_s"]) == (1, 0.0)
    assert told[4]["found"] == [{"faults": list(CRASH), "kinds": ["Duplicate"]}]
