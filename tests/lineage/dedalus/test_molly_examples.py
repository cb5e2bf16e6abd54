"""Molly's own example programs, unchanged, with the rows of its ``CounterexampleSuite``.

They are not ours to ship: set ``BETTONG_MOLLY_EXAMPLES`` to the folder
``src/test/resources/examples_ft`` of a checkout of Molly to run these tests.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bettong.lineage.dedalus import DedalusProgram, load
from bettong.lineage.dedalus.loader import load as read
from bettong.lineage.errors import UsageError
from bettong.lineage.protocols.executor import RoundExecutor
from bettong.lineage.protocols.explorer import explore
from bettong.lineage.protocols.failure_spec import FailureSpec
from bettong.lineage.search.findings import Findings
from bettong.lineage.search.loop import search

VARIABLE = "BETTONG_MOLLY_EXAMPLES"
FOLDER = Path(os.environ.get(VARIABLE, ""))
AFFORDABLE = 70_000

pytestmark = pytest.mark.skipif(
    VARIABLE not in os.environ,
    reason=f"Molly's programs are not tested: set {VARIABLE} to its examples_ft folder",
)

THREE, FOUR, KAFKA = ("a", "b", "c"), ("a", "b", "C", "d"), ("a", "b", "c", "C", "Z")
DELIVERY, COMMIT = "delivery/deliv_assert.ded", "commit/2pc_assert.ded"
OPTIMIST = "commit/2pc_assert_optimist.ded"

# files, nodes, (EOT, EFF, crashes), whether Molly claims a counterexample, minimal sets there are
ROWS = [
    (("delivery/simplog.ded", DELIVERY), THREE, (6, 3, 0), True, 2),
    (("delivery/rdlog.ded", DELIVERY), THREE, (6, 3, 0), False, 0),
    (("delivery/rdlog.ded", DELIVERY), THREE, (6, 3, 1), True, 4),
    (("delivery/classic_rb.ded", DELIVERY), THREE, (6, 3, 0), True, 2),
    (("delivery/classic_rb.ded", DELIVERY), THREE, (6, 0, 2), False, 0),
    (("delivery/replog.ded", DELIVERY), THREE, (6, 3, 0), False, 0),
    (("delivery/replog.ded", DELIVERY), THREE, (6, 3, 1), False, 0),
    (("delivery/ack_rb.ded", DELIVERY), THREE, (6, 3, 1), False, 0),
    (("commit/2pc.ded", COMMIT), FOUR, (7, 3, 0), False, 0),
    (("commit/2pc.ded", COMMIT), FOUR, (6, 3, 1), True, 27),
    (("commit/2pc.ded", COMMIT), FOUR, (6, 0, 1), True, 9),
    (("commit/2pc.ded", COMMIT), FOUR, (6, 0, 2), True, 9),
    (("commit/2pc.ded", OPTIMIST), FOUR, (6, 0, 1), True, 6),
    (("commit/2pc.ded", OPTIMIST), FOUR, (6, 0, 2), True, 6),
    (("commit/2pc_timeout.ded", OPTIMIST), FOUR, (6, 0, 1), False, 0),
    (("commit/2pc_timeout.ded", OPTIMIST), FOUR, (6, 0, 2), False, 0),
    (("commit/2pc_timeout.ded", COMMIT), FOUR, (6, 0, 1), True, 3),
    (("commit/2pc_timeout.ded", COMMIT), FOUR, (6, 0, 2), True, 9),
    (("commit/2pc_ctp.ded", COMMIT), FOUR, (6, 0, 1), True, 3),
    (("commit/2pc_ctp.ded", COMMIT), FOUR, (6, 0, 2), True, 9),
    (("commit/3pc.ded", COMMIT), FOUR, (8, 0, 1), False, 0),
    (("commit/3pc.ded", COMMIT), FOUR, (8, 0, 2), False, 18),
    (("commit/3pc.ded", COMMIT), FOUR, (9, 7, 1), True, 66),
    (("kafka.ded",), KAFKA, (7, 4, 1), True, 2),
    (("kafka.ded",), KAFKA, (7, 4, 0), False, 0),
]
WRONG = {(("commit/3pc.ded", COMMIT), (8, 0, 2))}
"""Rows in which Molly's table says that nothing is found, and every run of them shows otherwise."""


def program(files: tuple[str, ...], nodes: tuple[str, ...]) -> DedalusProgram:
    return load([FOLDER / f for f in files], nodes)


def found(files: tuple[str, ...], nodes: tuple[str, ...], bounds: tuple[int, ...]) -> Findings:
    spec = FailureSpec(nodes, *bounds)
    return search(RoundExecutor(program(files, nodes), spec), spec.bounds, find_all=True)


@pytest.mark.parametrize(("files", "nodes", "bounds", "claimed", "minimal"), ROWS)
def test_a_row_of_the_counterexample_suite(
    files: tuple[str, ...],
    nodes: tuple[str, ...],
    bounds: tuple[int, int, int],
    claimed: bool,
    minimal: int,
) -> None:
    findings = found(files, nodes, bounds)
    assert findings.complete
    assert len(findings.minimal) == minimal
    right = (files, bounds) not in WRONG
    assert (findings.verdict == "invalid") == (claimed == right)
    spec = FailureSpec(nodes, *bounds)
    if spec.size() <= AFFORDABLE:
        every = explore(RoundExecutor(program(files, nodes), spec), processes=1)
        assert set(every.minimal) == set(findings.minimal)


@pytest.mark.parametrize(
    ("files", "nodes", "bounds", "verdict"),
    [
        (("delivery/rdlog.ded", DELIVERY), THREE, (25, 23, 0), "valid"),
        (("delivery/replog.ded", DELIVERY), THREE, (8, 6, 1), "valid"),
        (("delivery/ack_rb.ded", DELIVERY), THREE, (8, 6, 1), "valid"),
        (("paxos_synod.ded",), THREE, (8, 3, 1), "valid"),
        (("util/leader.ded",), THREE, (10, 7, 1), "valid"),
        (("kafka.ded",), KAFKA, (6, 4, 1), "unknown"),
        (("tokens.ded",), ("a", "b", "c", "d"), (6, 3, 1), "unknown"),
    ],
)
def test_programs_beside_the_suite(
    files: tuple[str, ...], nodes: tuple[str, ...], bounds: tuple[int, int, int], verdict: str
) -> None:
    assert found(files, nodes, bounds).verdict == verdict


def test_every_file_is_read_or_refused_with_one_clear_error() -> None:
    refused = {}
    for file in sorted(FOLDER.rglob("*.ded")):
        try:
            read([file])
        except UsageError as e:
            refused[str(file.relative_to(FOLDER))] = str(e)
    # these include files that are not there
    assert sorted(refused) == [
        "chain_replication.ded",
        "fake_zk2.ded",
        "pipeline.ded",
        "util/heartbeat.ded",
    ]
    assert all("cannot include" in message for message in refused.values())
