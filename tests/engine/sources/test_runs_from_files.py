"""Applications on sources without a server give what the interpreter says, also when stopped."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from folder_sink import FolderSink

from bettong.engine import interpret
from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.sources.base import FileSource, StreamSource
from bettong.engine.sources.directory import DirectorySource
from bettong.engine.sources.generator import GeneratorSource
from bettong.engine.state.manifest import Manifest
from bettong.scenarios.applications import follower_graph

EDGES = follower_graph.messages(60)["edges"]


def edge(number: int) -> bytes:
    return EDGES[number]


def sources(folder: Path) -> dict[str, StreamSource]:
    (folder / "whole").write_bytes(b"\n".join(EDGES))
    (folder / "growing").write_bytes(b"\n".join(EDGES) + b"\n")
    (folder / "in").mkdir()
    for n in range(3):
        part = EDGES[20 * n : 20 * n + 20]
        (folder / "in" / f"part-{n}").write_bytes(b"\n".join(part))
    return {
        "file": FileSource(folder / "whole"),
        "growing file": FileSource(folder / "growing", follow=True, end=b"end"),
        "directory": DirectorySource(folder / "in", folder / "index"),
        "generator": GeneratorSource(edge, len(EDGES)),
    }


class _Stop(BaseException):
    """The process ends."""


class StopsBeforeCommit(BatchProtocol):
    def commit(self, job: Job, manifest: Manifest) -> None:
        if job.batch == 1:
            raise _Stop
        super().commit(job, manifest)


@pytest.mark.parametrize("kind", ["file", "growing file", "directory", "generator"])
def test_a_job_with_an_end_is_complete_whatever_stops_it(tmp_path: Path, kind: str) -> None:
    app = follower_graph.app
    out = FolderSink(tmp_path / "out")
    config = RunConfig(
        tmp_path / "checkpoint",
        {"edges": sources(tmp_path)[kind]},
        {"followers": out},
        batch_messages=25,
    )
    with pytest.raises(_Stop):
        run_in_process(app, dataclasses.replace(config, batch_class=StopsBeforeCommit))
    assert out.rows() == []
    assert run_in_process(app, config) == 3
    outputs = interpret(app, {"edges": EDGES}).outputs
    assert sorted(out.rows()) == sorted([(o.id, o.key, o.data.decode()) for o in outputs])
