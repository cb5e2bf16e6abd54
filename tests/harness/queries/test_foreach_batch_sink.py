"""How a function is called that a sink is made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bettong.harness.queries.sink.contract import foreach_batch_sink


class Rows:
    """Calls the function of ``foreachBatch`` at once, with a batch called ``rows``."""

    writeStream = property(lambda self: self)  # noqa: N815 - as Spark calls it

    def foreachBatch(self, function: Callable[..., None]) -> Rows:  # noqa: N802
        function("rows", 7)
        return self

    def option(self, *_: str) -> Rows:
        return self

    def start(self) -> None:
        """There is no query."""


class Environment:
    checkpoint = "checkpoint"


SEEN: list[tuple[object, ...]] = []


def plain(batch: object, batch_id: object) -> None:
    SEEN.append((batch, batch_id))


def with_env(batch: object, batch_id: object, env: object) -> None:
    SEEN.append((batch, batch_id, env))


def with_env_or_none(batch: object, batch_id: object, env: object = None) -> None:
    SEEN.append((batch, batch_id, env))


def into(batch: object, batch_id: object, table: object = "rows") -> None:
    SEEN.append((batch, batch_id, table))


class Called:
    def __call__(self, batch: object, batch_id: object) -> None:
        SEEN.append((batch, batch_id))


@pytest.mark.parametrize(
    ("function", "third", "name"),
    [
        (plain, (), "plain"),
        (with_env, ("env",), "with_env"),
        (with_env_or_none, ("env",), "with_env_or_none"),
        (into, ("rows",), "into"),
        (partial(into, table="marks"), ("marks",), "partial"),
        (Called(), (), "Called"),
    ],
)
def test_it_is_given_an_environment_where_it_asks_for_one(
    function: Callable[..., None], third: tuple[str, ...], name: str
) -> None:
    SEEN.clear()
    sink = foreach_batch_sink(function, read=lambda env: [])
    env: Any = Environment()
    rows: Any = Rows()
    sink.write(rows, env)
    assert [("rows", 7, *(env if x == "env" else x for x in third))] == SEEN
    assert sink.name == name
