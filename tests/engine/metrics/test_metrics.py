"""A run tells what it costs, to a file and to Prometheus, and to nobody who may not know."""

from __future__ import annotations

import dataclasses
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from folder_sink import FolderSink
from prometheus_client.parser import text_string_to_metric_families

from bettong.engine.address import Address
from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol, Report
from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.metrics.collector import Collector
from bettong.engine.metrics.config import Metrics
from bettong.engine.metrics.endpoint import Endpoint
from bettong.engine.net.access import ListenConfig
from bettong.engine.sources.base import FileSource
from bettong.engine.state.manifest import Manifest
from bettong.lineage.errors import UsageError
from bettong.scenarios.applications.word_count import app

LINES = 50
WORDS = 3 * LINES


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    text = tmp_path / "lines.txt"
    text.write_text("they know 7\n" * LINES)
    return RunConfig(
        tmp_path / "checkpoint",
        {"lines": FileSource(text)},
        {"totals": FolderSink(tmp_path / "out")},
        batch_messages=20,
        metrics=Metrics(tmp_path / "metrics.jsonl"),
    )


def lines(config: RunConfig) -> list[dict[str, Any]]:
    assert config.metrics is not None and config.metrics.file is not None
    return [json.loads(line) for line in config.metrics.file.read_text().splitlines()]


def test_every_batch_is_a_line(config: RunConfig) -> None:
    run_in_process(app, config)
    first, second, third = lines(config)
    assert [first["batch"], second["batch"], third["batch"]] == [0, 1, 2]
    assert [b["messages"] for b in (first, second, third)] == [
        {"lines": 20},
        {"lines": 20},
        {"lines": 10},
    ]
    assert [b["waiting"] for b in (first, second, third)] == [
        {"lines": 30},
        {"lines": 10},
        {"lines": 0},
    ]
    steps = {name: reported["messages"] for name, reported in first["steps"].items()}
    assert steps["lines"] == 20
    assert steps["count"] == steps["totals"] == 60
    assert first["state"]["WordTotal"]["rows"] == 3
    assert set(first["driver"]) == {"base", "execute", "add up", "manifest", "sink.commit"}
    assert {"source.read", "state.load", "state.apply", "state.write", "sink.prepare"} <= set(
        first["tasks"]
    )
    assert sum(first["driver"].values()) == pytest.approx(first["seconds"], abs=1e-5)


def test_nothing_is_measured_unless_asked(config: RunConfig) -> None:
    class Watched(BatchProtocol):
        def manifest(self, job: Job, reports: Sequence[Report]) -> Manifest:
            assert not job.measure
            assert all("measured" not in r for r in reports)
            return super().manifest(job, reports)

    run_in_process(app, dataclasses.replace(config, metrics=None, batch_class=Watched))


def ask(address: Address, path: str = "/metrics", token: str = "") -> str:
    request = urllib.request.Request(f"http://{address}{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


class Asking(BatchProtocol):
    """Asks as Prometheus does, while the run goes on."""

    answers: list[str] = []  # noqa: RUF012

    def close(self) -> None:
        observer = self.settings.observer
        assert observer is not None and observer.endpoint is not None
        self.answers.append(ask(observer.endpoint.address, token="secret"))
        for path, token, status in (("/metrics", "", 401), ("/other", "secret", 404)):
            with pytest.raises(urllib.error.HTTPError) as failed:
                ask(observer.endpoint.address, path, token)
            assert failed.value.code == status
        super().close()
        with pytest.raises(OSError):
            ask(observer.endpoint.address, token="secret")


def test_prometheus_is_answered_with_the_token_alone(config: RunConfig) -> None:
    access = ListenConfig(Address("127.0.0.1", 0), token="secret")
    run_in_process(
        app, dataclasses.replace(config, metrics=Metrics(listen=access), batch_class=Asking)
    )
    families = {f.name: f for f in text_string_to_metric_families(Asking.answers.pop())}
    assert {s.labels["stream"]: s.value for s in families["bettong_messages"].samples} == {
        "lines": LINES
    }
    counts = {
        s.labels["step"]: s.value
        for s in families["bettong_step_message_seconds"].samples
        if s.name.endswith("_count")
    }
    assert counts["count"] == WORDS
    assert families["bettong_state_rows"].samples[0].labels == {"state": "WordTotal"}
    assert families["bettong_waiting_messages"].samples[0].value == 0


def test_strangers_elsewhere_are_not_let_in(config: RunConfig) -> None:
    wide = Metrics(listen=ListenConfig(Address("0.0.0.0", 0)))
    with pytest.raises(UsageError, match=r"will not listen on 0\.0\.0\.0:0, which other"):
        run_in_process(app, dataclasses.replace(config, metrics=wide))


def test_strangers_and_slow_clients_are_in_nobodys_way() -> None:
    """More connections than the listener takes that say nothing, or half a request, or nonsense."""
    endpoint = Endpoint(ListenConfig(Address("127.0.0.1", 0), token="secret"), Collector(None))
    with ExitStack() as stack:
        for n in range(3 * endpoint.limits.connections):
            stranger = stack.enter_context(socket.create_connection(endpoint.address, timeout=60))
            stranger.sendall((b"", b"GET /metrics HTTP/1.1\r\nHost:", b"\0" * 99_999)[n % 3])
        assert "bettong_batch_seconds" in ask(endpoint.address, token="secret")
    endpoint.close()


def test_a_file_that_cannot_be_written_is_named(config: RunConfig, tmp_path: Path) -> None:
    nowhere = Metrics(tmp_path / "none" / "metrics.jsonl")
    with pytest.raises(UsageError, match=r"none/metrics.jsonl cannot be written: No such file"):
        run_in_process(app, dataclasses.replace(config, metrics=nowhere))


def test_the_former_name_of_the_address_works_and_says_the_new_one() -> None:
    access = ListenConfig(Address("127.0.0.1", 0), token="secret")
    with pytest.warns(DeprecationWarning, match="listen"):
        assert Metrics(door=access) == Metrics(listen=access)
