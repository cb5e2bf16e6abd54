"""Step ids in requests and answers: there when steps are watched, empty in production."""

from __future__ import annotations

from bettong.engine import steps


def is_watched() -> bool:
    """Whether this process records its steps."""
    instrumentation = steps.installed()
    return bool(instrumentation.conductor or instrumentation.trace)


def if_watched(step: str) -> str:
    """The step's id, or nothing."""
    return step if is_watched() else ""


def known(*steps: str) -> list[str]:
    """Those of the ids that are not empty."""
    return [step for step in steps if step]
