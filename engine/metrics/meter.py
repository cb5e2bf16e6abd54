"""What one task measures of itself; it goes to the driver in the task's report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any, Protocol


class Meter(Protocol):
    """Takes times of a task. Each call covers a whole block of messages."""

    def step(self, name: str, messages: int, took_ns: int) -> None:
        """A step of the application has been done for so many messages."""
        ...

    def part(self, name: str, took_ns: int) -> None:
        """A part of the task's own work is done."""
        ...

    def report(self) -> dict[str, Any]:
        """What goes into the task's report."""
        ...


class TaskMeter:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self._steps: dict[str, list[tuple[int, int]]] = {}
        self._parts: dict[str, int] = {}

    def step(self, name: str, messages: int, took_ns: int) -> None:
        self._steps.setdefault(name, []).append((messages, took_ns))

    def part(self, name: str, took_ns: int) -> None:
        self._parts[name] = self._parts.get(name, 0) + took_ns

    def report(self) -> dict[str, Any]:
        return {"measured": {"steps": self._steps, "parts": self._parts}}


class NoMeter:
    """Forgets what it is told: nothing is measured."""

    def step(self, name: str, messages: int, took_ns: int) -> None:
        pass

    def part(self, name: str, took_ns: int) -> None:
        pass

    def report(self) -> dict[str, Any]:
        return {}


def meter(measure: bool) -> Meter:
    """What a task measures with."""
    return TaskMeter() if measure else NoMeter()


@contextmanager
def timed(meter: Meter, part: str) -> Iterator[None]:
    """A part of a task's work."""
    begin = perf_counter_ns()
    try:
        yield
    finally:
        meter.part(part, perf_counter_ns() - begin)
