from __future__ import annotations

from bettong.scenarios.benchmarks import ingest, proxies


def test_what_is_sent_comes_out_of_gateway_and_receiver() -> None:
    figures = ingest.bench(2_000)["figures"]
    assert all(reported["ratio"] > 0 for reported in figures.values())
    assert {"journal, frames-of-1000", "rows committed"} <= figures.keys()


def test_each_way_through_a_proxy_is_beside_none() -> None:
    figures = proxies.bench(20, megabytes=1)["figures"]
    assert "ratio" not in figures["round trips.direct"]
    assert figures["bulk.relay"]["versus"] == "direct"
    assert figures["round trips.embedded Toxiproxy"]["ratio"] > 0
