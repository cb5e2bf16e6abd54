from __future__ import annotations

from bettong.scenarios.benchmarks.check import bench


def test_every_way_finds_the_planted_duplicate() -> None:
    reported = bench(30_000, ("pandas",))
    assert reported["name"] == "check"
    assert reported["figures"]["check versus pandas"]["ratio"] > 0
    assert reported["figures"]["check"]["unit"] == "records/s of CPU"
