"""Scenarios from topic to topic of a real broker, which the driver reaches through a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from bettong.harness.api import load_scenario, run_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.record import RunRecord
from bettong.harness.runs.run import run_once
from bettong.harness.search.bounds import SearchBounds
from bettong.lineage.errors import UsageError
from bettong.lineage.search.loop import Budget

pytestmark = pytest.mark.spark

_runs = count(1)

FAULTS = (
    "crash: {node: driver, before: batch=1/commits}",
    "omit: {link: driver->kafka, at: batch=1/sink.commit}",
    "omit-reply: {link: driver->kafka, at: batch=1/sink.commit}",
    "crash: {node: kafka, before: batch=1/sink.commit}",
    "cut: {between: [[driver], [kafka]], from: batch=1/sink.commit, tries: 2}",
)


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalBackend]:
    pytest.importorskip("kafka")
    with LocalBackend(kafka=True) as found:
        yield found


@pytest.fixture(scope="module")
def in_process() -> Iterator[LocalBackend]:
    pytest.importorskip("kafka")
    with LocalBackend(runner="in-process", kafka=True) as found:
        yield found


def run(backend: LocalBackend, folder: Path, scenario: str, fault: str = "") -> RunRecord:
    wanted = Schedule.parse(f"faults: [{{{fault}}}]") if fault else Schedule()
    return run_once(backend, load_scenario(scenario), wanted, folder / str(next(_runs)))


@pytest.mark.slow
def test_celsius_goes_from_topic_to_topic_once(backend: LocalBackend, tmp_path: Path) -> None:
    clean = run(backend, tmp_path, "celsius_kafka")
    assert (clean.outcome, clean.replay_changed, clean.note) == ("good", False, "")
    assert clean.outputs[0][0] == "celsius_degrees-0/0"
    assert ("batch=1/sink.commit", "driver->kafka") in {(e.step, e.link) for e in clean.events}
    for fault in FAULTS[:2]:
        seen = run(backend, tmp_path, "celsius_kafka", fault)
        assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note
        assert sorted(seen.outputs) == sorted(clean.outputs)


@pytest.mark.servers
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("scenario", ["counting_kafka", "word_count_kafka"])
def test_state_between_topics_withstands(
    backend: LocalBackend, tmp_path: Path, scenario: str, fault: str
) -> None:
    seen = run(backend, tmp_path, scenario, fault)
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note


@pytest.mark.servers
def test_a_search_reads_every_cause(backend: LocalBackend, tmp_path: Path) -> None:
    result = run_scenario(
        "celsius_kafka",
        SearchBounds(batches=1),
        backend=backend,
        out=tmp_path,
        budget=Budget(runs=8),
    )
    assert (result.verdict, result.coverage.not_injected) == ("unknown", 0), result.reason
    assert result.coverage.injected >= 6
    assert "unread" not in result.details


@pytest.mark.parametrize(
    ("scenario", "faults"),
    [
        pytest.param(
            "counting_into_kafka",
            ["crash: {node: driver, before: batch=1/source.commit}", *FAULTS[1:]],
            marks=pytest.mark.slow,
        ),
        (
            "counting_kafka",
            [
                "crash: {node: driver, after: batch=1/sink.commit}",
                "omit-reply: {link: driver->kafka, at: batch=1/p=0/a=0/source.read}",
            ],
        ),
        pytest.param(
            "counting_kafka",
            ["crash: {node: kafka, before: batch=1/p=0/a=0/source.read}"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_topics_withstand_without_spark_too(
    in_process: LocalBackend, tmp_path: Path, scenario: str, faults: list[str]
) -> None:
    clean = run(in_process, tmp_path, scenario)
    assert (clean.outcome, clean.note, len(clean.outputs)) == ("good", "", 6)
    for fault in faults:
        seen = run(in_process, tmp_path, scenario, fault)
        assert (seen.outcome, seen.not_fired) == ("good", ()), (fault, seen.note)
        assert sorted(seen.outputs) == sorted(clean.outputs)


def test_a_broker_is_not_for_every_layout() -> None:
    with pytest.raises(UsageError, match="leave out --workers"):
        LocalBackend(kafka=True, workers=2)
    with pytest.raises(UsageError, match="needs a broker"):
        LocalBackend().topology(load_scenario("celsius_kafka"))
