"""What people see of a run: all its messages, and which facts held where and when."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from bettong.lineage.dedalus.evaluation import Tables
from bettong.lineage.dedalus.names import BUILT_IN
from bettong.lineage.dedalus.worlds import Crashes, Rounds, World
from bettong.lineage.protocols.failure_spec import FailureSpec, Link, RoundFaults
from bettong.lineage.protocols.rounds import Message

REMEMBERED = 4_000

Held = dict[str, dict[str, list[int]]]


class _Scene(NamedTuple):
    held: tuple[tuple[str, str], ...]
    sent: tuple[tuple[Link, str, tuple[object, ...]], ...]


class Scenery:
    """Shows runs of a program, with the relations that its goals do not need, too."""

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds
        self._scenes: dict[Hashable, _Scene] = {}

    def of(
        self, spec: FailureSpec, faults: tuple[RoundFaults, ...], crashes: Crashes
    ) -> tuple[tuple[Message, ...], Held]:
        """The messages between nodes, and for each place and fact the rounds in which it held."""
        messages: list[Message] = []
        held: Held = {}
        world = self._rounds.start()
        for time, now in enumerate(faults, 1):
            scene = self._scene(world, time, now, crashes)
            for place, fact in scene.held:
                held.setdefault(place, {}).setdefault(fact, []).append(time)
            if time < spec.eot:
                messages += _messages(scene, time, now, faults[time], spec.eot)
                world = self._rounds.step(world, time, now, crashes)
        return tuple(messages), held

    def _scene(self, world: World, time: int, now: RoundFaults, crashes: Crashes) -> _Scene:
        key = (world, time, now.stopped, now.restarted, crashes)
        found = self._scenes.get(key)
        if found is None:
            if len(self._scenes) > REMEMBERED:
                self._scenes.clear()
            tables = self._rounds.tables(world, time, now, crashes, views=True)
            out = self._rounds.outgoing(world, time, now, crashes)
            found = self._scenes[key] = _Scene(
                tuple(_held(tables)),
                tuple(
                    ((a, b), relation.split("#")[0], row)
                    for (a, b), facts in sorted(out.sent.items())
                    if a != b
                    for relation, row in sorted(facts, key=repr)
                    if relation not in BUILT_IN
                ),
            )
        return found


def _written(relation: str) -> bool:
    return "#" not in relation and "@" not in relation and relation not in BUILT_IN


def _held(tables: Tables) -> Iterator[tuple[str, str]]:
    for relation, table in sorted(tables.items()):
        if _written(relation):
            for row in sorted(table.rows, key=repr):
                yield str(row[0]), f"{relation}({','.join(map(str, row))})"


def _messages(
    scene: _Scene, time: int, now: RoundFaults, after: RoundFaults, eot: int
) -> Iterator[Message]:
    for (a, b), relation, row in scene.sent:
        if a in now.stopped:
            continue
        delayed = (a, b) in now.delayed
        lost = (a, b) in now.lost or (b in after.stopped and not delayed)
        arrives = time + 2 if delayed else time + 1
        yield Message(relation, a, b, time, None if lost or arrives > eot else arrives, row)
