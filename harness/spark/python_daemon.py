"""Spark's Python daemon with the modules that our tasks need imported ahead, so that the workers
that it forks start at once (``spark.python.daemon.module``)."""

from __future__ import annotations

import importlib

from bettong.harness.spark.worker_forks import fork_workers

for name in (
    "pyarrow",
    "pyspark.worker",
    "bettong.engine.spark.source",
    "bettong.engine.endpoints",
):
    importlib.import_module(name)

if __name__ == "__main__":
    fork_workers()
