"""A run's files, put aside while its nodes are started on them."""

from __future__ import annotations

import shutil
from pathlib import Path

from bettong.harness.cluster.layout import Layout
from bettong.harness.runs.remains import written_by_nodes


class KeptFiles:
    """A copy of what the nodes of a run have on their disks, and of what is not durable of that;
    to be made, and to be brought back, while none of them is up."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        layout.kept.mkdir()
        for path in self._on_disk():
            if path.is_dir():
                shutil.copytree(path, layout.kept / path.name)
            else:
                shutil.copy2(path, layout.kept / path.name)

    def bring_back(self) -> None:
        """The files are again what they were; the copy is gone."""
        for path in self._on_disk():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        for path in list(self._layout.kept.iterdir()):
            path.rename(self._layout.folder / path.name)
        self._layout.kept.rmdir()

    def _on_disk(self) -> list[Path]:
        return [*written_by_nodes(self._layout), self._layout.accounts]
