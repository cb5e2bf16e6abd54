"""Which ends of a node are excused by which faults."""

from __future__ import annotations

import pytest

from bettong.harness.conductor.fault_status import Injected
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Crash, Cut, Omit, Storage
from bettong.harness.faults.point import Point
from bettong.harness.runs.contracts import excuse

AT = Point("batch=0/commits")
DISK = Storage(AT)
LOST = Omit("driver->receiver", AT)
FOR_GOOD = Crash("receiver", AT, restart=False)
TWICE = Cut(("driver",), ("receiver",), AT, tries=2)


@pytest.mark.parametrize(
    ("node", "status", "fault", "where", "excused"),
    [
        ("driver", 1, DISK, "driver", True),
        ("driver", 1, DISK, "w1", True),  # its tasks' disk is its own
        ("driver", 1, DISK, "receiver", False),
        ("receiver", 2, DISK, "receiver", False),
        ("gateway", 2, DISK, "gateway", False),
        ("driver", 1, LOST, "driver", False),
        ("driver", 1, TWICE, "driver", False),
        ("driver", 1, FOR_GOOD, "receiver", True),
        ("driver", 70, FOR_GOOD, "receiver", False),
        ("sender-lines", 3, FOR_GOOD, "receiver", True),
        ("sender", 2, FOR_GOOD, "receiver", False),
    ],
)
def test_only_what_a_contract_names_is_excused(
    node: str, status: int, fault: Fault, where: str, excused: bool
) -> None:
    assert bool(excuse(node, status, [Injected(fault, where)])) is excused


def test_nothing_is_excused_where_nothing_has_fired() -> None:
    assert excuse("driver", 1, []) == ""
