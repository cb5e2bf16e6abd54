from __future__ import annotations

import pytest

from bettong.scenarios.benchmarks.check import bench


@pytest.mark.parametrize("way", ["pandas", "duckdb"])
def test_every_way_finds_the_planted_duplicate(way: str) -> None:
    pytest.importorskip(way)
    reported = bench(30_000, (way,))
    assert reported["name"] == "check"
    assert reported["figures"][f"check versus {way}"]["ratio"] > 0
    assert reported["figures"]["check"]["unit"] == "records/s of CPU"
