"""What the bench of a live run makes of what its two ends have noted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bettong.scenarios.benchmarks.errors import WrongResultError
from bettong.scenarios.benchmarks.live_load import Load, Times, times
from bettong.scenarios.benchmarks.spark_latency import rests


def test_a_load_begins_with_one_frame_and_goes_on_at_its_rate() -> None:
    load = Load(1_000, 2)
    due = load.due(5).tolist()
    assert (load.frame, load.count, len(load.messages())) == (2, 2_002, 2_002)
    assert due[:4] == [5, 5, 5, 1_000_005]
    assert due[-1] == 5 + 1_999 * 1_000_000


def test_late_is_what_was_due_and_not_to_be_seen() -> None:
    found = Times(np.array([0, 10, 20, 30]), np.array([5, 25, 22, 31]))
    assert [found.late(at) for at in (0, 5, 10, 22, 25, 30, 31)] == [1, 0, 1, 1, 0, 1, 0]


def test_an_output_that_was_never_seen_is_no_result(tmp_path: Path) -> None:
    load = Load(10, 1)
    (tmp_path / "begin").write_text("7")
    np.save(tmp_path / "seen.npy", np.arange(load.count))
    with pytest.raises(WrongResultError, match="1 outputs"):
        times(load, tmp_path)
    np.save(tmp_path / "seen.npy", np.arange(load.count) + 1)
    assert times(load, tmp_path).due[0] == 7


def test_what_no_phase_tells_of_is_said() -> None:
    phases = {
        "spark": {"triggerExecution": 100.0, "addBatch": 80.0, "walCommit": 15.0},
        "driver": {"base": 1.0, "execute": 60.0, "sink.commit": 4.0},
        "tasks": {"source.read": 5.0, "state.apply": 10.0, "state.load": 7.0},
    }
    assert rests(phases) == {
        "of triggerExecution": 5.0,
        "of addBatch": 15.0,
        "of execute": 45.0,
    }
