"""Fault schedules: YAML or JSON files to and from typed faults, checked strictly.

::

    faults:
      - crash: {node: driver, before: batch=1/sink.commit}       # or after:; restart: false
      - omit: {link: driver->receiver, at: batch=1/sink.commit#2}  # its second occurrence
      - omit-reply: {link: driver->receiver, at: batch=1/sink.commit}
      - cut: {between: [[w1], [w2]], from: STEP, until: STEP, direction: both}
      - cut: {between: [[driver], [receiver]], from: STEP, tries: 2}  # heals before the third
      - duplicate: {link: driver->receiver, at: batch=1/sink.commit}
      - pause: {node: driver, from: STEP, until: after STEP}       # replace: true
      - delay: {link: driver->receiver, at: STEP, latency_ms: 200}
      - power-cut: {node: receiver, at: STEP, sync: 2}           # before its second sync
      - storage: {before: batch=1/commits, errno: ENOSPC}        # or after:
"""

from __future__ import annotations

import errno as errno_codes
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bettong.harness.faults import kinds as f
from bettong.harness.faults.kinds import Fault, Point
from bettong.harness.faults.step_ids import is_step, nearest_step
from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import one_of

_POINT = re.compile(r"(?:(?P<phase>before|after) +)?(?P<step>[^\s#]+)(?:#(?P<n>[1-9]\d{0,5}))?$")
_KEYS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # needed, may be given
    "crash": (("node",), ("before", "after", "restart")),
    "omit": (("link", "at"), ()),
    "omit-reply": (("link", "at"), ()),
    "duplicate": (("link", "at"), ()),
    "delay": (("link", "at", "latency_ms"), ()),
    "throttle": (("link", "at", "rate_kb"), ()),
    "slice": (("link", "at", "size"), ()),
    "reset": (("link", "at"), ()),
    "cut": (("between", "from"), ("until", "direction", "tries")),
    "pause": (("node", "from"), ("until", "replace")),
    "power-cut": (("node", "at"), ("sync",)),
    "storage": ((), ("before", "after", "errno")),
}


class ScheduleError(UsageError):
    """A fault schedule that cannot be meant: what is wrong, where, and the nearest right name."""


@dataclass(frozen=True, slots=True)
class Topology:
    """The names that a schedule may use: nodes, and directed links ``a->b`` between them."""

    nodes: tuple[str, ...]
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Faults to be injected together into one run."""

    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        ids = self.ids
        for i, name in enumerate(ids):
            if name in ids[:i]:
                raise ScheduleError(f"the schedule has {name} twice: leave one out")

    @property
    def ids(self) -> tuple[str, ...]:
        """Stable ids of the faults, in the schedule's order."""
        return tuple(fault.id for fault in self.faults)

    def to_dict(self) -> dict[str, Any]:
        """The schedule as a schedule file holds it: JSON values only."""
        return {"faults": [_fault_to_dict(fault) for fault in self.faults]}

    def check(self, topology: Topology) -> None:
        """Raise ScheduleError when a fault names a node, link or step that cannot exist."""
        for fault in self.faults:
            _check_fault(fault, topology)

    @classmethod
    def from_dict(cls, value: Any) -> Schedule:
        """The schedule of parsed YAML or JSON; raises ScheduleError."""
        top = _mapping(value, "the schedule", ("faults",), ())
        entries = top["faults"]
        if not isinstance(entries, list):
            raise ScheduleError(f"faults: expected a list of faults, got {_shown(entries)}")
        return cls(tuple(_fault(e, f"fault {i}") for i, e in enumerate(entries, 1)))

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """The schedule of YAML or JSON text; raises ScheduleError."""
        try:
            value = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a SafeLoader
        except (yaml.YAMLError, ValueError, RecursionError) as e:
            raise ScheduleError(f"not YAML or JSON: {' '.join(str(e).split())[:300]}") from e
        return cls.from_dict(value)

    @classmethod
    def read(cls, path: Path) -> Schedule:
        """The schedule in a file; raises ScheduleError, naming the file."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as e:
            raise ScheduleError(f"cannot read the fault schedule {path}: {e}") from e
        try:
            return cls.parse(text)
        except ScheduleError as e:
            raise ScheduleError(f"{path}: {e}") from e


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key given twice, which YAML would quietly resolve."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise ScheduleError(f"line {key.start_mark.line + 1}: {key.value} is given twice")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def parse_point(text: str) -> Point:
    """The moment written as ``[before|after] STEP[#n]``; raises ScheduleError."""
    found = _POINT.match(text)
    if found is None:
        raise ScheduleError(f"{text!r} is not a step: write [before|after] STEP[#occurrence]")
    phase: f.PointPhase = "after" if found["phase"] == "after" else "before"
    return Point(found["step"], phase, int(found["n"] or 1))


def _shown(value: object) -> str:
    return "nothing" if value is None else f"{value!r}"[:80]


def _mapping(
    value: Any, where: str, needed: Sequence[str], optional: Sequence[str]
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ScheduleError(f"{where}: expected {{{', '.join(needed)}: …}}, got {_shown(value)}")
    for key in value:
        one_of(str(key), (*needed, *optional), f"{where}: key", ScheduleError)
    for key in needed:
        if key not in value:
            raise ScheduleError(f"{where}: {key} is missing")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.isprintable() or not value:
        raise ScheduleError(f"{where}: expected a name, got {_shown(value)}")
    return value


def _count(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 10**9:
        raise ScheduleError(f"{where}: expected a whole number above 0, got {_shown(value)}")
    return value


def _point(value: Any, where: str) -> Point:
    try:
        return parse_point(_text(value, where))
    except ScheduleError as e:
        raise e if str(e).startswith(where) else ScheduleError(f"{where}: {e}") from None


def _place(value: Any, where: str) -> Point:
    point = _point(value, where)
    if point.phase != "before":
        raise ScheduleError(f"{where}: name the step alone, without {point.phase!r}")
    return point


def _nodes(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ScheduleError(f"{where}: expected a list of nodes, got {_shown(value)}")
    return tuple(_text(node, where) for node in value)


def _fault(entry: Any, where: str) -> Fault:
    if not isinstance(entry, dict) or len(entry) != 1:
        raise ScheduleError(f"{where}: expected one fault such as {{crash: {{node: …}}}}")
    (kind, value), *_ = entry.items()
    one_of(str(kind), tuple(_KEYS), f"{where}: fault", ScheduleError)
    where = f"{where}, {kind}"
    given = _mapping(value, where, *_KEYS[kind])
    match kind:
        case "crash":
            return _crash(given, where)
        case "cut":
            return _cut(given, where)
        case "pause":
            return _pause(given, where)
        case "power-cut":
            at = _place(given["at"], f"{where}: at")
            sync = _count(given.get("sync", 1), f"{where}: sync")
            return f.PowerCut(_text(given["node"], f"{where}: node"), at, sync)
        case "storage":
            code = _text(given.get("errno", "ENOSPC"), f"{where}: errno")
            known = tuple(errno_codes.errorcode.values())
            one_of(code, known, f"{where}: errno", ScheduleError)
            return f.Storage(_moment(given, where), code)
    return _link_fault(kind, given, where)


def _moment(given: Mapping[str, Any], where: str) -> Point:
    if ("before" in given) == ("after" in given):
        raise ScheduleError(f"{where}: give one of before and after")
    phase: f.PointPhase = "before" if "before" in given else "after"
    place = _place(given[phase], f"{where}: {phase}")
    return Point(place.step, phase, place.occurrence)


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ScheduleError(f"{where}: expected true or false, got {_shown(value)}")
    return value


def _crash(given: Mapping[str, Any], where: str) -> f.Crash:
    restart = _flag(given.get("restart", True), f"{where}: restart")
    return f.Crash(_text(given["node"], f"{where}: node"), _moment(given, where), restart)


def _pause(given: Mapping[str, Any], where: str) -> f.Pause:
    replace = _flag(given.get("replace", False), f"{where}: replace")
    if "until" not in given and not replace:
        raise ScheduleError(f"{where}: until is missing; only who is replaced may go on at the end")
    until = _point(given["until"], f"{where}: until") if "until" in given else None
    start = _point(given["from"], f"{where}: from")
    return f.Pause(_text(given["node"], f"{where}: node"), start, until, replace)


def _cut(given: Mapping[str, Any], where: str) -> f.Cut:
    between = given["between"]
    if not isinstance(between, list) or len(between) != 2:
        raise ScheduleError(f"{where}: between: expected two lists of nodes such as [[w1], [w2]]")
    left, right = (_nodes(side, f"{where}: between") for side in between)
    if set(left) & set(right):
        raise ScheduleError(f"{where}: between: {(set(left) & set(right)).pop()} is on both sides")
    direction = _text(given.get("direction", "both"), f"{where}: direction")
    one_of(direction, ("both", "forward", "backward"), f"{where}: direction", ScheduleError)
    until = _point(given["until"], f"{where}: until") if "until" in given else None
    tries = _count(given["tries"], f"{where}: tries") if "tries" in given else None
    if until is not None and tries is not None:
        raise ScheduleError(f"{where}: give one of until and tries")
    start = _point(given["from"], f"{where}: from")
    return f.Cut(left, right, start, until, direction, tries)  # type: ignore[arg-type]


def _link_fault(kind: str, given: Mapping[str, Any], where: str) -> Fault:
    link = _text(given["link"], f"{where}: link")
    at = _place(given["at"], f"{where}: at")
    match kind:
        case "omit":
            return f.Omit(link, at)
        case "omit-reply":
            return f.OmitReply(link, at)
        case "duplicate":
            return f.Duplicate(link, at)
        case "delay":
            return f.Delay(link, at, _count(given["latency_ms"], f"{where}: latency_ms"))
        case "throttle":
            return f.Throttle(link, at, _count(given["rate_kb"], f"{where}: rate_kb"))
        case "slice":
            return f.Slice(link, at, _count(given["size"], f"{where}: size"))
        case _:
            return f.Reset(link, at)


def _fault_to_dict(fault: Fault) -> dict[str, Any]:
    def near(point: Point) -> str:
        return point.place if point.phase == "before" else str(point)

    match fault:
        case f.Crash(node, at, restart):
            last = {} if restart else {"restart": False}
            return {"crash": {"node": node, at.phase: at.place, **last}}
        case f.Cut(left, right, start, until, direction, tries):
            span = {"from": near(start)} | ({} if until is None else {"until": near(until)})
            cut = {"between": [list(left), list(right)], **span, "direction": direction}
            return {"cut": cut if tries is None else {**cut, "tries": tries}}
        case f.Pause(node, start, until, replace):
            span = {"from": near(start)} | ({} if until is None else {"until": near(until)})
            last = {"replace": True} if replace else {}
            return {"pause": {"node": node, **span, **last}}
        case f.PowerCut(node, at, sync):
            which = {} if sync == 1 else {"sync": sync}
            return {"power-cut": {"node": node, "at": at.place, **which}}
        case f.Storage(at, code):
            return {"storage": {at.phase: at.place, "errno": code}}
    kind = fault.id.partition("(")[0]
    value: dict[str, Any] = {"link": fault.link, "at": fault.at.place}
    match fault:
        case f.Delay(latency_ms=ms):
            value["latency_ms"] = ms
        case f.Throttle(rate_kb=rate):
            value["rate_kb"] = rate
        case f.Slice(size=size):
            value["size"] = size
    return {kind: value}


def _named(fault: Fault) -> Iterator[tuple[str, str]]:
    match fault:
        case f.Crash(node=node) | f.Pause(node=node) | f.PowerCut(node=node):
            yield "node", node
        case f.Cut(left, right):
            yield from (("node", node) for node in (*left, *right))
        case f.Storage():
            pass
        case _:
            yield "link", fault.link


def _check_fault(fault: Fault, topology: Topology) -> None:
    for what, name in _named(fault):
        known = topology.nodes if what == "node" else topology.links
        one_of(name, known, f"{fault.id}: {what}", ScheduleError)
    if isinstance(fault, f.Duplicate) and not f.repeats(fault.link):
        raise ScheduleError(
            f"{fault.id}: only what senders and the driver ask of the gateway and the receiver can "
            "be delivered twice; an answer belongs to the connection of its request"
        )
    if isinstance(fault, f.Pause) and fault.replace and fault.node != f.DRIVER:
        raise ScheduleError(f"{fault.id}: only a driver can be replaced while it stands still")
    for point in f.points(fault):
        if not is_step(point.step):
            nearest = nearest_step(point.step)
            hint = f"; did you mean {nearest}?" if nearest else ""
            raise ScheduleError(f"{fault.id}: there is no step {point.step}{hint}")
