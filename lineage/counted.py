"""Numbers of things in words."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """So many of them: ``1 run``, ``1,120 runs``; ``many`` where an s is not enough."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
