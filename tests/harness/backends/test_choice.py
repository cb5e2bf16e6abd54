"""How many runs go on side by side."""

from __future__ import annotations

import pytest

from bettong.harness.backends.choice import BackendChoice

GIB = 1 << 30


@pytest.mark.parametrize(
    ("where", "cores", "gib", "runs"),
    [
        (BackendChoice(runner="in-process"), 2, 1, 6),
        (BackendChoice(), 2, 16, 4),
        (BackendChoice(), 8, 16, 8),
        (BackendChoice(), 8, 1, 2),
        (BackendChoice(), 1, 16, 1),
        (BackendChoice(runner="in-process"), 1, 16, 1),
        (BackendChoice(kind="docker"), 8, 64, 2),
        (BackendChoice(kind="docker", runner="in-process"), 2, 1, 6),
        (BackendChoice(master="spark://127.0.0.1:7077"), 8, 64, 2),
    ],
)
def test_as_many_as_cores_and_memory_allow(
    where: BackendChoice, cores: int, gib: int, runs: int
) -> None:
    assert where.at_once(cores, gib * GIB) == runs
