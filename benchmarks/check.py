"""How fast stored histories are checked, against plain pandas and plain Spark SQL.

``python benchmarks/check.py [--records N] [--ways pandas,spark]`` prints ``{"name", "figures"}``;
each way has to find the one planted duplicate and nothing else.
"""

from __future__ import annotations

import argparse
import json

from bettong.scenarios.benchmarks.check import bench


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--ways", default="pandas,spark", help="with commas; may be empty")
    options = parser.parse_args()
    ways = tuple(way for way in options.ways.split(",") if way)
    print(json.dumps(bench(options.records, ways), indent=2))


if __name__ == "__main__":
    main()
