"""The docs' table of broken twins: each one's mistake, its smallest fault, and how many runs it
takes to find it by its lineage, at random and step by step.

``python benchmarks/twins.py [TWIN...]`` prints Markdown, a row as soon as it is measured; all twins
take about an hour of a machine that does nothing else.
"""

from __future__ import annotations

import sys

from bettong.harness.bench.twins import HEAD, MOST, line, measure
from bettong.harness.names import one_of
from bettong.scenarios.broken_twins import TWINS


def main(names: list[str]) -> None:
    """Measure the named twins, or all of them."""
    for name in names:
        one_of(name, [twin.name for twin in TWINS], "twin")
    chosen = [twin for twin in TWINS if not names or twin.name in names]
    print(f"Runs to the first violation, {MOST} at most.\n\n{HEAD}")
    for found in measure(chosen):
        print(line(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
