"""A two-phase sink that is a folder, so that tests and workers see the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bettong.engine.sinks.base import Noted, Row


@dataclass(frozen=True)
class FolderSink:
    folder: Path

    def open(self, application: str, epoch: int, noted: Noted, newest: int | None = None) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        rows: Sequence[Row],
        noted: Noted,
    ) -> None:
        lines = [[row.id, row.key, row.data.decode()] for row in rows]
        self._staged(epoch, batch, partition, attempt).write_text(json.dumps(lines))

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        rows = [
            row
            for p, a in sorted(winners.items())
            for row in json.loads(self._staged(epoch, batch, p, a).read_text())
        ]
        target = self.folder / f"batch-{batch:06d}"
        if not target.exists():
            target.write_text(json.dumps(rows))

    def _staged(self, epoch: int, batch: int, partition: int, attempt: int) -> Path:
        return self.folder / f"staged-{epoch}-{batch}-{partition}-{attempt}"

    def rows(self) -> list[tuple[str, str, str]]:
        return [
            (i, key, data)
            for path in sorted(self.folder.glob("batch-*"))
            for i, key, data in json.loads(path.read_text())
        ]
