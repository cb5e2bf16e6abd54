"""A bucket in a folder keeps what S3 promises, and an engine on it goes through what S3 does."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.engine.state.manifest import take_epoch
from bettong.engine.state.store import StoreError
from bettong.harness.api import load_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.record import RunRecord
from bettong.harness.runs.run import run_once
from bettong.scenarios.buckets import FolderBucket


def test_the_bucket_holds_what_was_put_last_and_folders_only_their_own(tmp_path: Path) -> None:
    bucket = FolderBucket("states", "words", tmp_path)
    bucket.write("a/one", memoryview(b"1"))
    bucket.publish("a/two", b"2")
    bucket.publish("a/two", b"3")
    bucket.publish("a/b/three", b"4")
    assert bucket.create("epochs/x", b"5")
    assert not bucket.create("epochs/x", b"6")
    assert [bucket.names(folder) for folder in ("none", "epochs")] == [[], ["x"]]
    assert [bytes(bucket.read(name)) for name in ("a/two", "epochs/x")] == [b"3", b"5"]
    bucket.remove("a/two")
    bucket.remove("a/two")
    with pytest.raises(StoreError, match="two"):
        bucket.read("a/two")
    assert FolderBucket("states", "words-too", tmp_path).names("a") == []
    assert [take_epoch(bucket, "driver") for _ in range(3)] == [1, 2, 3]


def under(backend: LocalBackend, folder: Path, **storage: object) -> RunRecord:
    faults = Schedule.from_dict({"faults": [{"storage": {"node": "driver", **storage}}]})
    asked = Asked(replay=False)
    return run_once(backend, load_scenario("counting_in_bucket"), faults, folder / "run", asked)


def epochs(seen: RunRecord) -> list[tuple[str, int, object]]:
    """Which were taken, by which driver, and whether it was told so."""
    return [
        (event.step, event.incarnation, event.detail["taken"])
        for event in seen.events
        if event.step.endswith("/take") and event.phase == "after"
    ]


def test_an_epoch_whose_answer_is_lost_is_left_out(backend: LocalBackend, tmp_path: Path) -> None:
    call = {"before": "epoch=1/take", "errno": "EIO", "call": 10, "done": True}
    seen = under(backend, tmp_path, **call)
    assert (seen.outcome, seen.not_fired) == ("good", ())
    assert epochs(seen) == [("epoch=1/take", 1, False), ("epoch=2/take", 1, True)]


def test_a_driver_whose_bucket_answers_no_more_is_followed_by_another(
    backend: LocalBackend, tmp_path: Path
) -> None:
    call = {"before": "batch=1/state.manifest", "errno": "EIO", "call": 5, "lasting": True}
    seen = under(backend, tmp_path, **call)
    assert (seen.outcome, seen.not_fired) == ("good", ())
    assert epochs(seen) == [("epoch=1/take", 1, True), ("epoch=2/take", 2, True)]
