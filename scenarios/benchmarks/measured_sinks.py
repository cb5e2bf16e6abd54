"""The docs' table of sinks: the whole verdict on each one, single faults and two together.

``python -m bettong.scenarios.benchmarks.measured_sinks [PREFIX...]`` prints the lines of
``scenarios/sinks/measured.py`` for all sinks whose names begin so, each as soon as it is measured.
Delta and Iceberg need pyspark 4.1.1. All of them take about an hour and a half of two cores.
"""

from __future__ import annotations

import sys

from bettong.harness.events import ignore
from bettong.harness.queries.check import check_one
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import spark_environments
from bettong.lineage.errors import UsageError
from bettong.scenarios.sinks import SHIPPED, short_name


def main(prefixes: list[str]) -> None:
    """Measure the named sinks, or all of them."""
    chosen = [s for s in SHIPPED if not prefixes or short_name(s).startswith(tuple(prefixes))]
    if not chosen:
        raise UsageError(f"no sink begins with {' or '.join(prefixes)}: see bettong list")
    with spark_environments(ignore) as environments:
        for sink in chosen:
            result = check_one(Request(sink.name), environments)
            if result.verdict == "unknown":
                print(f"    # {short_name(sink)}: {result.reason}", flush=True)
                continue
            runs, seconds = result.coverage.executions, round(result.duration_s)
            reported = f'Measured("{result.guarantee}", {runs}, {seconds})'
            print(f'    "{short_name(sink)}": {reported},', flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
