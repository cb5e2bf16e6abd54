"""The docs' table of mutants: each one's mistake, its smallest fault, and how many runs it
takes to find it by its lineage, at random and step by step.

``python benchmarks/shipped_mutants.py [MUTANT...]`` prints Markdown, a row as soon as it is
measured; all mutants take about an hour of a machine that does nothing else.
"""

from __future__ import annotations

import sys

from bettong.lineage.nearest import one_of
from bettong.scenarios.benchmarks.mutants import HEAD, MOST, line, measure
from bettong.scenarios.mutants.shipped import MUTANTS


def main(names: list[str]) -> None:
    """Measure the named mutants, or all of them."""
    for name in names:
        one_of(name, [mutant.name for mutant in MUTANTS], "mutant")
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    print(f"Runs to the first violation, {MOST} at most.\n\n{HEAD}")
    for found in measure(chosen):
        print(line(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
