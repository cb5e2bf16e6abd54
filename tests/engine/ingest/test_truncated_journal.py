"""A journal that has lost its end, and nobody is left who would send it again: whoever has taken
what is missing says so."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bettong.engine.address import Address
from bettong.engine.config import RunConfig
from bettong.engine.endpoints import GatewaySource
from bettong.engine.errors import MissingError
from bettong.engine.in_process import run_in_process
from bettong.engine.ingest.acked import AckedFile
from bettong.engine.ingest.gateway import Gateway
from bettong.engine.ingest.sender import Sender
from bettong.engine.net.access import ListenConfig
from bettong.engine.sinks.files import FileSink, read_rows
from bettong.engine.storage.log import Position, RecordLog, segment_path
from bettong.scenarios.applications.running_sum import app, messages

COUNT = 40
LINES = messages(COUNT)["amounts"]


@contextmanager
def gateway(folder: Path) -> Iterator[Address]:
    server = Gateway(ListenConfig(Address("127.0.0.1", 0)), folder)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server.address
    finally:
        server.close()
        thread.join()


def truncated(folder: Path, name: str, keep: int) -> Path:
    """A copy of a gateway's folder that ends before message ``keep``; a frame has one message."""
    copy = folder.with_name(name)
    shutil.copytree(folder, copy)
    starts: list[Position] = []
    log = RecordLog(
        copy / "streams" / "amounts",
        head=bytes,
        on_head=lambda _: None,
        visit=lambda record: starts.append(record.position),
    )
    log.close()
    segment = segment_path(log.directory, 1)
    segment.write_bytes(segment.read_bytes()[: starts[keep].offset])
    return copy


def run(folder: Path, address: Address) -> int:
    source, sink = GatewaySource(address, "amounts"), FileSink(folder / "out")
    config = RunConfig(
        folder / "checkpoint", {"amounts": source}, {"sums": sink}, batch_messages=10
    )
    return run_in_process(app, config)


@pytest.mark.parametrize("keep", [0, 25, COUNT - 1])
def test_a_run_names_what_it_had_taken_and_the_gateway_has_lost(tmp_path: Path, keep: int) -> None:
    with gateway(tmp_path / "whole") as address:
        Sender(address, "amounts", LINES, AckedFile(None, "amounts")).run()
        run(tmp_path, address)
    before = sorted(str(row) for row in read_rows(tmp_path / "out"))
    assert len(before) == COUNT
    with gateway(truncated(tmp_path / "whole", "cut", keep)) as address:
        for _ in range(2):
            with pytest.raises(MissingError, match=f"amounts/{keep} to amounts/{COUNT - 1} are"):
                run(tmp_path, address)
    assert sorted(str(row) for row in read_rows(tmp_path / "out")) == before
    with gateway(truncated(tmp_path / "whole", "end", COUNT)) as address:
        Sender(address, "amounts", LINES, AckedFile(None, "amounts")).run()
        run(tmp_path, address)  # its end alone was missing, and its sender is still there
    assert sorted(str(row) for row in read_rows(tmp_path / "out")) == before
