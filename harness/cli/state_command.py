"""``bettong state``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from bettong.engine.keys import Key
from bettong.engine.state import savepoint
from bettong.engine.state.query import entities_of, read_kept
from bettong.engine.state.s3 import SCHEME, S3Store
from bettong.engine.state.store import LocalStore, Store
from bettong.harness.cli.printing import say
from bettong.lineage.errors import UsageError


@click.command("state", short_help="Show, export or import the state of an application.")
@click.argument("directory", metavar="DIR|s3://BUCKET/PREFIX")
@click.option("--key", help="Show the entities of this key.")
@click.option(
    "--key-type",
    type=click.Choice(["str", "int", "bytes"]),
    default="str",
    show_default=True,
    help="What the key extractor gives; bytes are written in hexadecimal.",
)
@click.option(
    "--at-batch",
    type=click.IntRange(0, 10**12 - 1),
    metavar="N",
    help="The state after this batch.",
)
@click.option(
    "--export",
    "exported",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a savepoint of it: the state with all that the next start needs, as one file.",
)
@click.option(
    "--import",
    "imported",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Make DIR, which must be new or empty, from a savepoint.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def command(
    directory: str,
    key: str | None,
    key_type: str,
    at_batch: int | None,
    exported: Path | None,
    imported: Path | None,
    as_json: bool,
) -> None:
    """Show the state of an application, also while it runs; export and import it.

    DIR is the checkpoint of a run. Without --key: how far the state has come and how large it is.

    A run that begins from a savepoint does the savepoint's batch again and goes on after it, on the
    runner that wrote it: sources must still have the messages that follow, and sinks must have seen
    no later batch, or be new ones.
    """
    if exported is not None or imported is not None:
        _savepoint(directory, key, at_batch, exported, imported, as_json)
        return
    store = _store(directory)
    wanted = None if key is None else _key(key, key_type)
    manifest, entities = read_kept(
        store,
        at_batch,
        lambda kept: {} if wanted is None else entities_of(store, kept, wanted),
    )
    reported: dict[str, Any] = {
        "application": manifest.application,
        "batch": manifest.batch,
        "offsets": dict(manifest.offsets),
    }
    if key is None:
        reported["states"] = {
            name: {
                "files": len(files),
                "bytes": sum(f.length for f in files),
                "rows_at_most": sum(f.rows for f in files),
            }
            for name in sorted({f.state for f in manifest.files})
            for files in [[f for f in manifest.files if f.state == name]]
        }
        reported["failed"] = dict(manifest.failed)
    else:
        reported["key"] = key
        reported["entities"] = entities
    if as_json:
        click.echo(json.dumps(reported, default=repr))
    else:
        for name, value in reported.items():
            say(f"{name}: {json.dumps(value, default=repr)}")
    if key is not None and not reported["entities"]:
        raise UsageError(f"no state has an entity of key {key!r} after batch {manifest.batch}")


def _savepoint(
    directory: str,
    key: str | None,
    at_batch: int | None,
    exported: Path | None,
    imported: Path | None,
    as_json: bool,
) -> None:
    """Export or import, and say what."""
    if key is not None or (imported is not None and (exported is not None or at_batch is not None)):
        raise UsageError(
            "--export goes with --at-batch alone, and --import with nothing: a savepoint has "
            "all keys after its batch"
        )
    if directory.startswith(SCHEME):
        raise UsageError("a savepoint is of a checkpoint with its state in it, not of one in S3")
    if imported is not None:
        done = savepoint.restore(imported, Path(directory))
        text = f"{directory}: {done['application']} goes on after batch {done['batch']}"
    else:
        assert exported is not None
        _store(directory)
        last = savepoint.export(Path(directory), exported, at_batch)
        done = {"application": last.application, "batch": last.batch, "offsets": dict(last.offsets)}
        text = f"{exported}: {last.application} after batch {last.batch}"
    click.echo(json.dumps(done) if as_json else text)


def _store(directory: str) -> Store:
    if directory.startswith(SCHEME):
        return S3Store.parse(directory)
    folder = Path(directory) / "state"
    if not (folder / "epochs").is_dir():
        raise UsageError(f"{directory} is no checkpoint of a run: it has no state/epochs")
    return LocalStore(folder)


def _key(text: str, kind: str) -> Key:
    try:
        if kind == "int":
            return int(text)
        return bytes.fromhex(text) if kind == "bytes" else text
    except ValueError as e:
        raise UsageError(f"--key {text!r} is no {kind}: {e}") from e
