"""The work of Spark's Python daemon (``spark.python.daemon.module``), for daemons that have
imported what their workers need."""

from __future__ import annotations

import gc

from pyspark import daemon


def fork_workers() -> None:
    """Fork the workers that Spark asks for, until it ends the daemon."""
    gc.collect()
    gc.freeze()  # a worker collects garbage after each task, and would look at all of this
    daemon.manager()
