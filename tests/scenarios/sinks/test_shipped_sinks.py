"""The sinks that ship: what the catalog and the docs say of them is the same."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from bettong.harness.catalog import CatalogEntry
from bettong.harness.queries.sink.contract import Sink
from bettong.scenarios.sinks import SHIPPED, entries, short_name
from bettong.scenarios.sinks.measured import MEASURED
from bettong.scenarios.sinks.shipped import table

PAGE = Path(__file__).parents[3] / "docs" / "check-your-sink.md"
# Sinks whose clients are optional: the import fails where they are not installed.
CLIENTS = {
    "duckdb": "duckdb",
    "jdbc": "psycopg",
    "kafka": "kafka",
    "mariadb": "pymysql",
    "nats": "nats",
    "postgres": "psycopg",
    "rabbitmq": "pika",
    "redis": "redis",
}


def test_the_page_has_the_catalogs_table() -> None:
    assert table() in PAGE.read_text("utf-8")


def test_every_sink_that_the_page_names_ships() -> None:
    named = set(re.findall(r"`(\w+:[A-Z]\w+)`", PAGE.read_text("utf-8")))
    assert named == {short_name(sink) for sink in SHIPPED}


def test_what_was_measured_is_what_is_said() -> None:
    levels = {short_name(sink): sink.level for sink in SHIPPED}
    assert {name: found.level for name, found in MEASURED.items()} == levels


def test_targets_are_distinguished() -> None:
    assert len({sink.name for sink in SHIPPED}) == len(SHIPPED)
    assert [entry.name for entry in entries()] == [sink.name for sink in SHIPPED]


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda sink: sink.name)
def test_every_target_is_a_sink(shipped: CatalogEntry) -> None:
    module, _, name = shipped.name.partition(":")
    client = CLIENTS.get(module.rpartition(".")[2])
    if client:
        pytest.importorskip(client)
    assert issubclass(getattr(importlib.import_module(module), name), Sink)
