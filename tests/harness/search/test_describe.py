"""Counterexamples in words."""

from __future__ import annotations

from bettong.harness.faults.kinds import Crash, OmitReply, Storage
from bettong.harness.faults.point import Point
from bettong.harness.faults.wording import moment
from bettong.harness.runs.carried import KILLED, POWER_CUT
from bettong.harness.search.describe import as_they_fired, counterexample_words
from bettong.lineage.results import Anomaly
from bettong.lineage.trace import TraceEvent


def test_faults_and_anomalies_make_a_sentence() -> None:
    reported = counterexample_words(
        [Crash("driver", Point("batch=2/commits"))],
        [Anomaly("Duplicate", (f"lines/{n}.0",)) for n in range(6)],
    )
    assert reported == (
        "The driver was killed before Spark had noted that batch 2 was done and came back. "
        "Afterwards lines/0.0, lines/1.0, lines/2.0, lines/3.0 and 2 more came more than once."
    )


def test_faults_are_told_in_the_order_in_which_they_fired() -> None:
    crash = Crash("receiver", Point("receiver.prepare/batch=1/p=0/a=0", "after"))
    refused = Storage(Point("receiver.commit/batch=0"), "EIO", 14, "receiver")
    unfired = Crash("driver", Point("batch=2/commits"))
    events = [TraceEvent(f"fault/{f.id}", "after", "receiver") for f in (refused, crash)]
    told = as_they_fired([unfired, crash, refused], events)
    assert told == [refused, crash, unfired]
    assert as_they_fired(told, []) == told


def test_what_only_the_start_after_the_last_batch_has_shown_is_said_so() -> None:
    lost = OmitReply("driver->receiver", Point("batch=1/sink.commit"))
    reported = counterexample_words([lost], [Anomaly("Stuck")], again=POWER_CUT)
    assert "All was right until the power was cut after the last batch" in reported
    assert counterexample_words([], [], again=KILLED).startswith(
        "No fault fired. All was right until every node was killed"
    )


def test_a_lost_answer_is_distinguished_from_a_lost_request() -> None:
    lost = OmitReply("driver->receiver", Point("batch=1/sink.commit", "before", 2))
    reported = counterexample_words([lost], [])
    assert "was carried out, but its answer was lost" in reported
    assert "(time 2)" in reported


def test_a_step_without_words_is_named() -> None:
    assert moment(Point("batch=1/something.else", "after")) == "after batch=1/something.else"
