"""The in-process runner: the same outputs and state, whatever stops it."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from folder_sink import FolderSink

from bettong.engine import Application, application, interpret, source, steps
from bettong.engine.address import Address
from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.batching import BY_NUMBER
from bettong.engine.config import RunConfig
from bettong.engine.endpoints import TcpSink
from bettong.engine.errors import AheadError, FencedError, MissingError
from bettong.engine.in_process import run_in_process
from bettong.engine.net.access import ListenConfig
from bettong.engine.net.errors import RefusedError
from bettong.engine.receiver.server import Receiver
from bettong.engine.resilience import GIVES_UP
from bettong.engine.sinks.arrow import ArrowSink
from bettong.engine.sinks.base import TwoPhaseSink
from bettong.engine.sinks.files import FileSink
from bettong.engine.sources.base import Extent, FileSource
from bettong.engine.state.manifest import Manifest
from bettong.engine.state.planned import PlannedBatch, note
from bettong.engine.state.query import version
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import MessageRange
from bettong.scenarios.applications import word_count
from bettong.scenarios.applications.word_count import app

LINES = [f"They know they found it, number {n} {n % 7}." for n in range(50)]


@pytest.fixture
def config(tmp_path: Path) -> Iterator[RunConfig]:
    text = tmp_path / "lines.txt"
    text.write_text("\n".join(LINES) + "\n")
    yield RunConfig(
        tmp_path / "checkpoint",
        {"lines": FileSource(text)},
        {"totals": FolderSink(tmp_path / "out")},
        batch_messages=20,
        instrumentation=steps.Instrumentation(trace=str(tmp_path / "trace"), node="driver"),
    )
    steps.install(steps.Instrumentation())


def rows(config: RunConfig) -> list[tuple[str, str, str]]:
    out = config.sinks["totals"]
    assert isinstance(out, FolderSink)
    return sorted(out.rows())


def expected() -> list[tuple[str, object, str]]:
    outputs = interpret(app, {"lines": [line.encode() for line in LINES]}).outputs
    return sorted((o.id, o.key, o.data.decode()) for o in outputs)


class _Stop(BaseException):
    """The process ends."""


class Dropping(FileSource):
    """Lets go of what is released, as a gateway does whose segment is full."""

    @property
    def _begin(self) -> int:
        released = self.path.with_suffix(".released")
        return int(released.read_text()) if released.exists() else 0

    def extent(self, upto: int, wait: float) -> Extent:
        return super().extent(upto, wait)._replace(begin=self._begin)

    def read(self, planned: MessageRange, step_id: str, causes: Sequence[str]) -> Sequence[bytes]:
        assert planned.start >= self._begin, f"{planned} is gone"
        return super().read(planned, step_id, causes)

    def release(self, upto: int, step_id: str, causes: Iterable[str]) -> None:
        self.path.with_suffix(".released").write_text(str(upto))


class EndsMeanwhile(FileSource):
    """Has its last messages, and its end, when a driver has looked for a batch in vain."""

    has_looked: ClassVar[bool] = False

    def extent(self, upto: int, wait: float) -> Extent:
        if not EndsMeanwhile.has_looked:
            EndsMeanwhile.has_looked = True
            return Extent(1, False)
        return super().extent(upto, wait)


class StopsBeforeCommit(BatchProtocol):
    def commit(self, job: Job, manifest: Manifest) -> None:
        if job.batch == self.settings.options["batch"]:
            raise _Stop
        super().commit(job, manifest)


def test_word_count_is_done_and_done_again(config: RunConfig) -> None:
    assert run_in_process(app, config) == 3
    assert rows(config) == expected()
    assert run_in_process(app, config) == 3
    assert rows(config) == expected()
    assert version(config.store).epoch == 2


@pytest.mark.parametrize("batch", [0, 1, 2])
def test_it_goes_on_after_it_was_stopped_before_a_commit(config: RunConfig, batch: int) -> None:
    stopping = dataclasses.replace(config, batch_class=StopsBeforeCommit, options={"batch": batch})
    with pytest.raises(_Stop):
        run_in_process(app, stopping)
    assert len(rows(config)) == len([r for r in expected() if _line(r[0]) < 20 * batch])
    assert run_in_process(app, dataclasses.replace(config, state_partitions=2)) == 3
    assert rows(config) == expected()


def test_messages_that_another_application_let_go_of_are_missed(config: RunConfig) -> None:
    source = config.sources["lines"]
    assert isinstance(source, FileSource)
    dropping = dataclasses.replace(config, sources={"lines": Dropping(source.path)})
    source.path.with_suffix(".released").write_text("5")
    with pytest.raises(MissingError, match=r"lines/0 to lines/4 are missing: .* of its own"):
        run_in_process(app, dropping)
    assert rows(config) == []


class StopsAtTheBeginning(BatchProtocol):
    def job(self, batch: int, base: Manifest) -> Job:
        if batch == self.settings.options["batch"]:
            raise _Stop
        return super().job(batch, base)


@pytest.mark.parametrize("batch", [1, 2])
def test_a_batch_whose_messages_are_let_go_is_not_done_again(config: RunConfig, batch: int) -> None:
    source = config.sources["lines"]
    assert isinstance(source, FileSource)
    dropping = dataclasses.replace(config, sources={"lines": Dropping(source.path)})
    options = {"batch": batch}
    with pytest.raises(_Stop):
        run_in_process(
            app, dataclasses.replace(dropping, batch_class=StopsAtTheBeginning, options=options)
        )
    assert run_in_process(app, dropping) == 3
    assert rows(config) == expected()
    assert run_in_process(app, dropping) == 3
    assert rows(config) == expected()


class LetGoMeanwhile(Dropping):
    """Another driver, which had stood still before its release, lets go of the batch that is about
    to be read."""

    def read(self, planned: MessageRange, step_id: str, causes: Sequence[str]) -> Sequence[bytes]:
        if not self._begin:
            self.path.with_suffix(".released").write_text("20")
            raise RefusedError("range", f"not all of {planned} is there")
        return super().read(planned, step_id, causes)


class NeverLetGo(Dropping):
    def release(self, upto: int, step_id: str, causes: Iterable[str]) -> None: ...


def test_a_batch_that_is_let_go_while_it_is_done_again_is_done(config: RunConfig) -> None:
    source = config.sources["lines"]
    assert isinstance(source, FileSource)
    before = dataclasses.replace(config, sources={"lines": NeverLetGo(source.path)})
    with pytest.raises(_Stop):
        run_in_process(
            app,
            dataclasses.replace(before, batch_class=StopsAtTheBeginning, options={"batch": 1}),
        )
    after = dataclasses.replace(config, sources={"lines": LetGoMeanwhile(source.path)})
    assert run_in_process(app, after) == 3
    assert rows(config) == expected()


class Refusing(FileSource):
    def read(self, planned: MessageRange, step_id: str, causes: Sequence[str]) -> Sequence[bytes]:
        raise RefusedError("range", f"not all of {planned} is there")


def test_a_batch_that_cannot_be_read_and_is_not_let_go_is_not_done(config: RunConfig) -> None:
    source = config.sources["lines"]
    assert isinstance(source, FileSource)
    assert run_in_process(app, config) == 3
    refusing = dataclasses.replace(config, sources={"lines": Refusing(source.path)})
    with pytest.raises(RefusedError, match="not all of"):
        run_in_process(app, refusing)


def _line(ident: str) -> int:
    return int(ident.split("/")[1].split(".")[0])


def test_its_steps_are_those_of_the_contract(config: RunConfig, tmp_path: Path) -> None:
    run_in_process(app, config)
    lines = (tmp_path / "trace").read_text().splitlines()
    taken = [json.loads(line)["step"] for line in lines if '"phase":"after"' in line]
    of_batch = [s for s in taken if s.startswith("batch=2/")]
    assert of_batch[0] == "batch=2/source.plan"
    assert of_batch[1:3] == ["batch=2/source.note", "batch=2/p=0/a=0/source.read"]
    assert of_batch[-1] == "batch=2/state.manifest"
    assert any(s.endswith("/state.write") for s in of_batch)
    assert len(taken) == len(set(taken))


def test_a_stream_that_ends_when_a_batch_was_looked_for_in_vain_is_read_to_its_end(
    config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That nothing could be planned says nothing of what has come since."""
    monkeypatch.setattr(EndsMeanwhile, "has_looked", False)
    (lines,) = config.sources.values()
    assert isinstance(lines, FileSource)
    late = dataclasses.replace(
        config, sources={"lines": EndsMeanwhile(lines.path)}, batch_wait_s=BY_NUMBER
    )
    assert run_in_process(app, late) == 3
    assert EndsMeanwhile.has_looked
    assert rows(late) == expected()


def test_numbers_out_of_range_are_refused(config: RunConfig) -> None:
    with pytest.raises(UsageError, match="keep_versions must be at least 2, got 1"):
        run_in_process(app, dataclasses.replace(config, keep_versions=1))


def test_without_resilience_a_run_says_what_it_gives_up(
    config: RunConfig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_sync(fd: int) -> None:
        raise AssertionError("a run without resilience waits for no disk")

    monkeypatch.setattr(os, "fsync", no_sync)
    quick = dataclasses.replace(config, resilience=False)
    assert run_in_process(app, quick) == 3
    monkeypatch.undo()
    assert rows(config) == expected()
    assert [r.getMessage().removeprefix("without resilience: ") for r in caplog.records] == list(
        GIVES_UP
    )
    for again in (quick, config):
        with pytest.raises(UsageError, match="run without resilience and cannot be gone on with"):
            run_in_process(app, again)


def test_without_resilience_durable_state_is_not_gone_on_with(config: RunConfig) -> None:
    run_in_process(app, config)
    with pytest.raises(UsageError, match="begins from nothing"):
        run_in_process(app, dataclasses.replace(config, resilience=False))
    assert run_in_process(app, config) == 3


@pytest.mark.parametrize("kind", [FileSink, ArrowSink])
def test_a_new_checkpoint_does_not_begin_where_a_sink_has_batches(
    config: RunConfig, tmp_path: Path, kind: type[FileSink] | type[ArrowSink]
) -> None:
    begun = dataclasses.replace(config, sinks={"totals": kind(tmp_path / "kept")})
    run_in_process(app, begun)
    new = dataclasses.replace(begun, checkpoint=tmp_path / "new")
    for _ in range(2):
        with pytest.raises(UsageError, match="has batches of an earlier run"):
            run_in_process(app, new)
    run_in_process(app, begun)
    run_in_process(app, dataclasses.replace(new, sinks={"totals": kind(tmp_path / "another")}))


@pytest.mark.parametrize("watched", [False, True])
def test_a_new_checkpoint_does_not_begin_at_a_receiver_that_has_batches(
    config: RunConfig, tmp_path: Path, watched: bool
) -> None:
    receiver = Receiver(ListenConfig(Address("127.0.0.1", 0)), tmp_path / "receiver")
    threading.Thread(target=receiver.run, daemon=True).start()
    begun = dataclasses.replace(
        config,
        sinks={"totals": TcpSink(receiver.address, app.name)},
        instrumentation=config.instrumentation if watched else steps.Instrumentation(),
    )
    run_in_process(app, begun)
    new = dataclasses.replace(begun, checkpoint=tmp_path / "new")
    for _ in range(3):  # each start takes an epoch, the last one a later one than the receiver has
        with pytest.raises(AheadError, match="has batches of an earlier run"):
            run_in_process(app, new)
    run_in_process(app, begun)
    other = dataclasses.replace(new, sinks={"totals": TcpSink(receiver.address, "another")})
    run_in_process(app, other)
    receiver.close()


def test_a_sink_that_another_copy_of_the_checkpoint_writes_to_is_named(
    config: RunConfig, tmp_path: Path
) -> None:
    """Nothing has been started again there: to wait for that start would be to wait in vain."""
    kept = dataclasses.replace(config, sinks={"totals": FileSink(tmp_path / "kept")})
    run_in_process(app, kept)
    shutil.copytree(kept.checkpoint, tmp_path / "copy")
    for _ in range(2):
        run_in_process(app, kept)
    copied = dataclasses.replace(kept, checkpoint=tmp_path / "copy")
    with pytest.raises(FencedError, match="sink totals is written to from another checkpoint"):
        run_in_process(app, copied)
    assert run_in_process(app, copied) == 3, "the next epoch is that of the other's last start"


@pytest.mark.parametrize("kind", ["files", "arrow", "receiver"])
def test_an_older_copy_of_a_checkpoint_does_not_go_on_where_a_sink_has_later_batches(
    config: RunConfig, tmp_path: Path, kind: str
) -> None:
    """However often it is started again: else its batches, which need not have the messages that
    those had, would be taken for made already."""
    receiver = Receiver(ListenConfig(Address("127.0.0.1", 0)), tmp_path / "receiver")
    threading.Thread(target=receiver.run, daemon=True).start()
    kinds: dict[str, TwoPhaseSink] = {
        "files": FileSink(tmp_path / "kept"),
        "arrow": ArrowSink(tmp_path / "kept"),
        "receiver": TcpSink(receiver.address, app.name),
    }
    begun = dataclasses.replace(config, sinks={"totals": kinds[kind]})
    stopping = dataclasses.replace(begun, batch_class=StopsBeforeCommit, options={"batch": 0})
    with pytest.raises(_Stop):
        run_in_process(app, stopping)
    shutil.copytree(begun.checkpoint, tmp_path / "copy")
    run_in_process(app, begun)
    older = dataclasses.replace(begun, checkpoint=tmp_path / "copy")
    for _ in range(3):
        with pytest.raises(AheadError, match="has batches after 0, the last one in the checkpoint"):
            run_in_process(app, older)
    for batch in (1, 2):  # what they took is known, so that they are made again as they were
        ends = {"lines": 20 * batch}, {"lines": min(20 * batch + 20, len(LINES))}
        note(older.store, PlannedBatch(batch, *ends))
    assert run_in_process(app, dataclasses.replace(older, batch_messages=7)) == 3
    receiver.close()


def test_a_stream_that_is_called_as_a_partition_would_be_must_stay(
    config: RunConfig, tmp_path: Path
) -> None:
    def reading(*names: str) -> Application:
        first, *others = (source(name, word_count.line) for name in names)
        lines = first.merge(*others) if others else first
        counted = lines.to(word_count.split).key_by(word_count.word).to(word_count.count)
        return application("named", counted.done())

    both = dict.fromkeys(("lines", "lines-2"), config.sources["lines"])
    quiet = dataclasses.replace(config, sources=both, sinks={})
    run_in_process(reading("lines", "lines-2"), quiet)
    fewer = dataclasses.replace(quiet, sources={"lines": both["lines"]})
    with pytest.raises(UsageError, match="messages of source lines-2 are in the state"):
        run_in_process(reading("lines"), fewer)
