"""Step ids in requests and answers: there when steps are watched, empty in production."""

from __future__ import annotations

import re

from bettong.engine import steps

_VERB = re.compile(r"(?=(?:source|sink)\.)")


def is_watched() -> bool:
    """Whether this process records its steps."""
    instrumentation = steps.installed()
    return bool(instrumentation.conductor or instrumentation.trace)


def if_watched(step: str) -> str:
    """The step's id, or nothing."""
    return step if is_watched() else ""


def part_of(step: str, part: int) -> str:
    """The step that moves one part of what a step moves; nothing of one without a name."""
    return _VERB.sub(f"part={part}/", step, count=1)


def known(*steps: str) -> list[str]:
    """Those of the ids that are not empty."""
    return [step for step in steps if step]
