"""Spark's Python daemon with what most tasks need imported ahead (``spark.python.daemon.module``).

Each run has workers of its own, and a worker that imports pandas itself takes longer for that than
for the work of most batches.
"""

from __future__ import annotations

import contextlib
import importlib

from bettong.harness.spark.worker_forks import fork_workers

_IMPORTED_BY_TASKS = (
    "pyspark.worker",
    "pyarrow",
    "pandas",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.datasource",
)

if __name__ == "__main__":
    for name in _IMPORTED_BY_TASKS:
        with contextlib.suppress(ImportError):  # who has no pandas has tasks without it
            importlib.import_module(name)
    fork_workers()
