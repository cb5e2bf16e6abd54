"""Savepoints, and which code goes on with a state."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from folder_sink import FolderSink

from bettong.engine import (
    Application,
    application,
    decoder,
    encoder,
    key_extractor,
    sink,
    source,
    state_computation,
    state_entity,
)
from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol, Report
from bettong.engine.codecs.state import DataclassCodec
from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.sources.base import FileSource
from bettong.engine.sources.directory import DirectorySource
from bettong.engine.state.manifest import Manifest, ManifestError, newest_batch, stored
from bettong.engine.state.planned import PlannedBatch, note
from bettong.engine.state.savepoint import SavepointError, export, restore
from bettong.engine.state.store import LocalStore
from bettong.engine.storage.disk import AppendFile, OsDisk
from bettong.engine.storage.simulated import SimulatedDisk
from bettong.harness.cli.state_command import command
from bettong.lineage.errors import UsageError

LINES = [f"{'ab'[n % 2]} {n}" for n in range(20)]


@dataclass
class Total:
    count: int = 0


@dataclass
class TotalAndLast:
    count: int = 0
    last: str = ""


@dataclass
class Renamed:
    number: int = 0


@dataclass
class WithoutDefault:
    count: int
    last: str

    def __init__(self, count: int = 0, last: str = "") -> None:
        self.count, self.last = count, last


@decoder
def as_text(data: bytes) -> str:
    return data.decode()


@key_extractor
def letter(message: str) -> str:
    return message[:1]


@encoder
def text(value: object) -> bytes:
    return str(value).encode()


def totals(
    cls: type,
    field: str = "count",
    name: str = "totals",
    stream: str = "lines",
    sinks: int = 1,
    codec: DataclassCodec | None = None,
    state: str = "Total",
) -> Application:
    """Counts by letter, with a state of this class."""

    @state_computation(state=state_entity(cls, name=state, codec=codec))
    def count(message: str, entity: Any) -> int:
        setattr(entity, field, getattr(entity, field) + 1)
        return int(getattr(entity, field))

    counted = source(stream, as_text).key_by(letter).to(count)
    return application(name, counted.to_sinks(*(sink(f"out{n}", text) for n in range(sinks))))


def config(folder: Path, messages: int, app: Application, **options: Any) -> RunConfig:
    """A run of so many messages in batches of 3."""
    lines = folder / "lines.txt"
    lines.write_text("".join(line + "\n" for line in LINES[:messages]))
    return RunConfig(
        folder / "checkpoint",
        {source.name: FileSource(lines) for source in app.sources},
        {s.name: FolderSink(folder / s.name) for s in app.sinks},
        batch_messages=3,
        **options,
    )


def shown(folder: Path, name: str = "out0") -> list[tuple[str, str]]:
    """Key and count of each output of a sink, in the order of messages."""
    rows = sorted(FolderSink(folder / name).rows(), key=lambda row: int(row[0].split("/")[1]))
    return [(str(key), data) for _, key, data in rows]


ALL = [("ab"[n % 2], str(n // 2 + 1)) for n in range(len(LINES))]


def test_a_savepoint_is_there_whole_or_not_at_all_whenever_the_power_is_cut(
    tmp_path: Path,
) -> None:
    app = totals(Total)
    run_in_process(app, config(tmp_path, 7, app))
    target, found = Path("/kept/savepoint"), {True: 0, False: 0}

    def look() -> None:
        for image in disk.images():
            found[target in image] += 1
            if target in image:
                (tmp_path / "savepoint").write_bytes(image[target])
                again = tmp_path / f"again{sum(found.values())}"
                assert restore(tmp_path / "savepoint", again)["batch"] == 2

    disk = SimulatedDisk(on_change=look)
    export(tmp_path / "checkpoint", target, disk=disk)
    assert found[True]
    assert found[False]
    assert all(list(image) == [target] for image in disk.images())


@pytest.mark.parametrize(
    ("after", "options"),
    [
        (totals(Total), {"state_partitions": 7}),
        (totals(Total), {"state_partitions": 1}),
        (totals(TotalAndLast), {}),
        (
            totals(
                Renamed,
                "number",
                codec=DataclassCodec(Renamed, 2, {1: lambda old: {"number": old["count"]}}),
            ),
            {"state_partitions": 2},
        ),
        (totals(Total, sinks=2), {}),
    ],
    ids=["more partitions", "fewer partitions", "an added field", "migrated", "an added sink"],
)
@pytest.mark.parametrize("crash", ["", "before the manifest", "before the sink's commit"])
def test_a_changed_application_goes_on(
    tmp_path: Path, after: Application, options: dict[str, Any], crash: str
) -> None:
    before = totals(Total)
    run_in_process(before, config(tmp_path, 10, before))
    changed = config(tmp_path, 20, after, **options)
    if crash:
        with pytest.raises(_Killed):
            run_in_process(after, replace(changed, batch_class=CRASHES[crash]))
    run_in_process(after, changed)
    assert shown(tmp_path) == ALL
    if len(after.sinks) > 1:
        added = shown(tmp_path, "out1")
        assert added == ALL[-len(added) :]
        assert len(added) >= 10


class _Killed(BaseException):
    """The process ends."""


class _BeforeManifest(BatchProtocol):
    """Dies in the second batch of a start, of which the first is an old one done again."""

    def write_manifest(self, job: Job, manifest: Manifest, reports: Sequence[Report]) -> None:
        if job.batch == 4:
            raise _Killed
        super().write_manifest(job, manifest, reports)


class _BeforeCommit(BatchProtocol):
    def commit(self, job: Job, manifest: Manifest) -> None:
        if job.batch == 4:
            raise _Killed
        super().commit(job, manifest)


CRASHES = {"before the manifest": _BeforeManifest, "before the sink's commit": _BeforeCommit}


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (totals(Total, name="others"), "is of application totals, not of others"),
        (totals(Renamed, "number"), "raise the codec's version and give it migrate="),
        (totals(WithoutDefault), "give fields that are added a default"),
        (
            totals(Total, codec=DataclassCodec(Total, 2, {})),
            r"give the codec migrate=\{1: …\}",
        ),
        (
            totals(Total, codec=DataclassCodec(Total, 2, {1: lambda old: old["sum"]})),
            "state Total cannot be read: KeyError: 'sum'",
        ),
        (totals(Total, state="Sum"), "there are entities of state Total, and there is no such"),
        (totals(Total, stream="words"), "10 messages of source lines are in the state"),
    ],
)
def test_what_is_incompatible_is_refused_by_name_and_nothing_is_touched(
    tmp_path: Path, after: Application, why: str
) -> None:
    before = totals(Total)
    run_in_process(before, config(tmp_path, 10, before))
    changed = config(tmp_path, 20, after)
    contents = _contents(tmp_path)
    with pytest.raises(UsageError, match=why):
        run_in_process(after, changed)
    assert _contents(tmp_path) == contents


@pytest.mark.parametrize("has_state", [True, False])
def test_a_planned_batch_of_a_source_that_is_gone_is_refused(
    tmp_path: Path, has_state: bool
) -> None:
    app = totals(Total)
    started = config(tmp_path, 10, app)
    if has_state:
        run_in_process(app, started)
    batch, ends = (newest_batch(started.store) + 1, {"lines": 10 if has_state else 0})
    note(started.store, PlannedBatch(batch, {**ends, "gifts": 0}, {**ends, "gifts": 2}))
    changed = config(tmp_path, 20, app)
    contents = _contents(tmp_path)
    with pytest.raises(UsageError, match=f"batch {batch} was planned with messages of source gif"):
        run_in_process(app, changed)
    assert _contents(tmp_path) == contents


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("batch", [None, 0, 1, 3])
def test_a_run_goes_on_from_a_savepoint(tmp_path: Path, batch: int | None) -> None:
    app = totals(Total)
    run_in_process(app, config(tmp_path, 10, app))
    saved = export(tmp_path / "checkpoint", tmp_path / "saved", batch)
    assert saved.batch == (3 if batch is None else batch)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    note = restore(tmp_path / "saved", elsewhere / "checkpoint")
    assert (note["application"], note["batch"]) == ("totals", saved.batch)
    run_in_process(app, config(elsewhere, 20, app))
    assert shown(elsewhere) == ALL[3 * saved.batch :]
    run_in_process(app, config(tmp_path, 20, app))
    assert shown(tmp_path) == ALL


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: data[: len(data) // 2], "no savepoint, or is damaged"),
        (lambda data: data.replace(b'"batch":3', b'"batch":4'), "its files are not those"),
        (lambda data: b"", "no savepoint, or is damaged"),
    ],
)
def test_a_damaged_savepoint_makes_no_checkpoint(
    tmp_path: Path, damage: Callable[[bytes], bytes], why: str
) -> None:
    app = totals(Total)
    run_in_process(app, config(tmp_path, 10, app))
    saved = tmp_path / "saved"
    export(tmp_path / "checkpoint", saved)
    saved.write_bytes(damage(saved.read_bytes()))
    with pytest.raises((UsageError, SavepointError), match=why):
        restore(saved, tmp_path / "new")
    assert {p.name for p in tmp_path.iterdir()} == {"lines.txt", "checkpoint", "out0", "saved"}


def test_a_savepoint_names_nothing_outside(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "saved", "w") as archive:
        member = tarfile.TarInfo("../escaped")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(UsageError, match="outside of a checkpoint"):
        restore(tmp_path / "saved", tmp_path / "new")
    assert not (tmp_path / "escaped").exists()


def test_the_command_exports_and_imports(tmp_path: Path) -> None:
    app = totals(Total)
    run_in_process(app, config(tmp_path, 10, app))
    checkpoint, saved = str(tmp_path / "checkpoint"), str(tmp_path / "saved")
    runner = CliRunner()
    done = runner.invoke(command, [checkpoint, "--export", saved], catch_exceptions=False)
    assert done.output == f"{saved}: totals after batch 3\n"
    new = str(tmp_path / "new")
    done = runner.invoke(command, [new, "--import", saved], catch_exceptions=False)
    assert done.output == f"{new}: totals goes on after batch 3\n"
    for arguments, why in (
        ([checkpoint, "--import", saved], "is not empty"),
        ([checkpoint, "--export", saved], "is there already"),
        ([checkpoint, "--export", str(tmp_path / "none" / "saved")], "cannot write"),
        ([checkpoint, "--export", "/proc/saved"], "cannot write /proc/saved"),
        (["/proc/new", "--import", saved], "cannot read"),
        ([checkpoint, "--export", "x" * 300], "cannot write"),
        (["x" * 300, "--import", saved], "cannot read"),
        ([new, "--import", saved, "--key", "a"], "--import with nothing"),
        (["s3://bucket/state", "--export", saved], "not of one in S3"),
    ):
        refused = runner.invoke(command, arguments)
        assert isinstance(refused.exception, UsageError)
        assert why in str(refused.exception)


def test_a_savepoint_of_the_oldest_state_could_not_be_gone_on_from(tmp_path: Path) -> None:
    app = totals(Total)
    run_in_process(app, config(tmp_path, 10, app, keep_versions=2))
    oldest = stored(LocalStore(tmp_path / "checkpoint" / "state"))[0][0]
    with pytest.raises(ManifestError, match=f"after batch {oldest - 1} is not kept any more"):
        export(tmp_path / "checkpoint", tmp_path / "saved", oldest)
    assert not (tmp_path / "saved").exists()


class GoesOnDisk(OsDisk):
    """While the first byte is written here, a run removes all that it has written before."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def append_to(self, path: Path) -> AppendFile:
        shutil.rmtree(self._folder)
        return super().append_to(path)


def test_a_savepoint_has_what_the_run_gives_up_while_it_is_written(tmp_path: Path) -> None:
    app = totals(Total)
    run_in_process(app, config(tmp_path, 10, app))
    checkpoint = tmp_path / "checkpoint"
    export(checkpoint, tmp_path / "saved", disk=GoesOnDisk(checkpoint / "state"))
    restore(tmp_path / "saved", tmp_path / "elsewhere" / "checkpoint")
    run_in_process(app, config(tmp_path / "elsewhere", 20, app))
    assert shown(tmp_path / "elsewhere") == ALL[9:]


def test_a_savepoint_has_the_order_of_files_wherever_it_is_kept(tmp_path: Path) -> None:
    app = totals(Total)
    folder = tmp_path / "in"
    folder.mkdir()

    def on(where: Path) -> RunConfig:
        incoming = DirectorySource(folder, where / "checkpoint" / "kept" / "incoming")
        return replace(config(where, 20, app), sources={"lines": incoming})

    for name, line in (("b", "b 0"), ("a", "a 1")):
        (folder / name).write_text(f"{line}\n")
        run_in_process(app, on(tmp_path))
    export(tmp_path / "checkpoint", tmp_path / "saved")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    restore(tmp_path / "saved", elsewhere / "checkpoint")
    (folder / "0").write_text("a 2\n")
    for where in (tmp_path, elsewhere):
        run_in_process(app, on(where))
    assert shown(tmp_path)[-1] == shown(elsewhere)[-1]
    assert len(shown(tmp_path)) == 3
    assert shown(elsewhere) == shown(tmp_path)[1:]
