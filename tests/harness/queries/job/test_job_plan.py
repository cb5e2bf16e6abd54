"""What a query's plan, as Spark explains it, shows of the query."""

from __future__ import annotations

import threading
from typing import Any
from unittest.mock import Mock

import pytest

from bettong.harness.queries.job import host
from bettong.harness.queries.job.plan import EMPTY_BATCHES, has_timers, marked_by, shown_by
from bettong.harness.queries.job.query_sense import expect_an_end
from bettong.harness.queries.sense import VacuousError

MARK = "~EventTimeWatermark bd810f7b-dbd9-41d4-b541-60c2c808c46f, at#1: timestamp, 5 seconds"
PLAN = f"""WriteToMicroBatchDataSource noop-table
+- ~Aggregate [window#16-T5000ms, user#0], [window#16-T5000ms, user#0, count(1) AS count#9L]
   +- ~Join Inner, (user#0 = who#6)
      :- {MARK}
      :  +- ~Union false, false
      :     :- ~StreamingExecutionRelation FileStreamSource[file:/run/a], [user#0, at#1]
      :     +- ~Project [user#8, at#9]
      :        +- ~StreamingExecutionRelation FileStreamSource[file:/run/b b], [user#8, at#9]
      +- ~Project [user#4 AS who#6, at#5 AS since#7]
         +- ~StreamingExecutionRelation FileStreamSource[file:/run/names], [user#4, at#5]
"""
SOURCES = {name: f":/run/{name}]" for name in ("a", "b b", "names", "b")}


def test_the_inputs_that_a_watermark_is_over_are_told_though_their_columns_are_alike() -> None:
    assert marked_by(PLAN, SOURCES) == {"unmarked": ["names"], "together": [["a", "b b"]]}
    bare = marked_by(PLAN.replace(MARK, "~Filter (user#0 > 0)"), SOURCES)
    assert bare == {"unmarked": ["a", "b b", "names"], "together": []}
    assert marked_by("", SOURCES) == {"unmarked": [], "together": []}


def test_an_event_time_may_be_called_by_words() -> None:
    assert shown_by(PLAN)["watermarks"] == [("at", "5 seconds")]
    named = PLAN.replace("at#1: timestamp", "event time#1: timestamp")
    assert shown_by(named)["watermarks"] == [("event time", "5 seconds")]


TIMERS = (
    "+- ~FlatMapGroupsInPandasWithState f(user#0, at#1-T10000ms)#4, [user#0], [user#5], "
    "[StructField(n,IntegerType,true)], Append, ProcessingTimeTimeout"
)


@pytest.mark.parametrize(
    ("node", "has"),
    [
        (TIMERS, True),
        (TIMERS.replace("Processing", "Event"), False),
        (TIMERS.replace(", ProcessingTimeTimeout", "").replace("(n,", "(ProcessingTime,"), False),
        ("~Project [user#0, current_timestamp() AS ProcessingTime#5]", False),
        ("FileScan json ReadSchema: struct<ProcessingTime:timestamp>", False),
    ],
)
def test_processing_time_is_that_of_state_and_no_column(node: str, has: bool) -> None:
    assert has_timers(node) is has
    assert shown_by(node)["by_the_clock"] == (["processing time"] if has else [])


class Endless:
    """A query that plans batches without data until it is stopped."""

    isActive = True  # noqa: N815 - Spark's name

    def __init__(self, plan: str, *rows: int) -> None:
        self.recentProgress = [Mock(batchId=n, numInputRows=r) for n, r in enumerate(rows)]
        self._jsq = Mock(explainInternal=lambda extended: plan)
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def processAllAvailable(self) -> None:  # noqa: N802
        assert self._stopped.wait(60)


def test_a_query_that_never_comes_to_an_end_is_stopped_and_said_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host, "_LOOK_S", 0.01)
    query: Any = Endless(TIMERS, 5, *[0] * EMPTY_BATCHES)
    assert host.goes_on_for_ever(query)
    for rows in ([5, *[0] * (EMPTY_BATCHES - 1)], [0] * EMPTY_BATCHES):
        ending: Any = Endless(TIMERS if rows[0] else "", *rows)
        ending.processAllAvailable = lambda: None
        assert not host.goes_on_for_ever(ending)
    with pytest.raises(VacuousError, match=r"timers of processing time.*event time"):
        expect_an_end("Mine", True)
    expect_an_end("Mine", False)
