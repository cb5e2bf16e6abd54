"""``bettong state`` and what it reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from batch_run import Simulation, aligned
from click.testing import CliRunner

from bettong.engine.state.manifest import Manifest, ManifestError
from bettong.engine.state.query import entities_of, read_kept, version
from bettong.engine.state.store import LocalStore, StoreError
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


def test_what_is_given_up_while_it_is_read_is_read_of_the_newer_batch(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "state")
    simulation = Simulation(app, store, {"lines": [b"it is", b"it", b"they", b"it"]})
    batches = aligned(simulation.streams, 1)
    protocol = simulation.start()
    simulation.batch(protocol, 0, {}, batches[0])
    seen: list[int] = []

    def read(manifest: Manifest) -> object:
        if not seen:  # the run goes on, and keeps two versions
            for n in range(1, 4):
                simulation.batch(protocol, n, batches[n - 1], batches[n])
        seen.append(manifest.batch)
        return entities_of(store, manifest, "it")

    manifest, found = read_kept(store, None, read)
    assert seen == [0, 3]
    assert (manifest.batch, found) == (3, {"WordTotal": {"count": 3}})
    seen.clear()
    with pytest.raises(ManifestError, match="after batch 0 is not kept"):
        read_kept(store, 0, read)


def test_what_is_missing_of_a_version_that_is_kept_is_an_error(checkpoint: Path) -> None:
    store = LocalStore(checkpoint / "state")
    for entry in version(store).files:
        store.remove(entry.name)
    with pytest.raises(StoreError, match="cannot be read"):
        read_kept(store, None, lambda manifest: entities_of(store, manifest, "it"))
