"""What a trace says of how an anomaly came about."""

from __future__ import annotations

from bettong.harness.search.mechanism import mechanism
from bettong.lineage.results import Anomaly
from bettong.lineage.trace import MessageRange, TraceEvent

CARRIED = (MessageRange("lines", 0, 4),)


def taken(step: str, node: str, incarnation: int = 1) -> list[TraceEvent]:
    return [
        TraceEvent(step, phase, node, incarnation, carries=CARRIED) for phase in ("before", "after")
    ]


def test_a_duplicate_names_each_step_that_handed_it_over() -> None:
    commit = "batch=0/sink.commit"
    events = [*taken(commit, "driver"), *taken(commit, "driver", 2)]
    (reported,) = mechanism(events, [Anomaly("Duplicate", ("lines/2.1",))])
    assert reported == (
        "lines/2.1 was handed over by batch=0/sink.commit (the driver, start 1) and again by "
        "batch=0/sink.commit#2 (the driver, start 2)"
    )


def test_a_loss_names_the_last_step_that_moved_it() -> None:
    events = [*taken("sender.send/lines/3", "sender"), *taken("gateway.ack/lines/3", "gateway")]
    (reported,) = mechanism(events, [Anomaly("Loss", ("lines/3@counts",))])
    assert reported == "nothing moved lines/3 after gateway.ack/lines/3 (the gateway, start 1)"


def test_a_node_that_went_down_speaks_for_itself_and_the_unknown_is_not_guessed() -> None:
    stuck = Anomaly("Stuck", note="gateway did not start: the record at byte 211 is damaged")
    found = [stuck, Anomaly("Phantom", ("lines/9",)), Anomaly("Loss", ("no id",))]
    assert mechanism([], found) == [stuck.note]
