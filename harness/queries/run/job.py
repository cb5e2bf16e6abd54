"""What a driver host does for a sink under test: one incarnation of its query."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bettong.harness.queries.run.aimed import aimed
from bettong.harness.queries.run.awaited import ended_when_done
from bettong.harness.queries.run.failure import Failures
from bettong.harness.queries.sink import aiming
from bettong.harness.queries.sink.contract import Environment, Sink
from bettong.harness.queries.sink.loading import load_target
from bettong.harness.queries.sink.rows import Input, read_back

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CALL = f"{__name__}:incarnation"
NO_QUERY = "write(), or build(), must return the query that start() gives"


class NoQueryError(TypeError):
    """What should start a query and return it has returned something else; :data:`NO_QUERY` is in
    its message."""

    def __init__(self, found: object) -> None:
        super().__init__(f"{type(found).__name__} was returned, and {NO_QUERY}")


@dataclass(frozen=True, slots=True)
class Target:
    """How the host finds the sink.

    Attributes:
        elsewhere: whether what its code changes outside of its workdir is a step as well.
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    elsewhere: bool = False

    def load(self) -> Sink:
        """The sink, freshly imported: a new process would know nothing either."""
        sys.path[:] = [*sys.path, *(p for p in self.path if p not in sys.path)]
        return load_target(self.name, self.options, fresh=True)


def incarnation(
    spark: SparkSession,
    *,
    target: Mapping[str, Any],
    directory: str,
    run_id: str,
    addresses: Mapping[str, tuple[str, int]],
    source: Mapping[str, int],
    parts: Iterable[str],
    lines: Iterable[int] = (),
    ahead_s: int = 0,
) -> dict[str, Any]:
    """Do some of ``setup``, ``look``, ``write``, ``read``, ``teardown``, in that order.

    ``lines``, ``ahead_s``: as for :func:`aimed`.

    Returns ``looked``: the rows that a reader sees before the query is started, or None;
    ``error``: why the query failed, or None; ``facts``: how many queries there were at once;
    ``rows``: what a reader sees at the end;
    ``outside``: files that Python changed elsewhere; ``processes``: that its code has started;
    ``in_turn``: whether it has given something to threads that went on one after the other.
    """
    wanted = Target(**target)
    sink = wanted.load()
    workdir = Path(directory) / "work"
    workdir.mkdir(parents=True, exist_ok=True)
    env = Environment(
        spark=spark,
        checkpoint=str(Path(directory) / "checkpoint"),
        workdir=workdir,
        run_id=run_id,
        addresses={name: (host, port) for name, (host, port) in addresses.items()},
    )
    done: dict[str, Any] = {"error": None}
    aiming.forget_notes()
    if "setup" in parts:
        sink.setup(env)
    if "look" in parts:
        done["looked"] = _read(sink, env, tolerant=True)
    if "write" in parts:
        wider = wanted.elsewhere
        with aimed(spark, Path(directory), elsewhere=wider, lines=lines, ahead_s=ahead_s):
            done["error"], done["facts"] = _write(sink, Input(**source), env)
    if "read" in parts:
        done["rows"] = _read(sink, env)
    if "teardown" in parts:
        sink.teardown(env)
    done["outside"] = aiming.outside(Path(directory))
    done["processes"] = aiming.processes()
    done["in_turn"] = aiming.in_turn()
    return done


def _write(sink: Sink, source: Input, env: Environment) -> tuple[str | None, dict[str, int]]:
    query = None
    facts: dict[str, int] = {}
    failures = Failures()
    streams = env.spark.streams
    before = {each.runId for each in streams.active}  # one that a crash has left may be ending
    try:
        with ended_when_done(streams, before, lambda query: query.processAllAvailable()) as seen:
            found = sink.write(source.stream(env.spark), env)
        query = found if hasattr(found, "processAllAvailable") else None
        at_once = sum(each.runId not in before for each in streams.active)
        facts["queries"] = max(at_once, seen.get("queries", 0))
        if facts["queries"] > 1:
            raise RuntimeError("write() starts more than one streaming query")
        if query is None:
            raise NoQueryError(found)
        query.processAllAvailable()
    except Exception as e:
        return failures.in_words(e), facts
    finally:
        if query is not None:
            query.stop()
        for each in streams.active:
            if each.runId not in before:
                each.stop()
    return None, facts


def _read(sink: Sink, env: Environment, tolerant: bool = False) -> list[dict[str, Any]] | None:
    try:
        return [plain(row) for row in read_back(sink.read(env))]
    except Exception:
        if tolerant:  # the target may not be there yet
            return None
        raise


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """A row that was read, in values that can be sent and compared. Raises ValueError, in words,
    for a number that is none."""
    found: dict[str, Any] = {} if values.get("id") is None else {"id": _text(values["id"])}
    if "key" in values:
        found["key"] = None if values["key"] is None else _text(values["key"])
    return found | {
        name: _number(name, values[name]) for name in ("seq", "value") if name in values
    }


def _text(value: Any) -> str:
    """Many a client gives bytes."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    return str(value)


def _number(name: str, value: Any) -> int | float | None:
    """A number, however it is written; one that is no whole number is not made one, since that
    may be what it should have been. pandas has not-a-number, or NA, where there is none."""
    if value is None or type(value).__name__ == "NAType":
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    written = _text(value) if isinstance(value, str | bytes | bytearray | memoryview) else None
    try:
        number = value if written is None else Decimal(written)
        whole = int(number)
    except (TypeError, ValueError, ArithmeticError):
        raise ValueError(
            f"read() returned {value!r} as {name}, which is no number: return seq and value as "
            "numbers, or leave them out"
        ) from None
    return whole if whole == number else float(number)
