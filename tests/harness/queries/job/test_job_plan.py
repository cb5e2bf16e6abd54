"""What a query's plan, as Spark explains it, shows of the query."""

from __future__ import annotations

from bettong.harness.queries.job.plan import marked_by, shown_by

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
