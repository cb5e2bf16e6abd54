"""A job is one streaming query: steps of two could not be told apart."""

from __future__ import annotations

from bettong.harness.queries.sense import VacuousError


def expect_one_query(name: str, queries: int) -> None:
    """Raises VacuousError where there are several."""
    if queries > 1:
        raise VacuousError(
            f"{name}: it starts {queries} streaming queries, and one is judged at a time: have it "
            "start one of them, for instance by an argument or a variable, and judge each by itself"
        )
