from __future__ import annotations

from bettong.harness.bench.check import bench


def test_every_way_finds_the_planted_duplicate() -> None:
    told = bench(30_000, ("pandas",))
    assert told["name"] == "check"
    assert told["figures"]["check versus pandas"]["ratio"] > 0
    assert told["figures"]["check"]["unit"] == "records/s of CPU"
