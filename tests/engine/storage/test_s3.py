"""The state log in a bucket: the same promises, by other means."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_run import CrashingProtocol, Simulation, aligned
from click.testing import CliRunner

from bettong.engine import interpret
from bettong.engine.batch import tasks
from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.sinks.arrow import ArrowSink
from bettong.engine.sources.base import FileSource
from bettong.engine.state import s3
from bettong.engine.state.manifest import ManifestError, read_manifest, stored, take_epoch
from bettong.engine.state.query import version
from bettong.engine.state.s3 import S3Store
from bettong.engine.state.store import StoreError
from bettong.harness.cli import cli
from bettong.lineage.errors import UsageError
from bettong.scenarios.applications.word_count import app

boto3 = pytest.importorskip("boto3")
moto = pytest.importorskip("moto")
pytest.importorskip("moto.s3.responses")

LINES = [b"they know they", b"found it", b"they"] * 5


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Store]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with moto.mock_aws():
        s3._clients.clear()
        tasks._caches.clear()
        boto3.client("s3").create_bucket(Bucket="states")
        yield S3Store.parse("s3://states/words/")
    s3._clients.clear()
    tasks._caches.clear()


def test_names_hold_what_was_put_last_and_folders_only_their_own(store: S3Store) -> None:
    store.write("a/one", memoryview(b"1"))
    store.publish("a/two", b"2")
    store.publish("a/two", b"3")
    store.publish("a/b/three", b"4")
    assert store.names("a") == ["one", "two"]
    assert store.names("none") == []
    assert bytes(store.read("a/two")) == b"3"
    store.remove("a/two")
    store.remove("a/two")
    with pytest.raises(StoreError, match=r"s3://states/words/a/two"):
        store.read("a/two")
    assert S3Store("states", "words-too").names("a") == []


@pytest.fixture
def one_put_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition and its object are one step in S3; moto looks first and puts then."""
    response = moto.s3.responses.S3Response
    put, lock = response.put_object, threading.Lock()

    def locked(self: object) -> object:
        with lock:
            return put(self)

    monkeypatch.setattr(response, "put_object", locked)


@pytest.mark.usefixtures("one_put_at_a_time")
def test_of_several_who_create_one_is_told_yes(store: S3Store) -> None:
    reported: list[bool] = []
    threads = [
        threading.Thread(target=lambda n=n: reported.append(store.create("epochs/x", b"%d" % n)))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(reported) == [False] * 7 + [True]
    assert [take_epoch(store, "driver") for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("stage", ["before manifest", "before commit", "after commit"])
def test_a_driver_that_dies_loses_and_doubles_nothing(store: S3Store, stage: str) -> None:
    streams = {"lines": LINES}
    simulation = Simulation(app, store, streams, protocol_class=CrashingProtocol)
    manifest = simulation.run_with_crash(aligned(streams, 4), (2, stage), 2)
    expected = interpret(app, streams)
    wanted = [(o.id, o.key, o.data) for o in expected.outputs]
    assert sorted(simulation.sinks["totals"].rows) == sorted(wanted)
    entities = expected.state["WordTotal"]
    assert simulation.entities(manifest, "WordTotal", list(entities)) == entities
    assert simulation.stored(manifest, "WordTotal") == set(entities)
    assert len(stored(store)) <= 4, "old versions go"


def test_a_run_keeps_its_state_there_and_goes_on(store: S3Store, tmp_path: Path) -> None:
    text = tmp_path / "lines.txt"
    config = RunConfig(
        tmp_path / "checkpoint",
        {"lines": FileSource(text)},
        {"totals": ArrowSink(tmp_path / "out")},
        batch_messages=5,
        state=store,
    )
    for upto in (10, 15):
        text.write_bytes(b"\n".join(LINES[:upto]) + b"\n")
        run_in_process(app, config)
    reported = CliRunner().invoke(cli, ["state", "s3://states/words", "--key", "they", "--json"])
    assert json.loads(reported.output)["entities"] == {"WordTotal": {"count": 15}}
    assert not (tmp_path / "checkpoint" / "state").exists()
    assert version(store).offsets == {"lines": 15}
    with pytest.raises(ManifestError, match="of application word_count, not of other"):
        read_manifest(store, "other", 2)


def test_addresses() -> None:
    for text in ("s3://", "s3://bucket", "s3://bucket/", "bucket/prefix"):
        with pytest.raises(UsageError, match="write s3://BUCKET/PREFIX"):
            S3Store.parse(text)
