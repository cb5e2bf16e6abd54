from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.faults.kinds import Crash
from bettong.harness.faults.point import Point
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.counterexample import CounterexampleFile
from bettong.lineage.errors import UsageError

FOUND = CounterexampleFile(
    "word_count",
    Schedule((Crash("driver", Point("batch=1/sink.commit", "after", 2), False),)),
    {"workers": 2, "replay": False},
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


def test_what_is_written_is_read(folder: Path) -> None:
    path = folder / "a.json"
    FOUND.write(path)
    assert CounterexampleFile.read(path) == FOUND
    assert (FOUND.workers, FOUND.expected) == (2, "effectively-once")


@given(data=st.data())
def test_a_damaged_file_is_read_as_it_was_or_refused_in_one_line(
    folder: Path, data: st.DataObject
) -> None:
    path = folder / "b.json"
    FOUND.write(path)
    text = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(text) - 1))
    if data.draw(st.booleans()):
        text[at] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del text[at:]
    path.write_bytes(bytes(text))
    try:
        CounterexampleFile.read(path)
    except UsageError as e:
        assert str(path) in str(e)
        assert "\n" not in str(e)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "other"}, "not a counterexample"),
        ({"version": 2}, "of version 2"),
        ({"scenario": 3}, "wrong kind"),
        ({"options": {"workers": -1}}, "workers is 0, 1 or 2"),
        ({"options": {"power_cuts": True}}, "the option 'power_cuts' is not known; .*power_cut"),
        ({"options": {"expect": "exactly-once"}}, "'exactly-once' is not known; .*effectively-"),
        ({"schedules": {}}, "the part 'schedules' is not known; did you mean schedule"),
        ({"schedule": {"faults": [{"crash": {"node": "driver"}}]}}, "give one of before and after"),
    ],
)
def test_a_mistake_is_named(folder: Path, change: dict[str, object], message: str) -> None:
    path = folder / "c.json"
    FOUND.write(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(UsageError, match=message):
        CounterexampleFile.read(path)
