"""A sink that writes a row a batch, without Spark, in places that runs may share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bettong.harness.queries.apart import REPLAYED
from bettong.harness.queries.run.observation import QueryRun
from bettong.lineage.trace import TraceEvent

Hold = Callable[[TraceEvent], object]
BATCHES = 4


class Store:
    """Where sinks keep rows, and notes of the batches that they wrote."""

    def __init__(self, seed: Sequence[str] = ()) -> None:
        self.seed = seed
        self.rows: list[str] = list(seed)
        self.marks: set[int] = set()


class Runner:
    """Runs a sink that writes a row a batch, on stores that may be another runner's too."""

    def __init__(
        self, rows: Store, marks: Store, *, marked: bool, clears: bool = True, by_key: bool = False
    ) -> None:
        self.rows, self.marks, self.marked = rows, marks, marked
        self.clears, self.by_key = clears, by_key

    def left_by_setup(self) -> list[dict[str, str]]:
        self._set_up()
        found = [{"id": row} for row in self.rows.rows]
        self._tear_down()
        return found

    def run(
        self,
        faults: Sequence[object] = (),
        *,
        replay_layout: int = 0,
        hold: Hold = lambda event: None,
    ) -> QueryRun:
        self._set_up()
        for batch in range(BATCHES):
            hold(TraceEvent(f"batch={batch}/offsets", "before", "driver"))
            self._write(batch)
            hold(TraceEvent(f"batch={batch}/commits", "before", "driver"))
            if batch == 1 and list(faults) == [REPLAYED]:
                self._write(batch)
        run = QueryRun(rows=[{"id": row} for row in self.rows.rows], drained=True)
        self._tear_down()
        return run

    def _set_up(self) -> None:
        self.marks.marks.clear()
        if self.clears:
            self.rows.rows[:] = self.rows.seed

    def _tear_down(self) -> None:
        if self.clears:
            self.rows.rows[:] = self.rows.seed
            self.marks.marks.clear()

    def _write(self, batch: int) -> None:
        if self.marked and batch in self.marks.marks:
            return
        self.marks.marks.add(batch)
        if not self.by_key or f"m/{batch}" not in self.rows.rows:
            self.rows.rows.append(f"m/{batch}")
