"""Characters that nobody would see, or that would change how what stands beside them is shown."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """One line in which control characters (line ends, ESC, those that turn the direction of
    writing), halves of surrogate pairs and line separators are shown as escapes."""
    return _UNSEEN.sub(lambda m: m[0].encode("unicode_escape").decode("ascii"), text)
