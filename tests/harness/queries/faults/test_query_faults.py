"""Each kind of fault fires, leaves evidence, breaks the sink that is wrong about it, and leaves the
right one whole."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from bettong.harness.queries.faults.operations import (
    CORES,
    EMPTY,
    LARGER,
    LONGER,
    MORE,
    NEW_CHECKPOINT,
    NEW_ROWS,
    ODD,
    STOPPED,
)
from bettong.harness.queries.run.endpoints import EndpointProxies
from bettong.harness.queries.run.environment import SparkEnvironments
from bettong.harness.queries.run.job import Target
from bettong.harness.queries.run.runner import SinkRunner
from bettong.harness.queries.search.executor import SinkExecutor
from bettong.harness.queries.search.lineage import Why
from bettong.harness.queries.sink.rows import Input

pytestmark = pytest.mark.spark

MUTANTS = str(Path(__file__).with_name("fault_mutants.py"))
FILES = "bettong.scenarios.sinks.files"
MIDDLE = "batch=1/p=0/a=0/source.middle"
TWICE = f"lost-executor(before {MIDDLE}, goes on)"
LOST = f"lost-executor(before {MIDDLE})"
LOST_AT_END = "lost-executor(after batch=1/stage=0/p=0/a=0/task)"
AMID = "crash(driver, amid batch=1/sink.file=2.write)"
FULL = "storage(ENOSPC, before batch=1/sink.file=2.write)"
LATE = "pause(driver, from batch=1/sink.file={} until after batch=3/commits)"
ZOMBIE = "pause(driver, from batch=1/commits until after batch=3/commits)"


def nightly(target: str, fault: str, seen: set[str], evidence: str) -> ParameterSet:
    """A right sink under a fault that a broken one shows at every change."""
    return pytest.param(target, fault, seen, evidence, marks=pytest.mark.slow)


def later(fault: str) -> str:
    """The same, where the file is cut before it is written."""
    return fault.replace("=2.write", "=3.write")


@pytest.mark.parametrize(
    ("target", "fault", "seen", "evidence"),
    [
        (f"{MUTANTS}:ClearsFirst", TWICE, {"Duplicate"}, "a second attempt did its work meanwhile"),
        nightly(f"{MUTANTS}:RenamesAtEnd", TWICE, set(), "a second attempt did its work meanwhile"),
        nightly(f"{MUTANTS}:ClearsFirst", LOST, set(), "a second attempt did its work meanwhile"),
        ("bettong.scenarios.sinks.writers:ForeachAppend", LOST_AT_END, {"Duplicate"}, "second"),
        (f"{MUTANTS}:PartPerCore", CORES.id, {"Duplicate"}, "incarnation 1 ends here"),
        nightly(f"{MUTANTS}:RenamesAtEnd", CORES.id, set(), "incarnation 1 ends here"),
        (f"{MUTANTS}:NeedsRows", EMPTY.id, {"Loss", "Stuck"}, "2 of them failed"),
        nightly(f"{FILES}:JsonBatchFiles", EMPTY.id, set(), "4 batches were recorded"),
        (f"{MUTANTS}:SkipsTheFirst", STOPPED.id, {"Loss"}, "started 2 time(s)"),
        nightly(f"{MUTANTS}:UpsertById", STOPPED.id, set(), "started 2 time(s)"),
        (f"{MUTANTS}:EndsTooEarly", MORE.id, {"Loss"}, "incarnation 1 ends here"),
        nightly(f"{FILES}:SqliteOneTransaction", MORE.id, set(), "incarnation 1 ends here"),
        (f"{MUTANTS}:SwallowsOddRows", ODD.id, {"Loss"}, "4 batches were recorded"),
        nightly(
            f"{MUTANTS}:RefusesOddRows", ODD.id, set(), "of them failed; 2 batches were recorded"
        ),
        nightly(f"{MUTANTS}:UpsertById", ODD.id, set(), "4 batches were recorded"),
        (f"{MUTANTS}:BatchesAsText", LONGER.id, {"Loss"}, "incarnation 1 ends here"),
        nightly(f"{FILES}:SqliteOneTransaction", LONGER.id, set(), "incarnation 1 ends here"),
        (f"{MUTANTS}:OneKeyForAllPieces", LARGER.id, {"Loss"}, "incarnation 1 ends here"),
        (f"{MUTANTS}:RefusesMany", LARGER.id, set(), "of them failed; 0 batches were recorded"),
        nightly(f"{FILES}:SqliteOneTransaction", LARGER.id, set(), "incarnation 1 ends here"),
        (f"{FILES}:SqliteInsert", NEW_CHECKPOINT.id, {"Duplicate"}, "started 2 time(s)"),
        nightly(f"{FILES}:SqliteOneTransaction", NEW_CHECKPOINT.id, set(), "started 2 time(s)"),
        (f"{FILES}:SqliteOneTransaction", NEW_ROWS.id, {"Loss"}, "started 2 time(s)"),
        nightly(f"{MUTANTS}:UpsertById", NEW_ROWS.id, set(), "started 2 time(s)"),
        (
            f"{MUTANTS}:CompactsThirds",
            "crash(driver, before batch=2/sink.file=6.write)",
            {"Loss"},
            "incarnation 1 ends here",
        ),
        (f"{MUTANTS}:AppendsLines", AMID, {"Loss"}, "state was kept as it was"),
        (f"{MUTANTS}:AppendsLines", FULL, {"Loss"}, "the step failed with ENOSPC"),
        nightly(f"{MUTANTS}:CutsOff", later(AMID), set(), "state was kept as it was"),
        nightly(f"{MUTANTS}:CutsOff", later(FULL), set(), "the step failed with ENOSPC"),
        (f"{MUTANTS}:AsksThenInserts", LATE.format("1.insert"), {"Duplicate"}, "went on"),
        (f"{MUTANTS}:AsksThenReads", LATE.format("3.look"), {"Loss"}, "went on"),
        (f"{MUTANTS}:AsksTwice", LATE.format("2.look"), {"Duplicate"}, "went on"),
        (f"{MUTANTS}:AsksThenConnects", LATE.format("2.connect"), {"Duplicate"}, "went on"),
        (f"{FILES}:SqliteInsert", ZOMBIE, {"Duplicate"}, "driver(s) went on"),
        nightly(f"{FILES}:SqliteOneTransaction", ZOMBIE, set(), "driver(s) went on"),
    ],
)
def test_a_fault_fires(
    environments: SparkEnvironments, target: str, fault: str, seen: set[str], evidence: str
) -> None:
    if "Connects" in target:
        pytest.importorskip("duckdb")
    with EndpointProxies({}) as endpoint_proxies:
        two_cores = partial(environments, {}, 2)
        runner = SinkRunner(environments({}), Target(target), Input(), endpoint_proxies, two_cores)
        execution = SinkExecutor(runner, Input(), False, Why(2, 4, 1)).run(frozenset({fault}))
    assert execution.not_fired == ()
    assert evidence in execution.evidence[fault]
    assert {a.kind for a in execution.anomalies} == seen


def test_a_query_that_fails_of_two_faults_is_started_a_third_time(
    environments: SparkEnvironments,
) -> None:
    renamed = "bettong.scenarios.sinks.writers:DataSourceRename"
    faults = {f"storage(EIO, before batch=1/sink.file={n}.rename)" for n in (2, 4)}
    with EndpointProxies({}) as endpoint_proxies:
        runner = SinkRunner(environments({}), Target(renamed), Input(), endpoint_proxies)
        execution = SinkExecutor(runner, Input(), False, Why(2, 4, 1)).run(frozenset(faults))
    assert execution.evidence.keys() == faults
    assert (execution.outcome, execution.anomalies) == ("good", ())


def test_a_fault_whose_moment_never_comes_is_no_pass(environments: SparkEnvironments) -> None:
    with EndpointProxies({}) as endpoint_proxies:
        runner = SinkRunner(
            environments({}), Target(f"{FILES}:JsonAppend"), Input(), endpoint_proxies
        )
        executor = SinkExecutor(runner, Input(), False, Why(2, 4, 1))
        for never in (
            "crash(driver, before batch=9/commits)",
            "storage(EIO, before batch=9/p=0/a=0/source.middle)",
        ):
            execution = executor.run(frozenset({never}))
            assert (execution.outcome, execution.not_fired) == ("not-injected", (never,))
