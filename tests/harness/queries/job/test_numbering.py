"""Whether a query has begun its checkpoint anew is seen by the numbers of its batches."""

from __future__ import annotations

import pytest

from bettong.harness.queries.job.numbering import begins_anew
from bettong.lineage.trace import TraceEvent


@pytest.mark.parametrize(
    ("steps", "anew"),
    [
        (["0/offsets", "0/commits", "1/offsets", "1/commits"], False),
        (["0/offsets", "0/commits", "1/offsets", "1/offsets", "1/commits"], False),
        (["0/offsets", "0/commits", "1/offsets", "0/offsets"], True),
        (["0/offsets", "0/offsets", "0/commits"], False),
    ],
)
def test_a_number_that_was_recorded_is_not_planned_again(steps: list[str], anew: bool) -> None:
    events = [
        TraceEvent(f"batch={step}", phase, "driver", 1)
        for step in steps
        for phase in ("before", "after")
    ]
    assert begins_anew([TraceEvent("metadata", "after", "driver", 1), *events]) is anew
