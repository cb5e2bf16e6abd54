from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine.storage.durability import KEEPS
from bettong.harness.faults import kinds as f
from bettong.harness.faults.errors import ScheduleError
from bettong.harness.faults.point import Point, Topology
from bettong.harness.faults.schedule import Schedule
from bettong.harness.faults.step_shapes import SHAPES, is_step, nearest_step

LINKS = ("sender->gateway", "driver->gateway", "driver->receiver")
TOPOLOGY = Topology(("sender", "gateway", "driver", "receiver", "w1", "w2"), LINKS)

steps = st.sampled_from(
    ["batch=1/sink.commit", "gateway.ack/lines/17", "batch=0/p=1/a=0/sink.prepare", "metadata"]
)
places = st.builds(Point, steps, st.just("before"), st.integers(1, 9))
moments = st.builds(Point, steps, st.sampled_from(["before", "after"]), st.integers(1, 9))
later = moments.filter(lambda moment: moment.phase == "after")
spans = st.tuples(moments, st.none() | moments).filter(
    lambda span: span[1] is None or span[0].step != span[1].step or span[0].order < span[1].order
)
keeps = st.sampled_from(KEEPS) | st.integers(1, 9)
nodes = st.sampled_from(TOPOLOGY.nodes)
links = st.sampled_from(LINKS)
faults = st.one_of(
    st.builds(f.Crash, nodes, moments, st.booleans()),
    st.builds(f.Omit, links, places),
    st.builds(f.OmitReply, links, places),
    st.builds(f.Silence, links, places),
    st.builds(f.Delay, links, places, st.integers(1, 9999)),
    st.builds(f.Throttle, links, places, st.integers(1, 9999)),
    st.builds(f.Slice, links, places, st.integers(1, 9999)),
    st.builds(f.Reset, links, places),
    st.builds(f.Duplicate, links, places),
    st.builds(f.Late, places),
    st.builds(lambda node, span: f.Pause(node, *span), nodes, spans),
    st.builds(lambda span: f.Pause("driver", *span, replace=True), spans),
    st.builds(
        lambda at, until, call: f.Pause("driver", at, until, True, call),
        places,
        later,
        st.integers(1, 9),
    ).filter(lambda pause: pause.until is not None and pause.until.may_follow(pause.start)),
    st.builds(f.PowerCut, nodes, places, st.integers(1, 9), keeps),
    st.builds(f.PowerCut, nodes, later, st.integers(1, 9), keeps),
    st.builds(f.PowerCut, nodes, moments, st.just(0), keeps),
    st.builds(f.CrashWriting, nodes, places, st.integers(1, 9)),
    st.builds(f.CrashWriting, nodes, later, st.integers(1, 9)),
    st.builds(f.Stall, nodes, places, st.integers(1, 9), moments, st.booleans()),
    st.builds(f.Stall, nodes, places, st.just(0), moments),
    st.builds(f.Storage, moments, st.sampled_from(["ENOSPC", "EIO"])),
    st.builds(
        f.Storage,
        moments,
        st.sampled_from(["ENOSPC", "EIO", "SHORT"]),
        st.integers(1, 9),
        st.just("") | nodes,
    ),
    st.builds(f.Storage, moments, st.just("EIO"), st.integers(1, 9), st.just(""), st.just(True)),
    st.builds(
        lambda span, direction: f.Cut(("w1",), ("w2", "driver"), *span, direction),
        spans,
        st.sampled_from(["both", "forward", "backward"]),
    ),
    st.builds(
        f.Cut,
        st.just(("gateway",)),
        st.just(("sender", "driver")),
        moments,
        tries=st.integers(1, 9) | st.just("all"),
    ),
)
schedules = st.lists(faults, max_size=4, unique_by=lambda x: x.id).map(
    lambda fs: Schedule(tuple(fs))
)


@given(schedules)
def test_a_schedule_survives_yaml_and_json(schedule: Schedule) -> None:
    assert Schedule.parse(yaml.safe_dump(schedule.to_dict())) == schedule
    assert Schedule.parse(json.dumps(schedule.to_dict())) == schedule
    schedule.check(TOPOLOGY)


@given(st.text())
def test_any_text_is_a_schedule_or_one_clear_error(text: str) -> None:
    try:
        Schedule.parse(text)
    except ScheduleError as e:
        assert "\n" not in str(e)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "faults",
                    "crash",
                    "omit",
                    "cut",
                    "pause",
                    "node",
                    "at",
                    "between",
                    "from",
                    "until",
                ]
            )
            | st.text(),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_value_is_a_schedule_or_one_clear_error(value: object) -> None:
    for candidate in (value, {"faults": value}, {"faults": [value]}):
        try:
            schedule = Schedule.from_dict(candidate)
        except ScheduleError:
            continue
        assert Schedule.from_dict(schedule.to_dict()) == schedule


def test_the_ids_are_stable() -> None:
    schedule = Schedule.parse(
        """
        faults:
          - crash: {node: driver, before: batch=1/sink.commit}
          - crash: {node: driver, after: batch=1/sink.commit#2, restart: false}
          - stop: {node: receiver, before: receiver.commit/batch=1}
          - omit: {link: driver->receiver, at: batch=1/sink.commit}
          - omit-reply: {link: driver->receiver, at: batch=1/sink.commit#2}
          - cut: {between: [[w1], [w2, driver]], from: metadata, until: after batch=1/commits}
          - pause: {node: driver, from: batch=1/commits, until: batch=2/commits}
          - pause: {node: driver, from: epoch=1/take, call: 10, replace: true}
          - pause: {node: w1, from: batch=1/commits, call: 2, until: batch=2/commits}
          - delay: {link: driver->receiver, at: batch=1/sink.commit, latency_ms: 200}
          - storage: {after: batch=1/offsets}
          - storage: {node: driver, after: batch=1/source.plan, read: 2, errno: EIO}
          - storage: {node: driver, at: batch=1/state.manifest, call: 4, errno: EIO, done: true}
        """
    )
    assert schedule.ids == (
        "crash(driver, before batch=1/sink.commit)",
        "crash(driver, after batch=1/sink.commit#2, for good)",
        "stop(receiver, before receiver.commit/batch=1)",
        "omit(driver->receiver, batch=1/sink.commit)",
        "omit-reply(driver->receiver, batch=1/sink.commit#2)",
        "cut(w1|w2+driver, from metadata until after batch=1/commits)",
        "pause(driver, from batch=1/commits until batch=2/commits)",
        "pause(driver, from epoch=1/take, call 10, replaced)",
        "pause(w1, from batch=1/commits, call 2 until batch=2/commits)",
        "delay(driver->receiver, batch=1/sink.commit, 200 ms)",
        "storage(ENOSPC, after batch=1/offsets)",
        "storage(EIO, driver, after batch=1/source.plan, read 2)",
        "storage(EIO, driver, before batch=1/state.manifest, call 4 done)",
    )
    assert Schedule.from_dict(schedule.to_dict()) == schedule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("faults: [{crash: {node: drivr, before: batch=1/commits}}]", "did you mean driver?"),
        ("faults: [{crsh: {node: driver, before: metadata}}]", "did you mean crash?"),
        ("faults: [{crash: {nod: driver, before: metadata}}]", "did you mean node?"),
        (
            "faults: [{crash: {node: driver, before: batch=1/sink.comit}}]",
            "there is no step batch=1/sink.comit; did you mean batch=1/sink.commit?",
        ),
        (
            "faults: [{omit: {link: driver->reciever, at: batch=1/sink.commit}}]",
            "did you mean driver->receiver?",
        ),
        ("faults: [{storage: {before: metadata, errno: ENOSPACE}}]", "did you mean ENOSPC?"),
        ("faults: [{crash: {node: driver}}]", "give one of before and after"),
        ("faults: [{stop: {node: driver, before: metadata}}]", "a stop is of a server"),
        ("faults: [{omit: {link: driver->gateway}}]", "at is missing"),
        ("faults: [{omit: {link: driver->gateway, at: after metadata}}]", "name the step alone"),
        ("fault: []", "did you mean faults?"),
        ("faults: [{crash: {node: driver, node: w1, before: metadata}}]", "node is given twice"),
        ("faults: [{delay: {link: driver->gateway, at: metadata, latency_ms: true}}]", "whole"),
        ("faults: [", "not YAML or JSON"),
        ("faults: []\n? [node]\n: driver", "line 2: a key has to be a name"),
        ("faults: [{crash: {? {node: driver} : 1}}]", "line 1: a key has to be a name"),
    ],
)
def test_a_mistake_gets_one_clear_error(text: str, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule.parse(text).check(TOPOLOGY)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("start", "until"),
    [
        ("metadata", "metadata"),
        ("after metadata", "metadata"),
        ("after metadata", "after metadata"),
        ("metadata#2", "after metadata"),
    ],
)
def test_a_fault_that_would_never_end_is_refused(start: str, until: str) -> None:
    span = {"from": start, "until": until}
    for fault in ({"pause": {"node": "w1"}}, {"cut": {"between": [["w1"], ["w2"]]}}):
        ((kind, fields),) = fault.items()
        with pytest.raises(ScheduleError, match=r"until: .* does not come after "):
            Schedule.from_dict({"faults": [{kind: {**fields, **span}}]})


def test_the_same_fault_twice_is_refused() -> None:
    crash = f.Crash("driver", Point.parse("metadata"))
    with pytest.raises(ScheduleError, match="twice"):
        Schedule((crash, crash))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("gateway.apend/lines/17", "gateway.append/lines/17"),
        ("batch=3/p=0/a=1/sink.prepar", "batch=3/p=0/a=1/sink.prepare"),
        ("reciever.commit/batch=4", "receiver.commit/batch=4"),
    ],
)
def test_the_nearest_step_keeps_its_numbers(wrong: str, right: str) -> None:
    assert not is_step(wrong)
    assert nearest_step(wrong) == right


@pytest.mark.parametrize(
    "step",
    [
        "sender.send/lines/end",
        "sender.connect/lines",
        "epoch=2/sink.open",
        "batch=3/source.plan/orders",
        "batch=3/level=2/p=0/a=1/sink.prepare/alerts",
        "batch=3/state/op=0/p=1/delta",
    ],
)
def test_the_steps_of_larger_applications_are_steps(step: str) -> None:
    assert is_step(step)


def test_every_shape_is_a_step() -> None:
    for shape in SHAPES:
        assert is_step(shape.replace("=N", "=3").replace("/N", "/17").replace("STREAM", "lines"))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("pause: {node: driver}", "from is missing"),
        (
            "pause: {node: driver, from: after batch=1/commits, call: 2}",
            "from: name the step alone, without 'after'",
        ),
        (
            "cut: {between: [[driver], [receiver]], from: batch=1/commits, until: batch=2/commits, "
            "tries: 2}",
            "one of until and tries",
        ),
        (
            "crash-writing: {node: driver, at: batch=1/commits, after: batch=1/commits}",
            "one of at and after",
        ),
        (
            "power-cut: {node: driver, before: batch=1/commits, sync: 1}",
            "nothing is synced before the step",
        ),
        (
            "duplicate: {link: gateway->sender, at: gateway.ack/lines/7}",
            "an answer belongs to the connection of its request",
        ),
        (
            "duplicate: {link: sender->gateway, at: sender.connect/lines}",
            "a connection is made once",
        ),
        (
            "storage: {at: batch=1/state.manifest, read: 1}",
            "read goes with errno EIO",
        ),
        (
            "storage: {at: batch=1/state.manifest, read: 1, call: 2, errno: EIO}",
            "read goes with errno EIO, and with neither call nor lasting",
        ),
        (
            "storage: {at: batch=1/state.manifest, call: 1, errno: SHORT, done: true}",
            "done goes with a call that fails",
        ),
        (
            "storage: {at: batch=1/state.manifest, done: true}",
            "done goes with a call that fails",
        ),
        (
            "storage: {at: batch=1/state.manifest, call: 1, lasting: true, done: true, errno: EIO}",
            "done goes with a call that fails, and not with lasting",
        ),
    ],
)
def test_faults_that_nobody_could_inject_are_refused(fault: str, message: str) -> None:
    topology = Topology(TOPOLOGY.nodes, (*LINKS, "gateway->sender"))
    with pytest.raises(ScheduleError, match=message):
        Schedule.parse(f"faults: [{{{fault}}}]").check(topology)
