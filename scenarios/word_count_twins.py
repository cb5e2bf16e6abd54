"""Word count on systems with one honest mistake each, and the fault that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Component, Resource, Scenario
from bettong.scenarios.word_count import WORD_COUNT

_TWINS = "bettong.scenarios.twins"


def twin(name: str, title: str, component: Component, path: str, advice: str) -> Scenario:
    """Word count with one component replaced; its schedule is the file of its name."""
    return replace(
        WORD_COUNT,
        name=name,
        title=title,
        classes={component: f"{_TWINS}.{path}"},
        expect="invalid",
        schedule=Resource("bettong.scenarios", f"schedules/{name}.yaml"),
        advice=advice,
    )


TWINS: Sequence[Scenario] = (
    twin(
        "gateway_acks_early",
        "the gateway acknowledges before a message is durable",
        "gateway",
        "gateways:AcksEarly",
        "Write and sync the journal first, acknowledge after that.",
    ),
    twin(
        "sink_commits_again",
        "the sink commits a batch again when it is replayed",
        "receiver",
        "receivers:CommitsAgain",
        "Record (application, batch) with the commit, and do nothing for a batch that is recorded.",
    ),
    twin(
        "sink_commits_losers",
        "the sink commits what a losing attempt has staged",
        "receiver",
        "receivers:CommitsLosers",
        "Let the driver name the winning attempts, and drop what the others have staged.",
    ),
    twin(
        "outputs_numbered_by_arrival",
        "outputs are numbered when they arrive, not by their input",
        "receiver",
        "receivers:NumbersByArrival",
        "Derive an output's id from its input's id, so that a replay gives the same one.",
    ),
    twin(
        "sink_forgets_on_restart",
        "the sink keeps in memory which batches it has committed",
        "receiver",
        "receivers:ForgetsOnRestart",
        "Write the record of a committed batch with its rows, and read it when starting.",
    ),
    twin(
        "sink_stages_in_memory",
        "the sink says prepared, but keeps what is staged in memory only",
        "receiver",
        "receivers:StagesInMemory",
        "Sync staged rows before answering, and refuse a commit whose winners are not there.",
    ),
    twin(
        "sink_commits_late",
        "the sink answers that a batch is committed before it is",
        "receiver",
        "receivers:CommitsLate",
        "Write and sync the commit first, answer after that.",
    ),
    twin(
        "gateway_releases_when_read",
        "the gateway lets go of messages when they are read, not when they are committed",
        "gateway",
        "gateways:ReleasesWhenRead",
        "Release messages when the source commits past them, after the sink has committed.",
    ),
    twin(
        "replay_reads_on",
        "a batch that is done again takes all that has come since",
        "protocol",
        "protocols:ReplayReadsOn",
        "Pin the range of a batch in the log of offsets, and read exactly that again.",
    ),
    twin(
        "state_applied_twice",
        "a batch that is done again is applied to the state that has it already",
        "protocol",
        "protocols:AppliesTwice",
        "Compute batch N from the state after batch N-1, by version, never from the newest.",
    ),
    twin(
        "state_published_late",
        "the state of a batch is published after the batch counts as done",
        "protocol",
        "protocols:PublishesLate",
        "Publish state N before the sink commits batch N and before its offsets count as done.",
    ),
    twin(
        "reader_resumes_late",
        "after a restart the reader resumes one message too far",
        "protocol",
        "protocols:ResumesLate",
        "Store the number of the next message, and check that each range follows the last one.",
    ),
)


def entries() -> list[CatalogEntry]:
    """What the catalog says of them."""
    return [
        CatalogEntry(
            s.name,
            "scenario",
            s.title,
            given(s),
            expect=s.expect,
            schedule=s.schedule.path if s.schedule is not None else None,
        )
        for s in TWINS
    ]
