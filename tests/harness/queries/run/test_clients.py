"""A fault lasts until a client gives up, and where it has not in a long time, not as long again."""

from __future__ import annotations

import pytest

from bettong.harness.queries.run.clients import LONG_S, PATIENCE_S, Clients


@pytest.mark.parametrize(
    ("what", "endpoint", "seconds"),
    [
        ("requests are lost", "db", PATIENCE_S),
        ("requests are lost", "api", LONG_S),
        ("it stands still", "db", LONG_S),
    ],
)
def test_who_never_gives_up_is_not_waited_for_again(
    what: str, endpoint: str, seconds: float
) -> None:
    clients = Clients({("requests are lost", "db")})
    assert clients.patience_s(what, endpoint) == seconds


def test_a_time_out_that_is_common_is_outlasted() -> None:
    tries = [2.0**n for n in range(5)]
    assert max(30, 60, sum(tries)) < LONG_S
