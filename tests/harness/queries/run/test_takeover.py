"""Who is said to work beside a batch while another driver is at work as well."""

from __future__ import annotations

import pytest

from bettong.harness.queries.run.takeover import own
from bettong.lineage.trace import TraceEvent


def told(step: str, op: str, **detail: str) -> TraceEvent:
    return TraceEvent(step, "before", "driver", 1, detail={"op": op, "path": "a", **detail})


@pytest.mark.parametrize("within", ["", "p=0/a=0/"])
def test_what_only_files_show_is_nobodys(within: str) -> None:
    seen = told(f"{within}concurrent/sink.file", "change", concurrent="the thread 'x' worked")
    assert own(seen) == told(f"{within}sink.file", "change")


def test_what_somebody_has_done_himself_is_his() -> None:
    did = told("concurrent/sink.file", "open", concurrent="the thread 'x' did open a")
    change = told("sink.file", "change")
    assert (own(did), own(change)) == (did, change)
