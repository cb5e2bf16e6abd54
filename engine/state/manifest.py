"""Manifests: which files *are* the state after a batch.

Manifest N is written when every task of batch N has ended and before any sink commits. Its name
holds the epoch that wrote it, so that a driver which has been replaced, and does not know it,
can write nothing over what its successor wrote; of several manifests of one batch the one with
the highest epoch counts. They hold the same state anyhow, since a replay computes the same.

A manifest is one line of JSON followed by a line with its CRC-32.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bettong.engine.state.files import FileEntry
from bettong.engine.state.store import Store
from bettong.engine.steps import step
from bettong.lineage.errors import BettongError

FORMAT = 1
FOLDER = "manifests"
_NAME = re.compile(r"(\d{12})-(\d{6})\.json\Z")
_EPOCH = re.compile(r"(\d{6})\.json\Z")


class ManifestError(BettongError):
    """A manifest that is missing, damaged or of another application."""


@dataclass(frozen=True)
class Manifest:
    """The state after a batch, and what the batch did.

    Attributes:
        application: whose state it is.
        batch: Spark's id of the batch.
        epoch: which start of the query wrote it.
        offsets: for each stream the number of the first message that is not in the state.
        files: newest first; where two hold one key, the first counts.
        winners: for each sink, for each state partition that has outputs for it, the attempt whose
            staged outputs the sink makes visible.
        failed: for each step on how many messages its function has failed since the beginning.
    """

    application: str
    batch: int
    epoch: int
    offsets: Mapping[str, int]
    files: tuple[FileEntry, ...]
    winners: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)

    def files_of(self, state: str, low: int, high: int) -> tuple[FileEntry, ...]:
        """Files that may hold a hash of ``[low, high)`` of a state, newest first."""
        return tuple(f for f in self.files if f.state == state and f.low < high and low <= f.high)


def empty(application: str) -> Manifest:
    """The state before the first batch."""
    return Manifest(application, -1, 0, {}, ())


def write_manifest(store: Store, manifest: Manifest) -> None:
    """Publish a manifest; durable when this returns."""
    store.publish(_name(manifest.batch, manifest.epoch), _to_bytes(manifest))


def read_manifest(store: Store, application: str, batch: int) -> Manifest:
    """The state after a batch; -1 is before the first.

    Raises:
        ManifestError: there is none, or it is damaged, or it is another application's.
    """
    if batch < 0:
        return empty(application)
    epochs = [epoch for b, epoch in stored(store) if b == batch]
    if not epochs:
        raise ManifestError(
            f"there is no manifest of batch {batch} of {application}: the state log does not "
            "belong to this checkpoint, or the batch is older than what is kept"
        )
    manifest = read_version(store, batch, max(epochs))
    if manifest.application != application:
        raise ManifestError(
            f"{_name(batch, max(epochs))} is state of application {manifest.application}, not of "
            f"{application}: give each application a checkpoint of its own"
        )
    return manifest


def read_version(store: Store, batch: int, epoch: int) -> Manifest:
    """The manifest that an epoch wrote of a batch; raises ManifestError."""
    name = _name(batch, epoch)
    found = _from_bytes(bytes(store.read(name)), name)
    if (found.batch, found.epoch) != (batch, epoch):
        raise ManifestError(
            f"{name} holds batch {found.batch} of epoch {found.epoch}: it has been renamed or "
            "copied; restore it from a copy"
        )
    return found


def stored(store: Store) -> list[tuple[int, int]]:
    """(batch, epoch) of every manifest, in order."""
    found = (_NAME.match(n) for n in store.names(FOLDER))
    return sorted((int(m[1]), int(m[2])) for m in found if m)


def newest_batch(store: Store) -> int:
    """The newest batch that has a manifest; -1 before the first."""
    return max((batch for batch, _ in stored(store)), default=-1)


def remove_manifest(store: Store, batch: int, epoch: int) -> None:
    """Give up a version of the state."""
    store.remove(_name(batch, epoch))


def take_epoch(store: Store, owner: str) -> int:
    """The next epoch, taken by creating its file: no two starts get the same.

    Args:
        store: the state log.
        owner: written into the file, for people who look.
    """
    while True:
        epoch = current_epoch(store) + 1
        if create_epoch(store, epoch, owner):
            return epoch


def create_epoch(store: Store, epoch: int, owner: str) -> bool:
    """Take this epoch, as the step ``epoch=E/take``; False when another start has it already."""
    with step(f"epoch={epoch}/take") as taking:
        taken = store.create(f"epochs/{epoch:06d}.json", json.dumps({"owner": owner}).encode())
        taking.note(taken=taken)
        return taken


def current_epoch(store: Store) -> int:
    """The highest epoch that was ever taken; 0 before the first."""
    found = (_EPOCH.match(n) for n in store.names("epochs"))
    return max((int(m[1]) for m in found if m), default=0)


def _name(batch: int, epoch: int) -> str:
    return f"{FOLDER}/{batch:012d}-{epoch:06d}.json"


def _to_bytes(manifest: Manifest) -> bytes:
    value = {
        "format": FORMAT,
        "application": manifest.application,
        "batch": manifest.batch,
        "epoch": manifest.epoch,
        "offsets": dict(manifest.offsets),
        "failed": dict(manifest.failed),
        "winners": {s: sorted(w.items()) for s, w in sorted(manifest.winners.items())},
        "files": [f.to_json() for f in manifest.files],
    }
    line = json.dumps(value, separators=(",", ":")).encode()
    return b"%s\n%08x\n" % (line, zlib.crc32(line))


def _from_bytes(data: bytes, name: str) -> Manifest:
    line, _, checksum = data.partition(b"\n")
    if checksum != b"%08x\n" % zlib.crc32(line):
        raise ManifestError(
            f"{name} is damaged: its checksum is wrong; restore it from a copy, or remove it and "
            "the checkpoint's commits from that batch on, so that the batch is done again"
        )
    try:
        value: dict[str, Any] = json.loads(line)
        if value["format"] != FORMAT:
            raise ManifestError(
                f"{name} has format {value['format']}, this version of Bettong reads {FORMAT}"
            )
        return Manifest(
            value["application"],
            value["batch"],
            value["epoch"],
            value["offsets"],
            tuple(FileEntry.from_json(f) for f in value["files"]),
            {s: dict(w) for s, w in value["winners"].items()},
            value["failed"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise ManifestError(f"{name} is not a manifest: {type(e).__name__}: {e}") from e
