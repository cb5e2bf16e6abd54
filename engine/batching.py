"""When a micro-batch closes: by number or by time, whichever comes first."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from bettong.lineage.errors import UsageError

BY_NUMBER = math.inf
"""A wait that never ends: batches close by number alone, so that those of an input are always the
same."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)\Z")


@dataclass(frozen=True)
class Batching:
    """When a micro-batch closes.

    Attributes:
        messages: the most of each stream; a stream that has so many closes the batch.
        wait_s: seconds after which a message's batch closes with what there is of each stream, be
            it nothing. With :data:`BY_NUMBER` a batch has its full share of every stream, or what
            is left of one that has ended.

    Raises:
        UsageError: a number is out of range.
    """

    messages: int = 10_000
    wait_s: float = 0.05

    def __post_init__(self) -> None:
        if self.messages < 1:
            raise UsageError(f"batch_messages must be at least 1, got {self.messages}")
        if not self.wait_s >= 0:
            raise UsageError(f"batch_wait_s must not be negative, got {self.wait_s}")

    @property
    def by_number(self) -> bool:
        """Whether time closes no batch."""
        return self.wait_s == BY_NUMBER


def parse_wait(text: str) -> float:
    """Seconds of ``50ms``, ``2s``, ``1m`` or ``never``; raises UsageError."""
    if text == "never":
        return BY_NUMBER
    found = _DURATION.match(text)
    if found is None:
        raise UsageError(f"a wait of {text!r}: write 50ms, 2s, 1m or never")
    return float(found[1]) * _UNITS[found[2]]
