"""The scenarios that ship, without Spark: several streams, several sinks, outputs as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.errors import ScheduleError
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.run import run_once
from bettong.harness.scenario import Scenario
from bettong.harness.search.fault_plan import parse_plan
from bettong.harness.search.trace_lineage import lineage_of
from bettong.lineage.errors import UsageError
from bettong.scenarios.counting import COUNTING_TO_FILES
from bettong.scenarios.market_spread import MARKET_SPREAD
from bettong.scenarios.showcase import DOUBLING, SCENARIOS
from bettong.scenarios.word_count import WORD_COUNT, WORD_COUNT_TO_FILES

ALL = (MARKET_SPREAD, COUNTING_TO_FILES, WORD_COUNT_TO_FILES, *SCENARIOS)


@pytest.mark.parametrize("scenario", ALL, ids=lambda s: s.name)
def test_a_clean_run_is_good_and_its_trace_names_every_cause(
    backend: LocalBackend, tmp_path: Path, scenario: Scenario
) -> None:
    seen = run_once(backend, scenario, Schedule(), tmp_path / "run")
    assert (seen.outcome, seen.replay_changed, seen.note) == ("good", False, "")
    assert seen.outputs
    assert lineage_of(seen.events).reading.unread == []


def test_each_stream_has_a_sender_and_each_sink_steps_of_its_own(
    backend: LocalBackend, tmp_path: Path
) -> None:
    topology = backend.topology(MARKET_SPREAD)
    assert topology.nodes[:2] == ("sender-nbbo", "sender-orders")
    assert "gateway->sender-nbbo" in topology.links
    seen = run_once(backend, MARKET_SPREAD, Schedule(), tmp_path / "spread", Asked(replay=False))
    links = {e.step: e.link for e in seen.events}
    assert links["gateway.ack/nbbo/3"] == "gateway->sender-nbbo"
    assert links["batch=1/source.plan/orders"] == "driver->gateway"
    assert links["batch=1/sink.commit"] == "driver->receiver"
    seen = run_once(backend, DOUBLING, Schedule(), tmp_path / "doubling", Asked(replay=False))
    steps = {e.step for e in seen.events}
    for sink in ("doubled", "counted"):
        assert {f"batch=1/sink.commit/{sink}", f"receiver.commit/batch=1/{sink}"} <= steps
    assert {id.partition("@")[2] for id, _ in seen.outputs} == {"doubled", "counted"}


@pytest.mark.parametrize(
    ("scenario", "faults"),
    [
        (MARKET_SPREAD, "crash: {node: sender-orders, before: sender.send/orders/7}"),
        (MARKET_SPREAD, "omit: {link: gateway->sender-nbbo, at: gateway.ack/nbbo/7}"),
        (MARKET_SPREAD, "crash: {node: driver, before: batch=1/state.manifest}"),
        (DOUBLING, "crash: {node: driver, after: batch=1/sink.commit/doubled}"),
        (DOUBLING, "omit-reply: {link: driver->receiver, at: batch=1/sink.commit/counted}"),
        (WORD_COUNT_TO_FILES, "crash: {node: driver, before: batch=1/sink.commit}"),
        (WORD_COUNT_TO_FILES, "storage: {before: batch=1/sink.commit, errno: ENOSPC}"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_faults_hit_single_streams_and_sinks(
    backend: LocalBackend, tmp_path: Path, scenario: Scenario, faults: str
) -> None:
    seen = run_once(backend, scenario, Schedule.parse(f"faults: [{{{faults}}}]"), tmp_path / "run")
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note


def test_files_need_no_receiver(backend: LocalBackend) -> None:
    topology = backend.topology(WORD_COUNT_TO_FILES)
    assert "receiver" not in topology.nodes
    schedule = Schedule.parse("faults: [{crash: {node: receiver, before: batch=1/commits}}]")
    with pytest.raises(ScheduleError, match="receiver"):
        schedule.check(topology)


def test_only_a_driver_can_be_replaced(backend: LocalBackend) -> None:
    schedule = Schedule.parse(
        "faults: [{pause: {node: gateway, from: batch=1/commits, until: batch=2/commits, "
        "replace: true}}]"
    )
    with pytest.raises(ScheduleError, match="only a driver"):
        schedule.check(backend.topology(WORD_COUNT))


def test_a_zombie_is_fenced_and_harms_nothing(backend: LocalBackend, tmp_path: Path) -> None:
    schedule = Schedule.parse(
        "faults: [{pause: {node: driver, from: batch=1/state.manifest, "
        "until: after batch=2/sink.commit, replace: true}}]"
    )
    seen = run_once(backend, WORD_COUNT, schedule, tmp_path / "run")
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note
    assert "resumed beside incarnation 2" in seen.evidence[schedule.ids[0]]
    late = [e for e in seen.events if e.incarnation == 1 and e.phase == "failed"]
    assert [e.step for e in late] == ["batch=1/state.manifest"]
    assert "has been replaced by epoch 2" in late[0].detail["error"]


def test_input_of_several_streams_is_a_folder(tmp_path: Path) -> None:
    for stream in ("nbbo", "orders"):
        (tmp_path / stream).write_bytes(b"one\ntwo\n")
    found = MARKET_SPREAD.messages(tmp_path)
    assert found == {"nbbo": [b"one", b"two"], "orders": [b"one", b"two"]}
    (tmp_path / "orders").unlink()
    with pytest.raises(UsageError, match="cannot read the input"):
        MARKET_SPREAD.messages(tmp_path)


def test_each_step_covers_every_sender(backend: LocalBackend, tmp_path: Path) -> None:
    seen = run_once(backend, MARKET_SPREAD, Schedule(), tmp_path / "run", Asked(replay=False))
    topology = backend.topology(MARKET_SPREAD)
    plan = parse_plan("each-step", 0, topology).schedules(seen, topology)
    ids = {i for schedule in plan for i in schedule.ids}
    for sender, stream in (("sender-nbbo", "nbbo"), ("sender-orders", "orders")):
        assert f"crash({sender}, before sender.send/{stream}/7)" in ids
        assert f"omit({sender}->gateway, sender.send/{stream}/7)" in ids


def test_messages_that_files_would_cut_are_refused() -> None:
    torn = Scenario("torn", "torn", WORD_COUNT.application, lambda: {"lines": [b"one\ntwo"]})
    with pytest.raises(UsageError, match="line feed"):
        torn.messages()
    empty = Scenario("empty", "empty", WORD_COUNT.application, lambda: {"lines": []})
    with pytest.raises(UsageError, match="nothing to test"):
        empty.messages()
