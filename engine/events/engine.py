"""The engine that takes one message at a time.

Outputs are delivered before the call that brought their message returns, so before anything is
durable. With a checkpoint the state is written every so many messages; after a crash the engine
begins with the last one written, asks for the messages from there on, and gives their outputs
again, under the same ids and with the same bytes. So the state is effectively-once and outputs
are at-least-once: a reader that drops ids it knows sees each once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from bettong.engine.batch.garbage import without_collection
from bettong.engine.crdt import acting_as
from bettong.engine.errors import FencedError
from bettong.engine.events.sharing import absorb, available_states, pack
from bettong.engine.events.steps import Compiled, Deliver
from bettong.engine.functions import State
from bettong.engine.graph import Application
from bettong.engine.keys import canonical, hash_bytes, parse
from bettong.engine.state.entities import as_today, decode_present, save
from bettong.engine.state.files import FileEntry, read_rows
from bettong.engine.state.housekeeping import Housekeeper, file_name
from bettong.engine.state.manifest import (
    Manifest,
    current_epoch,
    empty,
    read_manifest,
    stored,
    take_epoch,
    write_manifest,
)
from bettong.engine.state.store import LocalStore
from bettong.lineage.errors import BettongError, UsageError


class EventEngine:
    """Takes messages one by one.

    Args:
        app: the application; not one with steps over arrays.
        deliver: is given each output: sink, id, key and bytes.
        checkpoint: folder of the state log; without one a crash loses everything.
        every: after how many messages the state is written.
        site: name of this engine among those that share available states; each has its own
            messages and its own checkpoint, and no two have one name.

    Raises:
        UsageError: the application has steps over arrays; ``every`` is not at least 1; states are
            available and there is no site or no checkpoint, or other states beside them.
    """

    def __init__(
        self,
        app: Application,
        deliver: Deliver,
        checkpoint: Path | None = None,
        every: int = 100_000,
        site: str = "",
    ) -> None:
        if every < 1:
            raise UsageError(f"every must be at least 1, got {every}")
        self._shared = available_states(app)
        if self._shared and (checkpoint is None or not site):
            raise UsageError(
                f"state {self._shared[0].name} is available: give the engine site= and checkpoint="
            )
        self._site = site
        self._app = app
        self._compiled = Compiled(app, deliver)
        self._calls = self._compiled.calls
        self._every = every
        self._left = every
        self._failed = False
        self._state = empty(app.name)
        self._log = None if checkpoint is None else _Log(app, LocalStore(checkpoint / "state"))
        if self._log is not None:
            self._state = self._log.load(self._compiled)
        self._next = {s.name: self._state.offsets.get(s.name, 0) for s in app.sources}

    def next(self, stream: str) -> int:
        """The number of the message of a stream that is to be pushed next."""
        return self._next[stream]

    def push(self, stream: str, data: bytes) -> None:
        """Take the next message of a stream; its outputs are delivered when this returns.

        Raises:
            UserFunctionError: a user's function failed and the application's policy is to fail;
                the engine is of no more use, and the next one begins where the state was written.
        """
        if self._failed:
            raise BettongError(f"{self._app.name} has failed: begin again from its checkpoint")
        number = self._next[stream]
        slots = self._compiled.slots(data)
        try:
            if self._site:
                with acting_as(self._site):
                    for call in self._calls[stream]:
                        call(stream, number, slots)
            else:
                for call in self._calls[stream]:
                    call(stream, number, slots)
        except BaseException:
            self._failed = True
            raise
        self._next[stream] = number + 1
        self._left -= 1
        if not self._left:
            self.write()

    def push_all(self, stream: str, messages: Iterable[bytes]) -> None:
        """Take many messages, without Python's cyclic garbage collection between them."""
        with without_collection():
            for data in messages:
                self.push(stream, data)

    def write(self) -> None:
        """Write the state, if there is a checkpoint; it is durable when this returns.

        Raises FencedError when another engine has begun on the checkpoint; this one is of no more
        use.
        """
        self._left = self._every
        changed = any(self._compiled.touched.values()) or dict(self._state.offsets) != self._next
        if self._log is not None and changed:
            try:
                self._state = self._log.write(self._compiled, self._state, self._next)
            except FencedError:
                self._failed = True
                raise
        for keys in self._compiled.touched.values():
            keys.clear()

    def share(self) -> bytes:
        """What other sites may absorb: the entities of available states, as they are now. They
        are written first, so that nothing which others know can be lost and done again here."""
        self.write()
        return pack(self._compiled, self._shared)

    def absorb(self, shared: bytes) -> None:
        """Merge what another site shares; again, late or out of order does no harm.

        Raises:
            SharedError: it is damaged or another application's; then nothing is merged.
        """
        absorb(self._compiled, self._shared, shared)

    def close(self) -> None:
        """Write the state and end; an engine that another one has replaced writes nothing."""
        try:
            if not self._failed:
                with contextlib.suppress(FencedError):
                    self.write()
        finally:
            if self._log is not None:
                self._log.housekeeper.close()


class _Log:
    """The state log of an engine: each version is a batch of the messages since the last."""

    def __init__(self, app: Application, store: LocalStore) -> None:
        self._app = app
        self._store = store
        self._epoch = take_epoch(store, "")
        self.housekeeper = Housekeeper(store, app.states, 1, self._epoch, 2, 8)

    def load(self, compiled: Compiled) -> Manifest:
        """Put all entities of the last version in their place."""
        last = max((batch for batch, _ in stored(self._store)), default=-1)
        manifest = read_manifest(self._store, self._app.name, last)
        for state in self._app.states:
            for entry in reversed([f for f in manifest.files if f.state == state.name]):
                self._read(state, entry, compiled)
        return manifest

    def _read(self, state: State, entry: FileEntry, compiled: Compiled) -> None:
        rows = read_rows(self._store, entry)
        column = as_today(state, rows.entities, rows.version)
        entities = compiled.entities[state.name]
        for key, entity in zip(
            rows.keys.to_pylist(),
            decode_present(state, column, state.codec.version),
            strict=True,
        ):
            if entity is None:
                entities.pop(parse(key), None)
            else:
                entities[parse(key)] = entity

    def write(self, compiled: Compiled, before: Manifest, ends: dict[str, int]) -> Manifest:
        """Write the entities that were touched as the next version. Raises FencedError when a
        newer epoch has been taken: what it has seen would be passed over by the next engine."""
        newest = current_epoch(self._store)
        if newest != self._epoch:
            raise FencedError(
                f"epoch {self._epoch} of {self._app.name} has been replaced by epoch {newest}: "
                "give each engine a checkpoint of its own"
            )
        new = [
            self._save(state, compiled, before.batch + 1)
            for state in self._app.states
            if compiled.touched[state.name]
        ]
        files = self.housekeeper.current(before.files)
        manifest = Manifest(
            self._app.name, before.batch + 1, self._epoch, dict(ends), (*new, *files)
        )
        write_manifest(self._store, manifest)
        self.housekeeper.after(manifest)
        return manifest

    def _save(self, state: State, compiled: Compiled, batch: int) -> FileEntry:
        touched = list(compiled.touched[state.name])
        keys = [canonical(key) for key in touched]
        entities = list(map(compiled.entities[state.name].get, touched))
        name = file_name(state.name, self._epoch, batch, "events")
        return save(state, self._store, name, keys, list(map(hash_bytes, keys)), entities)
