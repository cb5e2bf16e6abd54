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

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bettong.harness.faults.entry import mapping, shown
from bettong.harness.faults.errors import ScheduleError
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.point import Topology
from bettong.harness.faults.registry import parse_fault, to_entry
from bettong.harness.faults.step_shapes import is_step, nearest_step
from bettong.lineage.files import read_text
from bettong.lineage.nearest import one_of


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
        return {"faults": [to_entry(fault) for fault in self.faults]}

    def check(self, topology: Topology) -> None:
        """Raise ScheduleError when a fault names a node, link or step that cannot exist."""
        for fault in self.faults:
            _check(fault, topology)

    @classmethod
    def from_dict(cls, value: Any) -> Schedule:
        """The schedule of parsed YAML or JSON; raises ScheduleError."""
        top = mapping(value, "the schedule", ("faults",), ())
        entries = top["faults"]
        if not isinstance(entries, list):
            raise ScheduleError(f"faults: expected a list of faults, got {shown(entries)}")
        return cls(tuple(parse_fault(e, f"fault {i}") for i, e in enumerate(entries, 1)))

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
        text = read_text(path, "the fault schedule")
        try:
            return cls.parse(text)
        except ScheduleError as e:
            raise ScheduleError(f"{path}: {e}") from e


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key given twice, which YAML would quietly resolve."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ScheduleError(f"line {key.start_mark.line + 1}: a key has to be a name")
            if key.value in seen:
                raise ScheduleError(f"line {key.start_mark.line + 1}: {key.value} is given twice")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _check(fault: Fault, topology: Topology) -> None:
    for node in fault.nodes:
        one_of(node, topology.nodes, f"{fault.id}: node", ScheduleError)
    for link in fault.links:
        one_of(link, topology.links, f"{fault.id}: link", ScheduleError)
    fault.check(topology)
    for point in fault.points:
        if not is_step(point.step):
            nearest = nearest_step(point.step)
            hint = f"; did you mean {nearest}?" if nearest else ""
            raise ScheduleError(f"{fault.id}: there is no step {point.step}{hint}")
