"""PostgreSQL, Redis and Kafka: one sink that is right and one that is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from chosen_faults import FAILED_TASK, REPLAYED, seen

from bettong.harness.queries.run.environment import SparkEnvironments

pytestmark = pytest.mark.spark
TWICE = {"Duplicate"}
HERE = f"{Path(__file__).parent / 'server_mutants.py'}"
A_DAY_LATER = "crash-and-later(driver, before batch=1/commits)"


@pytest.mark.parametrize(
    ("name", "fault", "expected"),
    [
        pytest.param("postgres:OneTransaction", REPLAYED, set(), marks=pytest.mark.slow),
        ("postgres:AskFirst", "pause(driver, before db/INSERT=2)", TWICE),
        pytest.param(
            "postgres:AsynchronousCommit",
            "restart(server, answered db/COMMIT=2)",
            {"Loss"},
            marks=pytest.mark.slow,
        ),
        pytest.param("postgres:CopyPerPartition", FAILED_TASK, TWICE, marks=pytest.mark.slow),
        pytest.param("jdbc:JdbcBatches", REPLAYED, set(), marks=pytest.mark.slow),
        pytest.param("jdbc:JdbcBatches", FAILED_TASK, set(), marks=pytest.mark.slow),
        pytest.param("redis:GuardedPush", REPLAYED, set(), marks=pytest.mark.slow),
        pytest.param("redis:Push", REPLAYED, TWICE, marks=pytest.mark.slow),
        ("redis:MarksFirst", "crash(driver, after redis/conn=3/request=3 SET)", {"Loss"}),
        pytest.param("kafka:Transactional", REPLAYED, set(), marks=pytest.mark.slow),
        ("kafka:IdempotentProducer", "omit(kafka/batch=1/Produce=1) and each time again", set()),
        pytest.param("kafka:IdempotentProducer", REPLAYED, TWICE, marks=pytest.mark.slow),
    ],
)
def test_the_right_one_holds_and_the_wrong_one_is_found(
    environments: SparkEnvironments, name: str, fault: str, expected: set[str]
) -> None:
    pytest.importorskip(
        {"postgres": "psycopg", "jdbc": "psycopg"}.get(
            name.partition(":")[0], name.partition(":")[0]
        )
    )
    assert seen(environments, name, fault) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("GuardedForAnHour", TWICE),
        pytest.param("KeptForAnHour", set(), marks=pytest.mark.slow),
    ],
)
def test_what_a_server_keeps_for_an_hour_is_gone_a_day_later(
    environments: SparkEnvironments, name: str, expected: set[str]
) -> None:
    pytest.importorskip("redis")
    assert seen(environments, f"{HERE}:{name}", A_DAY_LATER) == expected
