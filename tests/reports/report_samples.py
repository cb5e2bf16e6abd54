"""Results to make reports of: a sink that commits again on replay, told as a run would tell it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bettong.lineage.results import Anomaly, Counterexample, Coverage, Result, Run
from bettong.lineage.trace import MessageRange, TraceEvent, write_trace

FAULT = "crash(driver, before batch=1/commits)"


def step(
    name: str,
    node: str,
    causes: tuple[str, ...] = (),
    link: str | None = None,
    carries: tuple[MessageRange, ...] = (),
    incarnation: int = 1,
    ends: bool = True,
) -> Iterator[TraceEvent]:
    yield TraceEvent(name, "before", node, incarnation, causes, carries, link)
    if ends:
        yield TraceEvent(name, "after", node, incarnation, causes, carries, link)


def served(
    name: str,
    client: str,
    server_step: str,
    server: str,
    causes: tuple[str, ...],
    carries: tuple[MessageRange, ...],
    incarnation: int = 1,
) -> Iterator[TraceEvent]:
    link = f"{client}->{server}"
    yield TraceEvent(name, "before", client, incarnation, causes, carries, link)
    yield from step(server_step, server, (name,), None, carries)
    yield TraceEvent(name, "after", client, incarnation, (*causes, server_step), carries, link)


def batch(n: int, incarnation: int = 1, dies: bool = False) -> Iterator[TraceEvent]:
    b, carries = f"batch={n}", (MessageRange("lines", n * 10, n * 10 + 10),)
    again = {"incarnation": incarnation}
    yield from step(f"{b}/source.plan", "driver", (), "driver->gateway", carries, **again)
    yield from step(f"{b}/offsets", "driver", (f"{b}/source.plan",), **again)
    for p in range(2):
        task = f"{b}/stage=0/p={p}/a=0/task"
        worker = f"w{p + 1}"
        yield TraceEvent(task, "before", worker, 1, (f"{b}/offsets",))
        yield from step(
            f"{b}/p={p}/a=0/source.read", worker, (task,), f"{worker}->gateway", carries
        )
        yield from served(
            f"{b}/p={p}/a=0/sink.prepare",
            worker,
            f"receiver.prepare/{b}/p={p}/a=0",
            "receiver",
            (f"{b}/p={p}/a=0/source.read",),
            carries,
        )
        yield TraceEvent(task, "after", worker, 1, (f"{b}/offsets",))
    prepared = tuple(f"{b}/p={p}/a=0/sink.prepare" for p in range(2))
    yield from step(f"{b}/state.manifest", "driver", prepared, **again)
    yield from served(
        f"{b}/sink.commit",
        "driver",
        f"receiver.commit/{b}",
        "receiver",
        (f"{b}/state.manifest",),
        carries,
        incarnation,
    )
    yield from step(f"{b}/commits", "driver", (f"{b}/sink.commit",), ends=not dies, **again)


def good_trace() -> list[TraceEvent]:
    return [event for n in range(3) for event in batch(n)]


def bad_trace() -> list[TraceEvent]:
    return [
        *batch(0),
        *batch(1, dies=True),
        TraceEvent(f"fault/{FAULT}", "before", "driver", detail={"evidence": "SIGKILL"}),
        TraceEvent("node.start/driver", "after", "driver", 2),
        *batch(1, incarnation=2),
        *batch(2, incarnation=2),
    ]


def duplicates(number: int) -> tuple[Anomaly, ...]:
    return tuple(
        Anomaly(
            "Duplicate",
            (f"lines/{n}.0",),
            f"word{n % 7}",
            {"times": 1},
            {"times": 2, "places": [n, n + 40]},
            "distant, within batch 1",
        )
        for n in range(10, 10 + number)
    )


def broken_sink(directory: Path, runs: int = 24, anomalies: int = 6) -> Result:
    """The result of a mutant, with its traces written into the directory."""
    write_trace(directory / "good.jsonl", good_trace())
    write_trace(directory / "ce1.jsonl", bad_trace())
    found = duplicates(anomalies)
    table = [Run((), "good", seconds=4.2, note="baseline")]
    table += [
        Run(
            (f"crash(driver, before batch={n // 5}/{['offsets', 'commits'][n % 2]})",),
            "violation" if n % 11 == 7 else "not-injected" if n % 13 == 5 else "good",
            {"crash": f"pid {4000 + n} exited with signal 9"},
            anomalies=found[:2] if n % 11 == 7 else (),
            seconds=3 + n % 5 / 10,
        )
        for n in range(runs - 1)
    ]
    return Result(
        scenario="word_count_commits_again",
        verdict="invalid",
        guarantee="at-least-once",
        ordering="per-key",
        expected="effectively-once",
        anomalies=found,
        counterexamples=(
            Counterexample(
                (FAULT,),
                found,
                {"faults": [{"crash": {"node": "driver", "before": "batch=1/commits"}}]},
                "bettong replay out/counterexample-1.json",
                "The driver dies after the sink has committed batch 1 and before Spark has written "
                "commits/1. Spark runs batch 1 again with the same id, and the sink commits it a "
                "second time: each of its words is counted twice.",
                "Record the batch id with the commit, and make a commit that is already recorded "
                "a no-op.",
                ("batch=1/commits", "batch=1/sink.commit"),
                "ce1.jsonl",
            ),
        ),
        coverage=Coverage(
            goals=30,
            supports=4,
            hypotheses=26,
            injected=22,
            not_injected=2,
            pruned=31,
            combinations=57,
            executions=runs,
            violated=2,
            to_first=9,
        ),
        runs=tuple(table),
        started_at="2026-11-21T14:00:00Z",
        duration_s=93.4,
        reason="6 Duplicate: at-least-once, effectively-once was asked for",
        assumptions=("crash model: SIGKILL, restarts with its durable state", "1 crash, 1 loss"),
        details={
            "good_trace": "good.jsonl",
            "timeline": [
                {"t": t / 10, "rate": 0 if 30 < t < 48 else 900 + t % 7 * 20, "latency_ms": 110}
                for t in range(100)
            ],
            "bands": [{"from": 3.0, "to": 4.8, "label": FAULT}],
        },
    )
