"""Whether the query that a job has started is one that can be judged."""

from __future__ import annotations

from collections.abc import Iterable

from bettong.harness.queries.job.inputs import Input, StepInput
from bettong.harness.queries.raised import cause
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.sense import VacuousError


def expect_topics_read(name: str, inputs: Iterable[Input], run: QueryRun) -> None:
    """Raises VacuousError where a query on topics was started and has planned no batch, though
    records are there."""
    on_topic = any(isinstance(given, StepInput) and given.on_topic for given in inputs)
    steps = {event.step for event in run.events}
    if on_topic and "metadata" in steps and "batch=0/offsets" not in steps:
        why = f" ({cause(run.errors[0])})" if run.errors else ""
        raise VacuousError(
            f"{name}: its query was started and no batch was begun{why}: a reader of a topic "
            "without startingOffsets reads nothing of what is there already, for Spark's default "
            'is latest: give it .option("startingOffsets", "earliest")'
        )


def expect_an_end(name: str, endless: bool) -> None:
    """Raises VacuousError where a query never has nothing left to do."""
    if endless:
        raise VacuousError(
            f"{name}: its query has timers of processing time, for which Spark plans batch after "
            "batch without end: have them go by event time, or by batches with data alone, with "
            'the setting "spark.sql.streaming.noDataMicroBatches.enabled" "false" and an oracle '
            "of your own"
        )
