"""One entry of a schedule file, read field by field: every mistake is one clear error that names
the entry and the field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from bettong.harness.faults.errors import ScheduleError
from bettong.harness.faults.point import Point, PointPhase
from bettong.lineage.nearest import one_of


def mapping(
    value: Any, where: str, needed: Sequence[str], optional: Sequence[str]
) -> dict[str, Any]:
    """The value, when it is a mapping with all these keys and no others; raises ScheduleError."""
    if not isinstance(value, dict):
        raise ScheduleError(f"{where}: expected {{{', '.join(needed)}: …}}, got {shown(value)}")
    for key in value:
        one_of(str(key), (*needed, *optional), f"{where}: key", ScheduleError)
    for key in needed:
        if key not in value:
            raise ScheduleError(f"{where}: {key} is missing")
    return value


def shown(value: object) -> str:
    """A value as an error shows it."""
    return "nothing" if value is None else f"{value!r}"[:80]


class Entry:
    """The fields of one fault. Each reader raises ScheduleError for what cannot be meant.

    Args:
        where: what errors begin with, e.g. ``fault 2, crash``.
        needed, optional: the fields that there may be.
    """

    def __init__(
        self, value: Any, where: str, needed: Sequence[str], optional: Sequence[str]
    ) -> None:
        self.where = where
        self._given = mapping(value, where, needed, optional)

    def __contains__(self, key: str) -> bool:
        return key in self._given

    def error(self, what: str) -> ScheduleError:
        """An error about this entry."""
        return ScheduleError(f"{self.where}: {what}")

    def value(self, key: str) -> Any:
        """Whatever stands there; None when nothing does."""
        return self._given.get(key)

    def text(self, key: str, default: str = "") -> str:
        """A name."""
        return self._text(self._given.get(key, default), key)

    def names(self, key: str, value: Any) -> tuple[str, ...]:
        """A list of nodes."""
        if not isinstance(value, list) or not value:
            raise self.error(f"{key}: expected a list of nodes, got {shown(value)}")
        return tuple(self._text(node, key) for node in value)

    def one_of(self, key: str, known: Sequence[str], default: str) -> str:
        """One of these names."""
        return one_of(self.text(key, default), known, f"{self.where}: {key}", ScheduleError)

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number above 0."""
        value = self._given.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 10**9:
            raise self.error(f"{key}: expected a whole number above 0, got {shown(value)}")
        return value

    def count_or_all(self, key: str) -> int | Literal["all"]:
        """A whole number above 0, or ``all``."""
        return "all" if self._given.get(key) == "all" else self.count(key)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._given.get(key, default)
        if not isinstance(value, bool):
            raise self.error(f"{key}: expected true or false, got {shown(value)}")
        return value

    def point(self, key: str) -> Point:
        """A moment."""
        text = self.text(key)
        try:
            return Point.parse(text)
        except ScheduleError as e:
            raise self.error(f"{key}: {e}") from None

    def end(self, key: str, start: Point) -> Point | None:
        """A moment that comes after this one; None when nothing stands there."""
        if key not in self:
            return None
        point = self.point(key)
        if not point.may_follow(start):
            raise self.error(f"{key}: {point} does not come after {start}")
        return point

    def place(self, key: str) -> Point:
        """A step, without before or after."""
        point = self.point(key)
        if point.phase != "before":
            raise self.error(f"{key}: name the step alone, without {point.phase!r}")
        return point

    def moment(self) -> Point:
        """The moment that is given as either ``before: STEP`` or ``after: STEP``."""
        if ("before" in self) == ("after" in self):
            raise self.error("give one of before and after")
        phase: PointPhase = "before" if "before" in self else "after"
        place = self.place(phase)
        return Point(place.step, phase, place.occurrence)

    def _text(self, value: Any, key: str) -> str:
        if not isinstance(value, str) or not value.isprintable() or not value:
            raise self.error(f"{key}: expected a name, got {shown(value)}")
        return value
