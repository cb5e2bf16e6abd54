"""What a batch takes: by number, by time, and what was noted before."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine.batch.planning import Planner
from bettong.engine.batching import BY_NUMBER, Batching, parse_wait
from bettong.engine.errors import MissingError
from bettong.engine.sources.base import Extent
from bettong.engine.state.planned import PlannedBatch, PlannedError, all_noted, note, remove_before
from bettong.engine.state.store import LocalStore
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import MessageRange


@dataclasses.dataclass
class Feed:
    """A stream that has come as far as it is told, and comes no further while it is waited for."""

    end: int = 0
    ended: bool = False
    planned: list[MessageRange] = dataclasses.field(default_factory=list)

    def extent(self, upto: int, wait: float) -> Extent:
        return Extent(self.end, self.ended)

    def read(self, planned: MessageRange, step: str, causes: Sequence[str]) -> Sequence[bytes]:
        raise AssertionError("planning reads nothing")

    def plan(self, planned: MessageRange, step: str) -> None:
        self.planned.append(planned)

    def release(self, upto: int, step: str, causes: Iterable[str]) -> None:
        pass


def planner(folder: Path, feeds: dict[str, Feed], batching: Batching) -> Planner:
    return Planner(feeds, LocalStore(folder), batching, 0.0)


def test_a_silent_stream_holds_nobody_up(tmp_path: Path) -> None:
    feeds = {"a": Feed(3), "b": Feed()}
    live = planner(tmp_path, feeds, Batching(10, 0.0))
    assert live.plan(0, {"a": 0, "b": 0}) == {"a": 3, "b": 0}
    assert live.plan(1, {"a": 3, "b": 0}) is None
    by_number = planner(tmp_path / "number", feeds, Batching(10, BY_NUMBER))
    assert by_number.plan(0, {"a": 0, "b": 0}) is None


def test_a_full_stream_closes_the_batch_whatever_the_wait(tmp_path: Path) -> None:
    live = planner(tmp_path, {"a": Feed(25), "b": Feed(2)}, Batching(10, 3600.0))
    assert live.plan(0, {"a": 0, "b": 0}) == {"a": 10, "b": 2}
    assert live.plan(1, {"a": 10, "b": 2}) == {"a": 20, "b": 2}


def test_what_is_left_of_streams_that_have_ended_is_a_batch_at_once(tmp_path: Path) -> None:
    live = planner(tmp_path, {"a": Feed(4, True), "b": Feed(0, True)}, Batching(10, 3600.0))
    assert live.plan(0, {"a": 0, "b": 0}) == {"a": 4, "b": 0}
    assert live.plan(1, {"a": 4, "b": 0}) is None


def test_what_was_noted_is_taken_again_whatever_has_come_since(tmp_path: Path) -> None:
    feeds = {"a": Feed(3)}
    assert planner(tmp_path, feeds, Batching(10, 0.0)).plan(0, {"a": 0}) == {"a": 3}
    feeds["a"].end = 8
    for batching in (Batching(10, 0.0), Batching(5, BY_NUMBER)):
        again = planner(tmp_path, feeds, batching)
        assert again.plan(0, {"a": 0}) == {"a": 3}
    with pytest.raises(PlannedError, match="do not belong together"):
        again.plan(0, {"a": 1})


@pytest.mark.parametrize("wait", [0.0, BY_NUMBER])
def test_a_stream_that_has_lost_what_was_taken_is_named(tmp_path: Path, wait: float) -> None:
    feeds = {"a": Feed(30), "b": Feed(8)}
    some = planner(tmp_path, feeds, Batching(10, wait))
    with pytest.raises(MissingError, match="messages b/8 to b/19 are missing"):
        some.plan(2, {"a": 20, "b": 20})


def test_of_two_drivers_both_go_by_the_first_note(tmp_path: Path) -> None:
    class Late(Planner):
        """Another driver notes the batch after this one has looked for a note."""

        def note(self, planned: PlannedBatch) -> PlannedBatch:
            note(self.store, PlannedBatch(0, {"a": 0}, {"a": 2}))
            return super().note(planned)

    feeds = {"a": Feed(6)}
    late = Late(feeds, LocalStore(tmp_path), Batching(10, 0.0), 0.0)
    assert late.plan(0, {"a": 0}) == {"a": 2}
    assert planner(tmp_path, feeds, Batching(10, 0.0)).plan(0, {"a": 0}) == {"a": 2}


def test_of_a_stream_that_a_note_does_not_name_nothing_is_taken(tmp_path: Path) -> None:
    """The note is that of a version that did not have it, whether it came before or meanwhile."""

    class Late(Planner):
        def note(self, planned: PlannedBatch) -> PlannedBatch:
            note(self.store, PlannedBatch(1, {"a": 2}, {"a": 4}))
            return super().note(planned)

    feeds = {"a": Feed(6), "b": Feed(3)}
    ends = {"a": 2, "b": 0}
    late = Late(feeds, LocalStore(tmp_path), Batching(10, 0.0), 0.0)
    assert late.plan(1, ends) == {"a": 4, "b": 0}
    assert planner(tmp_path, feeds, Batching(10, 0.0)).plan(1, ends) == {"a": 4, "b": 0}


def test_a_note_of_a_version_with_more_streams_is_gone_by_or_refused(tmp_path: Path) -> None:
    note(LocalStore(tmp_path), PlannedBatch(0, {"a": 0, "b": 0}, {"a": 3, "b": 0}))
    note(LocalStore(tmp_path), PlannedBatch(1, {"a": 3, "b": 0}, {"a": 3, "b": 2}))
    older = planner(tmp_path, {"a": Feed(9)}, Batching(10, 0.0))
    assert older.plan(0, {"a": 0}) == {"a": 3}
    with pytest.raises(PlannedError, match="with messages of b, which this version"):
        older.plan(1, {"a": 3})


def test_a_driver_that_has_found_less_goes_by_the_full_batch_of_its_successor(
    tmp_path: Path,
) -> None:
    class Slow(Planner):
        """Stands still before it makes its note."""

        def note(self, planned: PlannedBatch) -> PlannedBatch:
            assert planned.ends == {"a": 2}
            assert successor.plan(0, {"a": 0}) == {"a": 10}
            return super().note(planned)

    store, live = LocalStore(tmp_path), Batching(10, 0.0)
    successor = planner(tmp_path, {"a": Feed(25)}, live)
    assert Slow({"a": Feed(2)}, store, live, 0.0).plan(0, {"a": 0}) == {"a": 10}
    assert [dict(batch.ends) for batch in all_noted(store)] == [{"a": 10}]


def test_batches_that_number_alone_closes_need_no_note(tmp_path: Path) -> None:
    by_number = planner(tmp_path, {"a": Feed(25, True)}, Batching(10, BY_NUMBER))
    assert [by_number.plan(n, {"a": 10 * n}) for n in range(3)] == [{"a": 10}, {"a": 20}, {"a": 25}]
    assert not all_noted(LocalStore(tmp_path))


@given(
    arrivals=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=12),
    most=st.integers(1, 5),
)
def test_batches_by_time_take_every_message_once(
    tmp_path_factory: pytest.TempPathFactory, arrivals: list[tuple[int, int]], most: int
) -> None:
    feeds = {"a": Feed(), "b": Feed()}
    folder = tmp_path_factory.mktemp("state")
    ends, batch = {"a": 0, "b": 0}, 0
    arrivals = [*arrivals, (0, 0)]
    for number, (a, b) in enumerate(arrivals):
        feeds["a"].end += a
        feeds["b"].end += b
        feeds["a"].ended = feeds["b"].ended = number == len(arrivals) - 1
        driver = planner(folder, feeds, Batching(most, 0.0))  # each time another start
        while (found := driver.plan(batch, ends)) is not None:
            assert all(0 <= found[s] - ends[s] <= most for s in feeds)
            assert found != ends
            ends, batch = found, batch + 1
    assert ends == {s: feed.end for s, feed in feeds.items()}
    notes = all_noted(LocalStore(folder))
    assert all(n.starts != n.ends for n in notes)


def test_notes_of_batches_that_are_not_done_again_go(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for batch in range(5):
        note(store, PlannedBatch(batch, {"a": batch}, {"a": batch + 1}))
    remove_before(store, 3)
    assert [n.batch for n in all_noted(store)] == [3, 4]


def test_a_damaged_note_is_reported(tmp_path: Path) -> None:
    note(LocalStore(tmp_path), PlannedBatch(0, {"a": 0}, {"a": 1}))
    (path,) = (tmp_path / "planned").iterdir()
    path.write_bytes(path.read_bytes().replace(b'"a":1', b'"a":2'))
    with pytest.raises(PlannedError, match="its checksum is wrong"):
        planner(tmp_path, {"a": Feed(5)}, Batching()).plan(0, {"a": 0})


def test_waits_are_written_with_their_unit() -> None:
    assert [parse_wait(t) for t in ("50ms", "2s", "1.5s", "1m")] == [0.05, 2.0, 1.5, 60.0]
    assert parse_wait("never") == BY_NUMBER
    for wrong in ("50", "-1s", "soon", ""):
        with pytest.raises(UsageError, match="write 50ms, 2s, 1m or never"):
            parse_wait(wrong)


def test_what_a_run_to_its_end_takes_is_noted_for_the_next_finds_more(tmp_path: Path) -> None:
    feeds = {"a": Feed(3, True)}
    feeds["a"].until = 3  # type: ignore[attr-defined]
    assert planner(tmp_path, feeds, Batching(10, BY_NUMBER)).plan(0, {"a": 0}) == {"a": 3}
    more = planner(tmp_path, {"a": Feed(7, True)}, Batching(10, BY_NUMBER))
    assert more.plan(0, {"a": 0}) == {"a": 3}
    assert more.plan(1, {"a": 3}) == {"a": 7}
