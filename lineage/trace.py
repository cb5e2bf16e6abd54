"""Trace events: what every process of a run says about each of its steps.

A *step* is one action with a stable id, such as ``batch=3/sink.commit``. Each time a step is
taken it leaves a ``before`` event and then either ``after`` (its effect is done) or ``failed``.
Order between steps is told by their causes, never by clocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bettong.lineage import seals
from bettong.lineage.errors import BettongError

Phase = Literal["before", "after", "failed"]
PHASES: tuple[Phase, ...] = ("before", "after", "failed")
_LONGEST_LINE = 16 << 20


class TraceError(BettongError):
    """A trace that cannot be read."""


class MessageRange(NamedTuple):
    """Messages ``stream/start`` up to but not including ``stream/stop``."""

    stream: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One phase of one step, as its process told it.

    Attributes:
        step: stable id of the step, the same in every run of the same input.
        phase: ``before`` | ``after`` | ``failed``.
        node: the node on which the step was taken.
        incarnation: which process of that node, counted from 1 at each restart.
        causes: ids of the steps whose effects this step has read.
        carries: the messages that the step moved or changed.
        link: ``"a->b"`` when the step is a request that a sends b.
        detail: anything else worth reading, JSON values only.
    """

    step: str
    phase: Phase
    node: str
    incarnation: int = 1
    causes: tuple[str, ...] = ()
    carries: tuple[MessageRange, ...] = ()
    link: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """One line of JSON without the line end."""
        value: dict[str, Any] = {"step": self.step, "phase": self.phase, "node": self.node}
        if self.incarnation != 1:
            value["incarnation"] = self.incarnation
        if self.causes:
            value["causes"] = self.causes
        if self.carries:
            value["carries"] = self.carries
        if self.link is not None:
            value["link"] = self.link
        if self.detail:
            value["detail"] = dict(self.detail)
        return json.dumps(value, separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, line: str | bytes) -> TraceEvent:
        """The event of one line; raises TraceError when the line is not an event."""
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as e:
            raise TraceError(f"not a trace event: {line[:200]!r}: {e}") from e
        return cls.from_value(value)

    @classmethod
    def from_value(cls, value: Any) -> TraceEvent:
        """The event of parsed JSON; raises TraceError when it is not an event."""
        try:
            if not isinstance(value["step"], str) or not isinstance(value["node"], str):
                raise TypeError("step and node are strings")
            if value["phase"] not in PHASES:
                raise ValueError(f"phase is one of {', '.join(PHASES)}")
            return cls(
                step=value["step"],
                phase=value["phase"],
                node=value["node"],
                incarnation=int(value.get("incarnation", 1)),
                causes=tuple(str(c) for c in value.get("causes", ())),
                carries=tuple(
                    MessageRange(str(s), int(a), int(b)) for s, a, b in value.get("carries", ())
                ),
                link=value.get("link"),
                detail=value.get("detail", {}),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as e:
            raise TraceError(f"not a trace event: {str(value)[:200]}: {e}") from e


def read_trace(path: Path) -> Iterator[TraceEvent]:
    """Events of a trace file in the order written; a torn last line is left out.

    Raises TraceError, naming the file, and the line of any other that is not an event.
    """
    try:
        seals.check(path)
    except BettongError as e:
        raise TraceError(str(e)) from e
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
            if len(line) == _LONGEST_LINE:
                raise TraceError(f"{path}:{number}: a line this long is no trace event")
            if not line.endswith(b"\n"):
                return
            try:
                yield TraceEvent.from_json(line)
            except TraceError as e:
                raise TraceError(f"{path}:{number}: {e}") from e


def write_trace(path: Path, events: Iterable[TraceEvent]) -> None:
    """Write events as JSON lines, replacing the file."""
    seals.write_sealed(path, "".join(event.to_json() + "\n" for event in events))
