"""``bettong bench``: names, sizes and figures."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from bettong.harness.catalog import entries
from bettong.harness.cli import cli
from bettong.scenarios.benchmarks import bytewax_peer, latency, market_spread, price, state_size
from bettong.scenarios.benchmarks.errors import WrongResultError
from bettong.scenarios.benchmarks.timing import steady


def test_every_measurement_is_in_the_catalog_and_can_be_loaded() -> None:
    found = {entry.name: entry.load() for entry in entries("bench")}
    assert {"engine", "latency", "ldfi"} <= found.keys()
    assert all(callable(bench) for bench in found.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["latencies"], "did you mean latency"),
        (["steps", "--full"], "bench steps has no --full: leave it out"),
    ],
)
def test_a_wrong_name_and_a_wrong_size_are_refused(arguments: list[str], message: str) -> None:
    refused = CliRunner().invoke(cli, ["bench", *arguments])
    assert refused.exit_code == 2
    assert message in refused.stderr


def test_latency_has_a_figure_for_each_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "RATE", 2_000)
    monkeypatch.setattr(latency, "SECONDS", 2)
    monkeypatch.setattr(latency, "EVERY", 500)
    found = CliRunner().invoke(cli, ["bench", "latency", "--json"])
    assert found.exit_code == 0, found.output
    figures = json.loads(found.output)["figures"]
    assert figures["event by event, p50"]["unit"] == "us"
    assert set(figures["state written every second, p99.9"]) == {"value", "unit", "versus", "ratio"}


def test_a_wrong_output_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "_expected", lambda messages: [b"wrong"] * len(messages))
    monkeypatch.setattr(latency, "RATE", 1_000)
    monkeypatch.setattr(latency, "SECONDS", 1)
    with pytest.raises(WrongResultError):
        latency.bench()


def test_market_spread_checks_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(market_spread, "MESSAGES", 4_000)
    monkeypatch.setattr(market_spread, "REJECTED", 1 / 100)
    figures = market_spread.bench()["figures"]
    assert figures["in-process, durable, beside Wallaroo"]["ratio"] > 0
    monkeypatch.setattr(market_spread, "_plain", lambda streams: [b"wrong"])
    with pytest.raises(WrongResultError, match="1 expected"):
        market_spread.bench()


def test_state_size_finds_the_entities_that_were_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_size, "TOUCHED", 100)
    batch, restart = state_size.measure(1_000)
    assert batch > 0
    assert restart > 0


def test_the_price_has_a_figure_for_safety_and_one_for_knowledge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(price, "EVENTS", 2_000)
    monkeypatch.setattr(price, "BATCH", 1_000)
    monkeypatch.setattr(price, "ROUNDS", 1)
    figures = price.bench()["figures"]
    assert set(figures) == {"usual", "resilience", "metrics", "a trace", "idle tracing"}
    assert 0 < figures["idle tracing"]["value"] < figures["a trace"]["value"] + 100


def test_a_peer_with_wrong_outputs_is_no_peer(tmp_path: Path) -> None:
    pytest.importorskip("bytewax")
    messages = [b"a,1", b"b,2", b"a,3"]
    expected = [b"a 1", b"b 2", b"a 4"]
    path = tmp_path / "in.arrow"
    table = pa.table({"message": pa.array(messages)})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    for threads in (1, 2):
        assert bytewax_peer.run(messages, expected, threads).seconds > 0
    assert bytewax_peer.run_processes(path, expected, 2).seconds > 0
    wrong = [b"a 1", b"b 2", b"a 3"]
    with pytest.raises(WrongResultError, match="Bytewax"):
        bytewax_peer.run(messages, wrong, 1)
    with pytest.raises(WrongResultError, match="Bytewax"):
        bytewax_peer.run_processes(path, wrong, 2)


def test_a_steady_rate_leaves_the_first_batches_out() -> None:
    assert steady([1.0, 9.0, 10.0, 11.0], 100) is None
    assert steady([1.0, 9.0, 10.0, 11.0, 12.5], 100) == 100
