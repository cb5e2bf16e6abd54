"""Sinks that do not know on their disks that a newer epoch has begun."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bettong.engine.receiver.ledger import Ledger
from bettong.engine.sinks.arrow import ArrowSink
from bettong.engine.sinks.base import Noted
from bettong.engine.sinks.files import FileSink
from bettong.engine.state.manifest import take_epoch
from bettong.engine.state.store import LocalStore
from bettong.harness.cluster.layout import Layout
from bettong.harness.runs.left_fences import check_fences
from bettong.harness.scenario import Outputs
from bettong.scenarios.applications.running_sum import app


def opened(layout: Layout, outputs: Outputs, *epochs: int) -> None:
    """The sink as these epochs have left it."""
    folder = layout.files / "sums"
    for epoch in epochs:
        if outputs == "receiver":
            ledger = Ledger(layout.receiver / app.name, app.name)
            ledger.open(epoch)
            ledger.close()
        else:
            sink = FileSink(folder) if outputs == "files" else ArrowSink(folder)
            folder.mkdir(parents=True, exist_ok=True)
            sink.open(app.name, epoch, Noted(""))


def taken(layout: Layout, count: int) -> None:
    for _ in range(count):
        take_epoch(LocalStore(layout.checkpoint / "state"), "driver")


@pytest.mark.parametrize("outputs", ["receiver", "files", "arrow"])
def test_a_sink_that_has_noted_the_newest_epoch_is_right(tmp_path: Path, outputs: Outputs) -> None:
    layout = Layout(tmp_path)
    assert check_fences(layout, app, outputs) == (), "nobody has begun an epoch"
    taken(layout, 2)
    assert check_fences(layout, app, outputs) == (), "there is nothing of it: who reads it says so"
    opened(layout, outputs, 1, 2)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert check_fences(layout, app, outputs) == ()
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.parametrize("outputs", ["receiver", "files", "arrow"])
def test_a_sink_that_only_knew_it_is_found(tmp_path: Path, outputs: Outputs) -> None:
    layout = Layout(tmp_path)
    taken(layout, 2)
    opened(layout, outputs, 1)
    (found,) = check_fences(layout, app, outputs)
    assert found.kind == "StateDivergence"
    assert found.seen == {"sink": "sums", "takes": "epoch 1"}
    assert found.note is not None and "an older driver" in found.note


def test_a_folder_whose_epochs_are_all_lost_is_found(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    taken(layout, 1)
    opened(layout, "files", 1)
    shutil.rmtree(layout.files / "sums" / "_epochs")
    assert len(check_fences(layout, app, "files")) == 1


def test_a_scenarios_own_sink_is_asked_itself(tmp_path: Path) -> None:
    """The engine's would refuse epoch 9, by the same folder."""
    layout = Layout(tmp_path)
    taken(layout, 10)
    opened(layout, "files", 9, 10)
    assert check_fences(layout, app, "files") == ()
    (found,) = check_fences(
        layout, app, "files", "bettong.scenarios.mutants.files:ComparesEpochsAsText"
    )
    assert found.seen == {"sink": "sums", "takes": "epoch 9"}
