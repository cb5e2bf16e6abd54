"""A fault whose moment does not come once another has fired: it cannot, or came too late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bettong.harness.api import load_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.conductor.order import FiringOrder
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.campaign import Campaign
from bettong.harness.runs.record import RunRecord
from bettong.harness.search.executor import ScenarioExecutor
from bettong.lineage.search.executor import Execution
from bettong.lineage.trace import TraceEvent

AGAIN = "batch=1/sink.commit"
CRASH = {"crash": {"node": "driver", "before": "batch=1/source.commit"}}
AT_THE_REPLAY = {"crash": {"node": "receiver", "before": f"{AGAIN}#2"}}
NEVER = {"crash": {"node": "receiver", "before": f"{AGAIN}#9"}}


class Hurried(Campaign):
    """In its first runs of two faults the second one's moment does not come."""

    hurried = 0

    def run(
        self, schedule: Schedule, name: str | None = None, order: FiringOrder | None = None
    ) -> RunRecord:
        if len(schedule.faults) < 2 or not self.hurried:
            return super().run(schedule, name, order)
        self.hurried -= 1
        alone = super().run(Schedule(schedule.faults[:1]), name)
        return second_missed(self, alone, schedule)


def second_missed(campaign: Campaign, alone: RunRecord, schedule: Schedule) -> RunRecord:
    """The run of the first fault alone as one of both faults, the second of which never fired, for
    its moment, the second time of its step, did not come."""
    step = schedule.faults[1].points[0].step
    begun = [i for i, e in enumerate(alone.events) if (e.step, e.phase) == (step, "before")][1:2]
    missed = replace(
        alone,
        schedule=schedule,
        outcome="not-injected",
        not_fired=(schedule.faults[1].id,),
        events=tuple(
            e for i, e in enumerate(alone.events) if e.step != step or begun == [] or i < begun[0]
        ),
    )
    campaign.observed[next(i for i, s in enumerate(campaign.observed) if s is alone)] = missed
    return missed


def ready(campaign: Campaign, *faults: dict[str, object]) -> tuple[ScenarioExecutor, Schedule]:
    """What has run the scenario without faults, and knows these."""
    executor = ScenarioExecutor(campaign, batches=2)
    executor.learn(executor.run())
    schedule = Schedule.from_dict({"faults": list(faults)})
    executor.equivalence.faults |= {fault.id: fault for fault in schedule.faults}
    return executor, schedule


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("second", "hurried", "outcome"),
    [
        (AT_THE_REPLAY, 1, "good"),
        (AT_THE_REPLAY, 3, "good"),
        (AT_THE_REPLAY, 9, "not-injected"),
        (NEVER, 0, "good"),
    ],
)
def test_what_comes_without_a_fault_does_not_count_as_impossible(
    backend: LocalBackend,
    tmp_path: Path,
    second: dict[str, object],
    hurried: int,
    outcome: str,
    known: bool,
) -> None:
    scenario = load_scenario("counting")
    campaign = Hurried(backend, scenario, tmp_path, scenario.messages(), replay=False)
    executor, both = ready(campaign, CRASH, second)
    if known:
        executor.run(frozenset({both.faults[0].id}))
    campaign.hurried = hurried
    seen = executor.run(frozenset(both.ids))
    assert seen.outcome == outcome
    impossible = [both.faults[1].id] if second is NEVER else []
    assert seen.details["impossible"] == impossible
    assert bool(seen.not_fired) is (outcome == "not-injected")


class TooLate(Campaign):
    """In so many of its first runs with a fault that hits nothing although its moment comes."""

    late = 0

    def run(
        self, schedule: Schedule, name: str | None = None, order: FiringOrder | None = None
    ) -> RunRecord:
        seen = super().run(schedule, name, order)
        if not schedule.faults or not self.late:
            return seen
        self.late -= 1
        missed = replace(seen, outcome="not-injected", not_fired=schedule.ids, evidence={})
        self.observed[next(i for i, s in enumerate(self.observed) if s is seen)] = missed
        return missed


@pytest.mark.parametrize(("late", "outcome"), [(1, "good"), (3, "good"), (4, "not-injected")])
def test_what_has_hit_nothing_at_its_moment_is_tried_again(
    backend: LocalBackend, tmp_path: Path, late: int, outcome: str
) -> None:
    scenario = load_scenario("counting")
    campaign = TooLate(backend, scenario, tmp_path, scenario.messages(), replay=False)
    executor, one = ready(campaign, CRASH)
    campaign.late = late
    seen = executor.run(frozenset(one.ids))
    assert (seen.outcome, bool(seen.not_fired)) == (outcome, outcome == "not-injected")


BEGINS_ANEW = {"crash": {"node": "gateway", "before": "gateway.create/amounts"}}
STARTS_AGAIN = {"node": "gateway", "before": "gateway.start#2"}


@pytest.mark.parametrize(
    "which",
    [
        {"call": 2, "errno": "EIO"},
        {"call": 2, "errno": "EIO", "done": True},
        {"call": 1, "errno": "SHORT"},
        {"read": 9, "errno": "EIO"},
    ],
)
def test_a_call_that_a_step_does_not_make_once_the_other_has_fired_is_impossible(
    backend: LocalBackend, tmp_path: Path, which: dict[str, object]
) -> None:
    scenario = load_scenario("counting")
    campaign = Campaign(backend, scenario, tmp_path, scenario.messages(), replay=False)
    refused = {"storage": {**STARTS_AGAIN, **which}}
    executor, both = ready(campaign, BEGINS_ANEW, refused)
    seen = executor.run(frozenset(both.ids))
    assert (seen.outcome, seen.not_fired) == ("good", ())
    assert seen.details["impossible"] == [both.faults[1].id]


def test_a_call_that_is_made_and_not_hit_is_not_injected(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("counting")
    campaign = TooLate(backend, scenario, tmp_path, scenario.messages(), replay=False)
    refused = {"storage": {**STARTS_AGAIN, "call": 1, "errno": "EIO"}}
    executor, both = ready(campaign, BEGINS_ANEW, refused)
    campaign.late = 4
    seen = executor.run(frozenset(both.ids))
    assert (seen.outcome, seen.details["impossible"]) == ("not-injected", [])


LOSES_THE_ANSWER = {"omit-reply": {"link": "driver->receiver", "at": "batch=1/sink.commit"}}


@pytest.fixture(scope="module")
def embedded() -> Iterator[LocalBackend]:
    """With proxies that know what each fault has hit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bettong.harness.toxiproxy.server.resolve", lambda env: "embedded")
        with LocalBackend(runner="in-process") as backend:
            yield backend


@pytest.mark.parametrize(
    ("moment", "in_vain"),
    [
        ({"before": "receiver.commit/batch=1"}, True),
        ({"after": "receiver.commit/batch=1"}, True),
        ({"before": "receiver.commit/batch=0"}, False),
    ],
)
def test_nobody_is_left_to_give_the_answer_that_is_to_be_lost(
    embedded: LocalBackend, tmp_path: Path, moment: dict[str, object], in_vain: bool
) -> None:
    scenario = load_scenario("counting")
    campaign = Campaign(embedded, scenario, tmp_path, scenario.messages(), replay=False)
    dies = {"crash": {"node": "receiver", **moment}}
    executor, both = ready(campaign, dies, LOSES_THE_ANSWER)
    seen = executor.run(frozenset(both.ids))
    assert (seen.outcome, seen.not_fired) == ("good", ())
    assert seen.details["impossible"] == ([both.faults[1].id] if in_vain else [])


def test_a_lost_answer_that_hits_nothing_for_another_reason_is_not_injected(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("counting")
    campaign = TooLate(backend, scenario, tmp_path, scenario.messages(), replay=False)
    dies = {"crash": {"node": "receiver", "before": "receiver.commit/batch=0"}}
    executor, both = ready(campaign, dies, LOSES_THE_ANSWER)
    campaign.late = 4
    seen = executor.run(frozenset(both.ids))
    assert seen.outcome == "not-injected"


DIES = {"crash": {"node": "gateway", "before": "gateway.ack/amounts/end"}}
RELEASED = "batch=0/source.commit"
_TRIES = 20
LOST = {"omit": {"link": "driver->gateway", "at": f"{RELEASED}#2"}}


class Rare(Campaign):
    """Its gateway dies alone when the driver has just begun to tell it what it may forget, which
    takes the driver a second try; left to itself the driver is far behind that. Where the gateway
    has just heard of it all the same it is done again."""

    rare: FiringOrder | None = None

    def run(
        self, schedule: Schedule, name: str | None = None, order: FiringOrder | None = None
    ) -> RunRecord:
        if len(schedule.faults) != 1:
            return super().run(schedule, name, order)
        for _ in range(_TRIES):
            seen = super().run(schedule, name, self.rare)
            if sum((e.step, e.phase) == (RELEASED, "before") for e in seen.events) > 1:
                break
        return seen


class Vain(Rare):
    """Its two faults never meet, in whatever order they are to: those are noted."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.orders: list[FiringOrder | None] = []

    def run(
        self, schedule: Schedule, name: str | None = None, order: FiringOrder | None = None
    ) -> RunRecord:
        if len(schedule.faults) < 2:
            return super().run(schedule, name)
        self.orders.append(order)
        first = next(fault for fault in schedule.faults if fault.points[0].step != RELEASED)
        last = next(fault for fault in schedule.faults if fault is not first)
        alone = Campaign.run(self, Schedule((first,)), name)
        return second_missed(self, alone, replace(schedule, faults=(first, last)))


def run_both(campaign: Rare) -> Execution:
    """The fault that fires in the rare order, then both."""
    executor = ScenarioExecutor(campaign, batches=2)
    clean = executor.campaign.run(Schedule(), "clean")
    both = Schedule.from_dict({"faults": [DIES, LOST]})
    executor.equivalence.faults |= {fault.id: fault for fault in both.faults}
    dies = both.faults[0]
    upto = next(i for i, e in enumerate(clean.events) if e.step == RELEASED)
    far = FiringOrder.of(dies, [*clean.events[: upto + 1], fired(dies)])
    assert far is not None
    campaign.rare = FiringOrder(far.at, "gateway", {n: far.last[n] for n in ("driver", "receiver")})
    executor.run(frozenset({dies.id}))
    return executor.run(frozenset(both.ids))


def test_what_rests_on_a_rare_order_is_run_in_that_order(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("counting")
    seen = run_both(Rare(backend, scenario, tmp_path, scenario.messages(), replay=False))
    assert (seen.outcome, seen.not_fired) == ("good", ())


def test_then_the_node_whose_moment_is_missed_is_slowed_or_held_back(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("counting")
    campaign = Vain(backend, scenario, tmp_path, scenario.messages(), replay=False)
    seen = run_both(campaign)
    assert (seen.outcome, len(seen.not_fired)) == ("not-injected", 1)
    alone, again, slowed, held, *more = campaign.orders
    assert alone is None
    assert again is not None
    assert again.last["driver"] == (RELEASED, "before", 1)
    assert (slowed, held) == (again.slowed("driver"), again.held_back("driver"))
    assert more[:3] == [again, slowed, held]


def fired(fault: Fault) -> TraceEvent:
    return TraceEvent(f"fault/{fault.id}", "after", "gateway")


SENT = {"crash": {"node": "sender", "after": "sender.send/amounts/5"}}
SENT_AGAIN = {"omit": {"link": "sender->gateway", "at": "sender.send/amounts/5#2"}}


class Unread(Campaign):
    """What its sender has sent right before it dies alone has not arrived."""

    def run(
        self, schedule: Schedule, name: str | None = None, order: FiringOrder | None = None
    ) -> RunRecord:
        (sent,) = Schedule.from_dict({"faults": [SENT]}).faults
        if schedule.faults != (sent,):
            return super().run(schedule, name, order)
        unsent = {"crash": {"node": "sender", "before": "sender.send/amounts/5"}}
        seen = super().run(Schedule.from_dict({"faults": [unsent]}), name, order)
        alone = replace(seen, schedule=schedule, evidence={sent.id: "it died"})
        self.observed[next(i for i, s in enumerate(self.observed) if s is seen)] = alone
        return alone


def test_what_was_sent_and_seldom_is_lost_with_its_sender_is_run_as_not_sent(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("counting")
    campaign = Unread(backend, scenario, tmp_path, scenario.messages(), replay=False)
    executor, both = ready(campaign, SENT, SENT_AGAIN)
    executor.run(frozenset({both.faults[0].id}))
    seen = executor.run(frozenset(both.ids))
    assert (seen.outcome, seen.not_fired, seen.details["impossible"]) == ("good", (), [])
    assert seen.evidence.keys() == {
        "crash(sender, before sender.send/amounts/5)",
        "omit(sender->gateway, sender.send/amounts/5#2)",
    }


CONNECTS = "sender.connect/amounts"
UNHEARD = {"omit": {"link": "gateway->sender", "at": "gateway.ack/amounts/end"}}
CONNECTS_OFTEN = {"crash": {"node": "sender", "before": f"{CONNECTS}#9"}}


class Restless(Campaign):
    """Its sender has connected nine times more where it was not told of the end, and that alone."""

    def run(
        self, schedule: Schedule, name: str | None = None, order: FiringOrder | None = None
    ) -> RunRecord:
        seen = super().run(schedule, name, order)
        (unheard,) = Schedule.from_dict({"faults": [UNHEARD]}).faults
        if schedule.faults != (unheard,):
            return seen
        again = [TraceEvent(CONNECTS, phase, "sender") for phase in ("before", "after")] * 9
        often = replace(seen, events=(*seen.events, *again))
        self.observed[next(i for i, s in enumerate(self.observed) if s is seen)] = often
        return often


def test_how_often_a_sender_connects_is_up_to_the_clock(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("counting")
    campaign = Restless(backend, scenario, tmp_path, scenario.messages(), replay=False)
    executor, both = ready(campaign, UNHEARD, CONNECTS_OFTEN)
    executor.run(frozenset({both.faults[0].id}))
    seen = executor.run(frozenset(both.ids))
    assert (seen.outcome, seen.not_fired, seen.details["impossible"]) == ("good", (), [])
    (crash,) = (id for id in seen.evidence if id.startswith("crash"))
    assert crash.startswith(f"crash(sender, before {CONNECTS}#") and crash not in both.ids
    assert seen.note.endswith("how often a sender connects is up to the clock")
