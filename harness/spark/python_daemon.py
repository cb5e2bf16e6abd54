"""Spark's Python daemon with the modules that our tasks need imported ahead, so that the workers
that it forks start at once (``spark.python.daemon.module``)."""

from __future__ import annotations

import gc
import importlib

from pyspark import daemon

for name in (
    "pyarrow",
    "pyspark.worker",
    "bettong.engine.spark.source",
    "bettong.engine.endpoints",
):
    importlib.import_module(name)

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # a worker collects garbage after each task, and would look at all of this
    daemon.manager()
