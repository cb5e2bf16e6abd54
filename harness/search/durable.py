"""What of a run was not durable when: the power cuts that take something away.

What each node did to its disk is replayed, as the trace has it, into the model of durability
(:mod:`bettong.engine.storage.durability`). Between two changes of what is not durable all moments
of a node are alike to its disk; of these the first and the last are taken: at the first nobody
else knows of the change, at the last the most do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import cycle, islice
from pathlib import Path

from bettong.engine.storage.durability import KEEPS, Change, Inode, Keep, Volume
from bettong.harness.faults.fault import PowerLoss, TakenStep
from bettong.harness.faults.kinds import PowerCut
from bettong.harness.faults.point import SERVERS, Point, PointPhase
from bettong.harness.search.occurrences import DiskReport, Occurrence, Reading, named

MOST_WAYS = 4
"""So many ways to lose something at one moment are tried, and of those that have names all."""

_Key = tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class _Loss:
    """The ways to lose something at one moment, each with the steps that have written it."""

    moment: tuple[str, Point, int]
    ways: Sequence[tuple[Keep, frozenset[str]]]


@dataclass(slots=True)
class _NodeDisk:
    """The disk of one node as the trace has it."""

    volume: Volume = field(default_factory=Volume)
    handles: dict[str, Inode] = field(default_factory=dict)
    losses: dict[_Key, list[_Loss]] = field(default_factory=dict)
    _held: str = ""

    def held(self) -> str:
        """A digest of all that is there, and of how much of it is durable."""
        if not self._held:
            volume = self.volume
            names = sorted(
                (named(str(path)), i.content, i.durable, i.given_up, i.is_directory)
                for path, i in volume.names.items()
            )
            durable = sorted((named(str(path)), i.durable) for path, i in volume.durable.items())
            left = [named(volume.describe(change)) for change in volume.changes]
            self._held = blake2b(repr((names, durable, left)).encode(), digest_size=8).hexdigest()
        return self._held

    def moment(self, node: str, at: Point, sync: int = 0) -> None:
        """The power may be cut here."""
        key = tuple(self.volume.changes)
        if not key:
            return
        known = self.losses.setdefault(key, [])
        loss = _Loss((node, at, sync), known[0].ways if known else self._ways())
        if known:
            known[1:] = [loss]
        else:
            known.append(loss)

    def _ways(self) -> Sequence[tuple[Keep, frozenset[str]]]:
        choices = self.volume.choices()
        named = sum(keep in KEEPS for keep in choices)
        keeps = choices[: max(MOST_WAYS, named)]
        lost = ((keep, {change.origin for change in self.volume.lost(keep)}) for keep in keeps)
        return [(keep, frozenset(origins)) for keep, origins in lost]

    def call(self, operation: str, operands: Sequence[str], size: int) -> None:
        """A call to the disk was made."""
        self._held = ""
        volume, paths = self.volume, [Path(str(o)) for o in operands]
        match operation:
            case "open":
                known = volume.names.get(paths[1])
                self.handles[operands[0]] = known if known is not None else volume.create(paths[1])
            case "append":
                handle, *checksum = operands
                volume.append(self._opened(handle), _stand_in(checksum, size))
            case "truncate":
                inode = self._opened(operands[0])
                volume.truncate(inode, min(int(operands[1]), len(inode.content)))
            case "sync":
                volume.sync(self._opened(operands[0]))
            case "sync failed":
                volume.sync_failed(self._opened(operands[0]))
            case "rewrite":
                offset, length, name = operands
                volume.exists(Path(name), b"")
                volume.rewrite(volume.names[Path(name)], int(offset), int(length))
            case "rename" | "link" | "remove":
                volume.exists(paths[0], b"")
                getattr(volume, operation)(*paths)
            case "mkdir":
                volume.create(paths[0], is_directory=True)
            case "sync directory":
                volume.sync_directory(paths[0])

    def _opened(self, handle: str) -> Inode:
        """The file of a handle; one that was opened before the trace began was there before."""
        if handle not in self.handles:
            name = Path(handle)
            self.volume.exists(name, b"")
            self.handles[handle] = self.volume.names[name]
        return self.handles[handle]


class NotDurable:
    """The power cuts of one run, by the steps whose writes they take away.

    Attributes:
        held: at the places of the trace where a step of a server begins or ends, a digest of what
            its disk holds and how much of that is durable. Of other nodes' disks not all is told,
            nor what a power cut has left.

    Args:
        within: whether faults are placed at a step. The first and the last moment are those of
            these, or a change that lasts beyond them would be lost before others know of it alone.
    """

    def __init__(self, reading: Reading, within: Callable[[str], bool] = lambda _: True) -> None:
        self._within = within
        self.held: dict[int, str] = {}
        self._disks: dict[str, _NodeDisk] = {}
        self._syncs: Counter[tuple[str, str]] = Counter()
        reports: dict[int, list[DiskReport]] = {}
        for report in reading.disk:
            reports.setdefault(report.position, []).append(report)
        edges = {edge[0]: edge for edge in _edges(reading)}
        cut: set[str] = set()
        cuts = {
            s.position: s.fault.nodes for s in reading.injected if isinstance(s.fault, PowerCut)
        }
        for position in sorted(reports.keys() | edges.keys() | cuts.keys()):
            cut.update(cuts.get(position, ()))
            for report in reports.get(position, ()):
                self._replay(report)
            if position in edges:
                _, occurrence, phase = edges[position]
                self._moment(occurrence, phase)
                if occurrence.node in SERVERS and occurrence.node not in cut:
                    self.held[position] = self._disk(occurrence.node).held()
        self._of: dict[str, list[PowerLoss]] = {}
        for disk in self._disks.values():
            for losses in disk.losses.values():
                self._add(losses)

    def of(self, step: TakenStep) -> Sequence[PowerLoss]:
        """The power cuts that take away something of what this step has written."""
        return self._of.get(Point(step.step, "before", step.number).place, ())

    def _disk(self, node: str) -> _NodeDisk:
        return self._disks.setdefault(node, _NodeDisk())

    def _moment(self, at: Occurrence, phase: PointPhase, sync: int = 0) -> None:
        if self._within(at.step):
            self._disk(at.node).moment(at.node, _at(at, phase), sync)

    def _replay(self, report: DiskReport) -> None:
        of, disk = report.of, self._disk(report.of.node)
        disk.volume.origin = of.name
        phase: PointPhase = "before" if report.phase == "before" else "after"
        for _, operation, *operands, size in report.calls:
            if operation.startswith("sync") and report.phase == phase:
                self._syncs[of.name, phase] += 1
                self._moment(of, phase, self._syncs[of.name, phase])
            disk.call(operation, operands, size)

    def _add(self, losses: Sequence[_Loss]) -> None:
        for loss in losses:
            for keep, origins in loss.ways:
                for origin in origins:
                    self._of.setdefault(origin, []).append(PowerLoss(*loss.moment, keep))


def _stand_in(checksum: Sequence[object], size: int) -> bytes:
    """As many bytes as were written, of which the trace has the checksum alone."""
    return bytes(islice(cycle(repr(checksum).encode()), size))


def _edges(reading: Reading) -> Iterator[tuple[int, Occurrence, PointPhase]]:
    for occurrence in reading.occurrences:
        for position, phase in occurrence.edges:
            yield position, occurrence, phase


def _at(occurrence: Occurrence, phase: PointPhase) -> Point:
    return Point(occurrence.step, phase, occurrence.number)
