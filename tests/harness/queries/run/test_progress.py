"""Whether drivers come on."""

from __future__ import annotations

from bettong.harness.queries.run.progress import Progress
from bettong.lineage.trace import TraceEvent

TIMES = 300


def does(operation: str, path: str = "lock", incarnation: int = 1) -> TraceEvent:
    detail = {"op": operation, "path": path}
    return TraceEvent("sink.file", "before", "driver", incarnation, detail=detail)


def test_who_asks_for_a_lock_that_nobody_gives_back_does_not_come_on() -> None:
    progress = Progress()
    asks = [does(operation) for _ in range(TIMES) for operation in ("open", "look")]
    came_on = [progress.comes_on(event, "same") for event in asks]
    assert came_on[0]
    assert not any(came_on[-TIMES:])
    assert progress.comes_on(does("open", "rows"), "same")
    assert progress.comes_on(does("open", incarnation=2), "same")
    assert not progress.comes_on(does("open"), "same")


def test_who_writes_comes_on_and_so_does_spark() -> None:
    progress = Progress()
    assert all(progress.comes_on(does("write"), f"{n}") for n in range(TIMES))
    task = TraceEvent("batch=0/stage=0/p=0/a=0/task", "before", "driver", 1)
    assert all(progress.comes_on(task, "same") for _ in range(TIMES))
    assert progress.comes_on(does("open"), "same")
