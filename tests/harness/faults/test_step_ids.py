"""Step ids by their parts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.faults.step_ids import SHAPES, StepId

names = st.sampled_from(["batch", "epoch", "stage", "level", "p", "a", "source", "log"])
parts = st.builds("{}={}".format, names, st.integers(0, 10**20)) | st.sampled_from(
    ["sink.commit", "task", "lines", "17", "offsets", "p=", "p=01", "=3", "", "batch=1x"]
)


@given(st.lists(parts, min_size=1, max_size=6).map("/".join) | st.text())
def test_an_id_is_what_its_parts_say(text: str) -> None:
    assert str(StepId.parse(text)) == text


@given(st.sampled_from(sorted(SHAPES)), st.integers(0, 99))
def test_each_shape_tells_its_numbers(shape: str, number: int) -> None:
    step = StepId.parse(shape.replace("=N", f"={number}").replace("STREAM", "lines"))
    for name, found in (
        ("batch", step.batch),
        ("p", step.partition),
        ("a", step.attempt),
        ("stage", step.stage),
        ("epoch", step.epoch),
    ):
        assert found == (number if f"{name}=N" in shape else None)


def test_a_task_is_known_by_what_it_does() -> None:
    assert StepId.parse("batch=3/stage=1/p=0/a=1/task").task == (3, 0, 1)
    assert StepId.parse("batch=3/p=0/a=1/source.middle").task == (3, 0, 1)
    assert StepId.parse("batch=3/commits").task is None
