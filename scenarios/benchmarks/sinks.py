"""How fast check-sink is, and whether it says the same each time.

Fault runs a minute, kept crashes beside real kills, for a sink that keeps a file and for one on
PostgreSQL (left out when that is not installed); seconds of a whole verdict, single faults and
pairs; how often sinks that are right were called right, and a wrong one was answered with the same
counterexamples, runs side by side and one at a time by turns. Warm: the drivers are started before
the clock is. A run that does not show exactly what its fault does to the sink makes the measurement
fail.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

from bettong.harness.events import ignore
from bettong.harness.queries.check import check_one
from bettong.harness.queries.faults.kinds import parse_fault
from bettong.harness.queries.judge import judge_run
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.endpoints import EndpointProxies
from bettong.harness.queries.run.environment import SparkEnvironments, spark_environments
from bettong.harness.queries.run.job import Target
from bettong.harness.queries.run.runner import SinkRunner
from bettong.harness.queries.sink.rows import Input
from bettong.harness.servers import PostgresServer, ServerMissingError
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Result, environment

_FILES = "bettong.scenarios.sinks.files"
_POSTGRES = "bettong.scenarios.sinks.postgres"
_DUPLICATES = {
    "crash(driver, before batch=1/commits)": {"Duplicate"},
    "crash(driver, after batch=1/commits)": set(),
    "crash(driver, before batch=1/p=0/a=0/source.middle)": set(),
}
_RIGHT = (f"{_FILES}:SqliteOneTransaction", f"{_FILES}:JsonBatchFiles")
_ATTEMPT = "storage(EIO, after batch=1/stage=0/p=0/a=0/task)"


def bench(
    kept: int = 12,
    killed: int = 3,
    full: bool = False,
    realistic: bool = False,
    only: str | None = None,
) -> dict[str, Any]:
    """The figures. ``full``: 100 verdicts on right sinks and 20 on a wrong one, not 2 of each;
    ``realistic``: of sinks as people publish them instead, or ``only`` of the one of that name.
    Raises UsageError."""
    if realistic:
        # Their clients are extras.
        from bettong.scenarios.benchmarks import realistic_sinks

        return realistic_sinks.bench(only)
    if only is not None:
        raise UsageError(f"--only {only}: it names one of the sinks of --realistic")
    rights, wrongs = (100, 20) if full else (2, 2)
    figures: dict[str, Any] = {}
    with spark_environments(ignore) as environments:
        with EndpointProxies({}) as endpoint_proxies:
            _add_rates(
                figures, "", environments, f"{_FILES}:SqliteInsert", endpoint_proxies, kept, killed
            )
        right, seconds = verdicts(environments, [_RIGHT[i % len(_RIGHT)] for i in range(rights)])
        wrong, _ = verdicts(environments, [f"{_FILES}:SqliteInsert"] * wrongs)
        figures["verdict"] = {"value": seconds, "unit": "s"}
        figures["right_called_right"] = _share([r.verdict == "valid" for r in right])
        same = [answer(r) == answer(wrong[0]) for r in wrong]
        figures["same_counterexamples"] = _share(same)
        with contextlib.suppress(ServerMissingError), _postgres() as endpoint_proxies:
            target = f"{_POSTGRES}:PlainInsert"
            _add_rates(figures, "_postgres", environments, target, endpoint_proxies, kept, killed)
            _, seconds = verdicts(environments, [f"{_POSTGRES}:OneTransaction"])
            figures["verdict_postgres"] = {"value": seconds, "unit": "s"}
    return {"name": "sinks", "figures": figures, "environment": environment()}


@contextlib.contextmanager
def _postgres() -> Iterator[EndpointProxies]:
    with (
        PostgresServer() as server,
        EndpointProxies({"db": server.address}, {"db": server}) as endpoint_proxies,
    ):
        yield endpoint_proxies


def _add_rates(
    figures: dict[str, Any],
    name: str,
    environments: SparkEnvironments,
    target: str,
    endpoint_proxies: EndpointProxies,
    kept: int,
    killed: int,
) -> None:
    """Fault runs a minute, and how many times as fast kept crashes are as kills."""
    runner = SinkRunner(environments({}), Target(target), Input(), endpoint_proxies)
    runner.run()
    crashes, faults = list(_DUPLICATES), [*_DUPLICATES, _ATTEMPT]
    fast = _per_minute(runner, [faults[i % len(faults)] for i in range(kept)], real=False)
    slow = _per_minute(runner, [crashes[i % len(crashes)] for i in range(killed)], real=True)
    unit = "runs/min"
    ratio = round(fast / slow, 1)
    figures[f"fault_runs{name}"] = {
        "value": fast,
        "unit": unit,
        "versus": f"killed{name}",
        "ratio": ratio,
    }
    figures[f"killed{name}"] = {"value": slow, "unit": unit}


def _per_minute(runner: SinkRunner, ids: Sequence[str], real: bool) -> float:
    begun = time.perf_counter()
    for id in ids:
        run = runner.run([parse_fault(id)], replay_layout=1, real=real)
        seen, expected = judge_run(run, Input(), ordered=False).kinds, _DUPLICATES.get(id, set())
        if run.not_fired or seen != expected:
            raise AssertionError(f"{id}: saw {sorted(seen)}, not {sorted(expected)}")
    return round(len(ids) * 60 / (time.perf_counter() - begun), 1)


def verdicts(environments: SparkEnvironments, targets: Sequence[str]) -> tuple[list[Result], float]:
    """A whole verdict for each target, every other one of the same target with runs one at a time,
    and the seconds of the fastest."""
    results = []
    for number, target in enumerate(targets):
        side_by_side = list(targets[:number]).count(target) % 2 == 0
        results.append(check_one(Request(target, side_by_side=side_by_side), environments))
    return results, round(min(result.duration_s for result in results), 1)


def answer(result: Result) -> object:
    """What a user is told: it must be the same each time."""
    reported = [(c.faults, c.words, c.advice) for c in result.counterexamples]
    return result.verdict, result.guarantee, result.ordering, reported


def _share(held: Sequence[bool]) -> dict[str, Any]:
    return {"value": sum(held), "unit": f"of {len(held)}"}
