"""How long a query waits between two batches."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from bettong.harness.queries.sink.triggers import have_no_interval


class Writer:
    """Takes a trigger as PySpark's own does."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def trigger(self, **options: Any) -> Writer:
        """Refuses what is no interval."""
        if options.get("processingTime") == "soon":
            raise ValueError("soon")
        self.asked.append(options)
        return self


@pytest.fixture
def writer() -> Any:
    module = ModuleType("readwriter")
    module.DataStreamWriter = type("OfOurs", (Writer,), {})  # type: ignore[attr-defined]
    have_no_interval(module)
    return module.DataStreamWriter()


@pytest.mark.parametrize(
    ("options", "in_force"),
    [
        ({"processingTime": "10 seconds"}, {"processingTime": "0 seconds"}),
        ({"processingTime": None, "availableNow": True}, {"availableNow": True}),
        ({"once": True}, {"once": True}),
    ],
)
def test_only_an_interval_is_taken_for_none(
    writer: Any, options: dict[str, Any], in_force: dict[str, Any]
) -> None:
    assert writer.trigger(**options) is writer
    last = {name: value for name, value in writer.asked[-1].items() if value is not None}
    assert last == in_force


def test_what_is_no_interval_is_refused_as_ever(writer: Any) -> None:
    with pytest.raises(ValueError, match="soon"):
        writer.trigger(processingTime="soon")
