"""What is shown of the many things that may be wrong with one run."""

from __future__ import annotations

import pytest

from bettong.lineage.results import Anomaly, AnomalyKind, of_each_kind

KINDS: dict[str, AnomalyKind] = {"L": "Loss", "D": "Duplicate", "S": "Stuck"}


@pytest.mark.parametrize(
    ("kinds", "most", "shown"),
    [
        ("LLLLS", 3, "LLS"),
        ("LLLLS", 1, "LS"),
        ("DLLLLSL", 4, "DLLS"),
        ("LLL", 5, "LLL"),
        ("", 5, ""),
    ],
)
def test_the_first_ones_and_one_of_each_kind(kinds: str, most: int, shown: str) -> None:
    many = [Anomaly(KINDS[kind], (str(place),)) for place, kind in enumerate(kinds)]
    found = of_each_kind(many, most)
    assert "".join(a.kind[0] for a in found) == shown
    assert [a.messages for a in found] == sorted(a.messages for a in found)
