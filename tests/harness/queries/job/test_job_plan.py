"""What a query's plan, as Spark explains it, shows of the query."""

from __future__ import annotations

import pytest

from bettong.harness.queries.job.plan import shown_by

JOIN = """== Parsed Logical Plan ==
~Other [a#1]

== Analyzed Logical Plan ==
WriteToMicroBatchDataSource noop-table
+- ~Aggregate [window#16-T5000ms, user#0], [window#16-T5000ms, user#0, count(1) AS count#9L]
   +- ~Filter isnotnull(at#1-T5000ms)
      +- ~Join Inner, (user#0 = who#6)
         :- {left}
         :  +- ~LocalRelation <empty>, [user#0, at#1, ts#2L]
         +- ~Join Inner, (name#4 = name#7)
            :- ~Project [name#4 AS who#6, at#5 AS since#7]
            :  +- ~Project [name#24 AS name#4, at#25 AS at#5]
            :     +- ~Relation [name#24,at#25] json
            +- Relation [name#7,since#8] json

== Optimized Logical Plan ==
~Other [b#1]
"""
MARK = "~EventTimeWatermark bd810f7b-dbd9-41d4-b541-60c2c808c46f, at#1: timestamp, 5 seconds"


@pytest.mark.parametrize(
    ("left", "unmarked"),
    [(MARK, [("at", "name")]), ("~Filter (ts#2L > 0)", [("at", "name"), ("at", "ts", "user")])],
)
def test_the_sources_that_no_watermark_is_over_are_told_by_their_columns(
    left: str, unmarked: list[tuple[str, ...]]
) -> None:
    """A frame that is no stream is no source of it."""
    shown = shown_by(JOIN.format(left=left))
    assert shown["unmarked"] == unmarked
    assert shown["watermarks"] == ([("at", "5 seconds")] if left == MARK else [])


def test_an_event_time_may_be_called_by_words() -> None:
    assert shown_by(MARK.replace("at#1", "event time#1"))["watermarks"] == [
        ("event time", "5 seconds")
    ]


def test_a_source_that_looks_like_one_with_a_watermark_is_not_told_from_it() -> None:
    both = JOIN.format(left=MARK).replace("name#24,at#25]", "user#24, ts#25L, at#26]")
    assert shown_by(both)["unmarked"] == []
    assert shown_by("")["unmarked"] == []


UNION = """== Analyzed Logical Plan ==
~Join Inner, (user#0 = user#4)
:- {mark}
:  +- ~Union false, false
:     :- ~LocalRelation <empty>, [user#0, at#1]
:     +- ~Project [who#2 AS user#8, at#3]
:        +- ~LocalRelation <empty>, [who#2, at#3]
+- {mark}
   +- ~LocalRelation <empty>, [{other}]

"""


@pytest.mark.parametrize(
    ("other", "together"),
    [("user#4, since#5", [[("at", "user"), ("at", "who")]]), ("user#4, at#5", [])],
)
def test_the_sources_under_one_watermark_are_told_where_no_other_one_looks_like_them(
    other: str, together: list[list[tuple[str, ...]]]
) -> None:
    assert shown_by(UNION.format(mark=MARK, other=other))["together"] == together
