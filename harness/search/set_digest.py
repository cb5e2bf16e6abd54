"""The digest of a set that grows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

_BYTES = 6


@dataclass(slots=True)
class SetDigest:
    """A set of texts that grows, and its digest.

    Attributes:
        value: equal for equal sets, in whatever order they have grown.
    """

    value: int = 0
    _known: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return f"{self.value:0{2 * _BYTES}x}"

    def take_in(self, texts: Iterable[str]) -> list[str]:
        """Take in some, and tell those that are new."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(fresh)
        for text in fresh:
            # A sum, so that a large set costs no more than a small one.
            added = int.from_bytes(blake2b(text.encode(), digest_size=_BYTES).digest(), "big")
            self.value = (self.value + added) % (1 << 8 * _BYTES)
        return fresh
