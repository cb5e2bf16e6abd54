"""The protocols that ship, by name."""

from __future__ import annotations

from typing import Literal

from bettong.harness.catalog import CatalogEntry
from bettong.lineage.protocols.protocol import Protocol
from bettong.scenarios.protocols import commit, delivery, election, flux, kafka, paxos

_SHIPPED: tuple[tuple[str, type[Protocol], Literal["valid", "invalid"], str], ...] = (
    ("simple", delivery.Simple, "invalid", "broadcast: send once"),
    ("retry", delivery.Retry, "invalid", "broadcast: the sender sends again and again"),
    ("redun", delivery.Redundant, "valid", "broadcast: everyone relays again and again"),
    ("classic", delivery.Classic, "valid", "broadcast: everyone relays once"),
    ("ack", delivery.Ack, "valid", "broadcast: everyone relays until acknowledged"),
    ("2pc", commit.TwoPhaseCommit, "invalid", "two-phase commit"),
    (
        "2pc-timeout",
        commit.TwoPhaseCommitTimeout,
        "invalid",
        "two-phase commit; the coordinator gives up waiting for votes",
    ),
    (
        "2pc-ctp",
        commit.TwoPhaseCommitCooperative,
        "invalid",
        "two-phase commit with cooperative termination",
    ),
    ("3pc", commit.ThreePhaseCommit, "valid", "three-phase commit"),
    (
        "2pc-optimist",
        commit.TwoPhaseCommitOptimist,
        "invalid",
        "two-phase commit; a coordinator that crashes is excused",
    ),
    (
        "2pc-timeout-optimist",
        commit.TwoPhaseCommitTimeoutOptimist,
        "valid",
        "two-phase commit with timeout; a coordinator that crashes is excused",
    ),
    ("paxos", paxos.Paxos, "valid", "consensus on one value, with two proposers"),
    ("bully-le", election.Bully, "valid", "leader election by the bully algorithm"),
    ("flux", flux.Flux, "valid", "a dataflow's pairs of producers and consumers"),
    ("kafka", kafka.Kafka, "invalid", "replication with a membership kept by ZooKeeper"),
)


def entries() -> list[CatalogEntry]:
    """An entry for each."""
    return [
        CatalogEntry(name, "protocol", title, lambda cls=cls: cls, expect)  # type: ignore[misc]
        for name, cls, expect, title in _SHIPPED
    ]
