"""Step ids by their parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.faults.step_ids import StepId, counted_from, counted_on
from bettong.harness.faults.step_shapes import SHAPES, is_step

names = st.sampled_from(["batch", "epoch", "stage", "level", "p", "a", "source", "log"])
parts = st.builds("{}={}".format, names, st.integers(0, 10**20)) | st.sampled_from(
    ["sink.commit", "task", "lines", "17", "offsets", "p=", "p=01", "=3", "", "batch=1x"]
)


@given(st.lists(parts, min_size=1, max_size=6).map("/".join) | st.text())
def test_an_id_is_what_its_parts_say(text: str) -> None:
    assert str(StepId.parse(text)) == text


@given(st.sampled_from(sorted(SHAPES)), st.integers(0, 99))
def test_each_shape_has_its_numbers(shape: str, number: int) -> None:
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


batches = st.one_of(st.none(), st.integers(0, 99))


def concrete(shape: str) -> str:
    return shape.replace("=N", "=3").replace("/N", "/17").replace("STREAM", "lines")


@given(st.sampled_from(sorted(SHAPES)))
def test_a_shape_is_read_back_from_a_step_of_it(shape: str) -> None:
    assert StepId.parse(concrete(shape)).shape == shape
    assert is_step(concrete(shape))


@given(st.sampled_from(sorted(SHAPES)), st.sampled_from(["totals", "a.b-c", "_x"]))
def test_the_name_of_a_source_or_sink_is_split_off(shape: str, name: str) -> None:
    step = concrete(shape)
    assert (StepId.parse(step).unnamed, StepId.parse(step).name) == (step, "")
    of_receiver = shape.startswith("receiver.") and shape != "receiver.start"
    if of_receiver or "/source." in shape or "/sink." in shape:
        named = StepId.parse(f"{step}/{name}")
        assert (named.unnamed, named.name, named.shape) == (step, name, shape)


@given(st.sampled_from(sorted(SHAPES)), batches, st.integers(0, 99))
def test_what_is_counted_from_a_fault_is_counted_on_again(
    shape: str, batch: int | None, epoch: int
) -> None:
    step = concrete(shape)
    assert counted_on(counted_from(step, batch, epoch), batch, epoch) == step


def test_steps_that_differ_by_batch_and_epoch_are_the_same_counted_from_there() -> None:
    assert counted_from("batch=4/commits", 3, 1) == counted_from("batch=9/commits", 8, 5)
    assert counted_from("epoch=2/take", None, 1) == counted_from("epoch=6/take", 8, 5)
    assert counted_on(counted_from("batch=2/commits", 3, 1), 5, 1) == "batch=4/commits"


@given(st.sampled_from(sorted(SHAPES)), st.integers(0, 99))
def test_another_number_is_put_in_the_place_of_one(shape: str, number: int) -> None:
    moved = StepId.parse(concrete(shape)).with_number("p", number)
    assert moved.partition == (number if "/p=N" in shape else None)
    assert moved.shape == shape
    assert StepId.parse(str(moved)) == moved


def test_only_a_tasks_own_attempt_is_a_task() -> None:
    task = StepId.parse("batch=3/stage=1/p=0/a=1/task")
    assert task.is_task and not task.is_within_task and task.is_read
    for text in ("batch=3/p=0/a=1/source.read", "batch=3/level=2/p=0/a=1/state.write"):
        step = StepId.parse(text)
        assert step.is_within_task and not step.is_task and step.task == task.task
    assert not StepId.parse("receiver.prepare/batch=3/p=0/a=1").is_within_task


def test_what_lasts_is_what_later_processes_read() -> None:
    lasting = {shape for shape in SHAPES if StepId.parse(concrete(shape)).is_durable}
    assert lasting == {
        "sender.forget/STREAM/N",
        "gateway.create/STREAM",
        "gateway.append/STREAM/N",
        "gateway.release/STREAM/N",
        "receiver.open/epoch=N",
        "receiver.prepare/batch=N/p=N/a=N",
        "receiver.prepare/batch=N/p=N/a=N/part=N",
        "receiver.commit/batch=N",
        "batch=N/source.note",
        "batch=N/offsets",
        "batch=N/state.manifest",
        "batch=N/commits",
        "batch=N/_spark_metadata",
        "metadata",
    }
    assert StepId.parse("source=0/log=3").is_durable


def test_files_of_the_checkpoint() -> None:
    state = "batch=2/state/op=0/p=1/delta"
    for text in ("batch=2/offsets", "source=0/log=2", state, "state/op=0/metadata", "metadata"):
        assert StepId.parse(text).is_checkpoint_file
    assert not StepId.parse("batch=2/sink.file=3.rename").is_checkpoint_file
    assert not StepId.parse("batch=2/p=0/a=0/state.write").is_checkpoint_file
    assert StepId.parse("source=0/log=2").source_log == 2
    assert StepId.parse(state).is_state_file


def test_a_sinks_file_operation_has_a_number_and_a_name() -> None:
    assert StepId.parse("batch=2/sink.file=3.rename").file == (3, "rename")
    assert StepId.parse("batch=2/commits").file is None


def test_the_message_that_a_step_names() -> None:
    assert StepId.parse("sender.send/lines/17").message == ("lines", "17")
    assert StepId.parse("gateway.append/lines/end").message == ("lines", "end")
    connect = StepId.parse("sender.connect/lines")
    assert connect.message is None and connect.stream == "lines"
    assert StepId.parse("batch=1/commits").message is None


@pytest.mark.parametrize(
    ("step", "starts", "connects"),
    [
        ("gateway.start", True, False),
        ("receiver.start", True, False),
        ("gateway.create/lines", False, False),
        ("receiver.create/word_count", False, False),
        ("sender.connect/lines", False, True),
    ],
)
def test_what_comes_ahead_of_any_batch_rests_on_nothing(
    step: str, starts: bool, connects: bool
) -> None:
    id = StepId.parse(step)
    assert (id.is_ahead, id.is_root, id.batch, id.message) == (True, True, None, None)
    assert (id.starts, id.connects) == (starts, connects)


@pytest.mark.parametrize("step", ["gateway.append/lines/7", "receiver.open/epoch=1", "metadata"])
def test_what_is_of_a_batch_does_not_come_ahead(step: str) -> None:
    assert not StepId.parse(step).is_ahead
