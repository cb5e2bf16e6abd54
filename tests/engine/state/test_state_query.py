"""``bettong state`` and what it reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from batch_run import Simulation, aligned
from click.testing import CliRunner

from bettong.engine.state.manifest import ManifestError
from bettong.engine.state.query import entities_of, version
from bettong.engine.state.store import LocalStore
from bettong.harness.cli.state_command import command
from bettong.lineage.errors import UsageError
from bettong.scenarios.applications.word_count import app


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    store = LocalStore(tmp_path / "state")
    simulation = Simulation(app, store, {"lines": [b"it is", b"it", b"they"]})
    simulation.run(aligned(simulation.streams, 1))
    return tmp_path


def test_a_key_as_it_was_after_each_batch(checkpoint: Path) -> None:
    store = LocalStore(checkpoint / "state")
    assert entities_of(store, version(store), "it") == {"WordTotal": {"count": 2}}
    assert entities_of(store, version(store, 1), "they") == {}
    with pytest.raises(ManifestError, match="there are batches 1 to 2"):
        version(store, 0)


def reported(*arguments: str) -> dict[str, object]:
    result = CliRunner().invoke(command, [*arguments, "--json"], catch_exceptions=False)
    value: dict[str, object] = json.loads(result.stdout)
    return value


def test_the_command_shows_keys_and_sizes(checkpoint: Path) -> None:
    shown = reported(str(checkpoint), "--key", "it", "--at-batch", "1")
    assert shown["entities"] == {"WordTotal": {"count": 2}}
    assert shown["batch"] == 1
    shown = reported(str(checkpoint))
    assert shown["offsets"] == {"lines": 3}
    assert list(shown["states"]) == ["WordTotal"]  # type: ignore[call-overload]


def test_mistakes_are_one_line(checkpoint: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    for arguments, line in (
        ([str(tmp_path / "state")], "is no checkpoint of a run"),
        ([str(checkpoint), "--key", "nobody"], "no state has an entity of key 'nobody'"),
        ([str(checkpoint), "--key", "x", "--key-type", "int"], "--key 'x' is no int"),
    ):
        result = runner.invoke(command, arguments)
        assert isinstance(result.exception, UsageError)
        assert line in str(result.exception)
