"""``bettong state``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from bettong.engine.keys import Key
from bettong.engine.state.query import entities_of, version
from bettong.engine.state.s3 import SCHEME, S3Store
from bettong.engine.state.store import LocalStore, Store
from bettong.lineage.errors import UsageError


@click.command("state")
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
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def command(
    directory: str, key: str | None, key_type: str, at_batch: int | None, as_json: bool
) -> None:
    """Show the state of an application, also while it runs.

    DIR is the checkpoint of a run. Without --key: how far the state has come and how large it is.
    """
    store = _store(directory)
    manifest = version(store, at_batch)
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
        reported["entities"] = entities_of(store, manifest, _key(key, key_type))
    if as_json:
        click.echo(json.dumps(reported, default=repr))
    else:
        for name, value in reported.items():
            click.echo(f"{name}: {json.dumps(value, default=repr)}")
    if key is not None and not reported["entities"]:
        raise UsageError(f"no state has an entity of key {key!r} after batch {manifest.batch}")


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
