"""A query's next batch comes at once, whatever its trigger's interval is: how often a query looks
for rows changes nothing of what becomes of them, and a run would wait for it at each batch."""

from __future__ import annotations

from functools import wraps
from types import ModuleType
from typing import Any

MODULE = "pyspark.sql.streaming.readwriter"
_INTERVAL = "processingTime"
_AT_ONCE = {_INTERVAL: "0 seconds"}


def have_no_interval(module: ModuleType) -> None:
    """Have PySpark's writer of streams, in this module of it, take no interval. One that Spark does
    not understand is an error as ever."""
    writer = module.DataStreamWriter
    asked = writer.trigger

    @wraps(asked)
    def trigger(self: Any, *arguments: Any, **options: Any) -> Any:
        found = asked(self, *arguments, **options)
        return found if options.get(_INTERVAL) is None else asked(found, **_AT_ONCE)

    writer.trigger = trigger
