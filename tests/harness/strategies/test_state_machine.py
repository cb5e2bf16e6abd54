"""The engine on the in-process runner under crashes and restarts, and machines that must fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from bettong.engine.batch.job import Job
from bettong.engine.batch.planning import Planner
from bettong.engine.batch.protocol import BatchProtocol, Report
from bettong.engine.sinks.base import Noted
from bettong.engine.state.manifest import Manifest
from bettong.engine.state.planned import PlannedBatch
from bettong.engine.steps import step
from bettong.harness.strategies.state_machine import EngineMachine
from bettong.harness.strategies.state_machine_parts import Fuse, Killed, MemorySink
from bettong.scenarios.applications.word_count import app

SEARCH = settings(
    max_examples=400,
    stateful_step_count=8,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
)


class RandomPipelines(EngineMachine):
    pass


class WordCount(EngineMachine):
    applications = st.just(app)
    messages = st.sampled_from([b"they know", b"", b"They were they", b"who knows"])


TestRandomPipelines = RandomPipelines.TestCase
TestWordCount = WordCount.TestCase
TestRandomPipelines.settings = TestWordCount.settings = settings(
    stateful_step_count=10, max_examples=settings().max_examples // 2
)


@dataclass(eq=False)
class CommitsAgain(MemorySink):
    """Does not look whether it has the batch."""

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        before = self.committed.pop(batch, [])
        super().commit(epoch, batch, winners, noted)
        self.committed[batch] = before + self.committed[batch]


@dataclass(eq=False)
class ForgetsLate(MemorySink):
    """Says that it has the batch before it has."""

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        if batch in self.committed:
            return
        self.committed[batch] = []
        self.ends[batch] = {r.stream: r.stop for r in noted.carries}
        with step(noted.step, causes=noted.causes, carries=noted.carries):
            for p, a in sorted(winners.items()):
                self.committed[batch] += self.staged[batch, p, a]


@pytest.mark.parametrize(
    ("broken", "kind"), [(CommitsAgain, "Duplicate"), (ForgetsLate, "Loss")], ids=["again", "late"]
)
def test_a_sink_that_is_not_effectively_once_is_found(broken: type[MemorySink], kind: str) -> None:
    class Broken(WordCount):
        sink = broken

    with pytest.raises(AssertionError, match=kind):
        run_state_machine_as_test(Broken, settings=SEARCH)


class NotesNothing(Planner):
    def note(self, planned: PlannedBatch) -> PlannedBatch:
        return planned


class CommitsFirst(BatchProtocol):
    """Shows the outputs before the state that they came from is safe, of a batch that a start with
    another size of batches cuts in another way."""

    planner = NotesNothing

    def finish(self, job: Job, manifest: Manifest, reports: Sequence[Report]) -> None:
        self.commit(job, manifest)
        self.write_manifest(job, manifest, reports)


def test_an_engine_that_commits_in_the_wrong_order_is_found() -> None:
    class Broken(WordCount):
        protocol = CommitsFirst

    with pytest.raises(AssertionError, match=r"Loss|Duplicate|StateDivergence|shown up to"):
        run_state_machine_as_test(Broken, settings=SEARCH)


def test_a_fuse_kills_at_its_moment_and_ever_after() -> None:
    fuse = Fuse({}, "step", 1)
    fuse.burn("step", "before a")
    fuse.burn("disk", "a change of the disk")
    for kind in ("step", "disk"):
        with pytest.raises(Killed):
            fuse.burn(kind, "after a")
    assert fuse.last == "after a"
    assert fuse.found == [{}, {}]
