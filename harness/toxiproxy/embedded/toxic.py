"""A toxic in force, and bytes that are counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bettong.harness.toxiproxy.embedded.stages import Tally
from bettong.harness.toxiproxy.spec import Stream


@dataclass
class Toxic:
    """A toxic in force and what it has done so far. As lenient as Toxiproxy: what is checked, the
    client checks."""

    name: str
    type: str
    stream: Stream
    toxicity: float
    attributes: dict[str, int]
    tally: Tally = field(default_factory=Tally)

    def to_json(self) -> dict[str, Any]:
        return {
            "attributes": self.attributes,
            "name": self.name,
            "type": self.type,
            "stream": self.stream,
            "toxicity": self.toxicity,
        }


@dataclass
class Counts:
    """Bytes of one direction, summed over connections."""

    received: int = 0
    passed: int = 0
    held: int = 0

    def to_json(self) -> dict[str, int]:
        return {
            "received": self.received,
            "passed": self.passed,
            "held": self.held,
            "dropped": self.received - self.passed - self.held,
        }
