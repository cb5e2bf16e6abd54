"""``bettong bench``: names, sizes and figures."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from bettong.harness.bench import latency
from bettong.harness.bench.errors import WrongResultError
from bettong.harness.cli import cli
from bettong.harness.cli.bench_command import names
from bettong.lineage.errors import UsageError


def test_names_are_those_of_the_measurements_alone() -> None:
    assert {"engine", "latency", "ldfi"} <= set(names())
    assert not {"errors", "session", "__init__"} & set(names())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["latencies"], "did you mean latency"),
        (["steps", "--full"], "bench steps has one size"),
    ],
)
def test_a_wrong_name_and_a_wrong_size_are_refused(arguments: list[str], said: str) -> None:
    refused = CliRunner().invoke(cli, ["bench", *arguments])
    assert isinstance(refused.exception, UsageError)
    assert said in str(refused.exception)


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
