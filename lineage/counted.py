"""Numbers of things in words."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """So many of them: ``1 run``, ``1,120 runs``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
