"""Delta and Iceberg on Spark 4.1.1: ``tox -e lakehouse``."""

from __future__ import annotations

import pytest
from chosen_faults import FAILED_TASK, REPLAYED, seen

from bettong.harness.queries.run.environment import SparkEnvironments

pytestmark = [pytest.mark.spark, pytest.mark.servers]
TWICE = {"Duplicate"}


@pytest.mark.parametrize(
    ("name", "fault", "expected"),
    [
        ("delta:DeltaAppend", REPLAYED, TWICE),
        ("delta:DeltaAppend", FAILED_TASK, set()),
        ("delta:DeltaAppendOnce", REPLAYED, set()),
        ("delta:DeltaMerge", REPLAYED, set()),
        ("delta:DeltaStream", REPLAYED, set()),
        ("iceberg:IcebergAppend", REPLAYED, TWICE),
        ("iceberg:IcebergStream", REPLAYED, set()),
        ("formats:DeltaOnce", REPLAYED, set()),
        ("formats:IcebergReplaced", REPLAYED, set()),
    ],
)
def test_a_table_under_a_chosen_fault(
    environments: SparkEnvironments, name: str, fault: str, expected: set[str]
) -> None:
    assert seen(environments, name, fault) == expected
