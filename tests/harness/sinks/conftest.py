"""What all tests of check-sink share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bettong.harness.sinks.arena import ArenaFor, arenas


@pytest.fixture(scope="module")
def arena_for() -> Iterator[ArenaFor]:
    with arenas(print) as arena_for:
        yield arena_for
