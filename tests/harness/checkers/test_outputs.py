from __future__ import annotations

from hypothesis import given

from bettong.harness.checkers import Record, check_outputs, output_anomalies
from bettong.harness.strategies.data import PlantedHistory, keyed_streams, planted_histories


def records(text: str, key: str | None = "k") -> list[Record]:
    return [Record(name, key, 0) for name in text.split()]


def found(
    expected: str, observed: str, **options: str
) -> list[tuple[str, tuple[str, ...], str | None]]:
    return [
        (a.kind, a.messages, a.note)
        for a in output_anomalies(records(expected), records(observed), **options)  # type: ignore[arg-type]
    ]


@given(planted_histories())
def test_planted_anomalies_and_nothing_else_are_found(history: PlantedHistory) -> None:
    anomalies = output_anomalies(history.expected, history.observed)
    assert tuple(sorted((a.kind, a.messages) for a in anomalies)) == history.planted


@given(planted_histories())
def test_verdict_is_valid_exactly_without_anomalies(history: PlantedHistory) -> None:
    judgement = check_outputs(history.expected, history.observed)
    assert (judgement.verdict == "valid") == (not history.planted)


@given(planted_histories())
def test_each_witness_can_be_checked_by_hand(history: PlantedHistory) -> None:
    wanted = {r.id: r for r in history.expected}
    order = [r.id for r in history.expected]
    seen = [r.id for r in history.observed]
    for a in output_anomalies(history.expected, history.observed):
        match a.kind:
            case "Loss":
                assert a.messages[0] not in seen
            case "Duplicate":
                assert [i for i, x in enumerate(seen) if x == a.messages[0]][:10] == a.seen[
                    "places"
                ]
            case "Phantom":
                assert a.messages[0] not in wanted
            case "Corrupt":
                assert a.seen != a.expected == wanted[a.messages[0]].value
            case "Reorder":
                first, second = a.messages
                assert wanted[first].key == wanted[second].key
                assert order.index(first) < order.index(second)
                assert seen.index(first) > seen.index(second)


@given(keyed_streams(min_size=1))
def test_a_whole_stream_delivered_again_is_duplicates_and_no_reorder(
    stream: tuple[Record, ...],
) -> None:
    judgement = check_outputs(stream, stream + stream)
    assert judgement.guarantee == "at-least-once"
    assert judgement.counts == {"Duplicate": len(stream)}
    assert judgement.ordering == "per-key"


def test_classes_of_loss() -> None:
    assert found("a b c d", "c d") == [
        ("Loss", ("a",), "prefix lost"),
        ("Loss", ("b",), "prefix lost"),
    ]
    assert found("a b c d", "a d")[0][2] == "middle lost"
    assert found("a b c d", "a b c") == [("Loss", ("d",), "tail lost")]
    assert found("a b", "") == [
        ("Loss", ("a",), "everything lost"),
        ("Loss", ("b",), "everything lost"),
    ]


def test_losses_of_one_key_among_others() -> None:
    def note(lost: str) -> str | None:
        expected = [Record(n, n[0]) for n in ["a1", "b1", "c1", "b2", "a2"]]
        anomalies = output_anomalies(expected, [r for r in expected if r.id not in lost.split()])
        return anomalies[0].note

    assert note("b1") == "prefix of its key lost"
    assert note("b2") == "tail of its key lost"
    assert note("c1") == "whole key lost"
    assert note("a1") == "prefix lost"


def test_classes_of_duplicates() -> None:
    assert found("a b", "a a b") == [("Duplicate", ("a",), "adjacent")]
    assert found("a b", "a b a") == [("Duplicate", ("a",), "distant")]
    expected = [Record("a", "k"), Record("b", "k")]
    observed = [Record("a", "k", None, 1), Record("b", "k", None, 1), Record("a", "k", None, 2)]
    assert output_anomalies(expected, observed)[0].note == "distant, across batches 1, 2"


def test_reorder_within_and_across_batches() -> None:
    expected = records("a b c")
    observed = [Record("b", "k", 0, 1), Record("a", "k", 0, 1), Record("c", "k", 0, 2)]
    assert output_anomalies(expected, observed)[0].note == "at places 0 and 1, within batch 1"
    observed = [Record("a", "k", 0, 1), Record("c", "k", 0, 1), Record("b", "k", 0, 2)]
    assert output_anomalies(expected, observed)[0].note == "at places 1 and 2, across batches 1, 2"


def test_order_options() -> None:
    expected = [Record("a", "x"), Record("b", "y")]
    observed = expected[::-1]
    assert check_outputs(expected, observed).verdict == "valid"
    assert check_outputs(expected, observed, order="total").verdict == "invalid"
    swapped = check_outputs(records("a b"), records("b a"), order="none")
    assert (swapped.verdict, swapped.ordering) == ("valid", "none")
    without_keys = check_outputs(records("a b", None), records("b a", None))
    assert (without_keys.verdict, without_keys.ordering) == ("valid", "none")


def test_an_occurrence_with_other_content_is_corrupt_also_as_a_duplicate() -> None:
    expected = [Record("a", "k", 1)]
    kinds = [a.kind for a in output_anomalies(expected, [Record("a", "k", 1), Record("a", "k", 2)])]
    assert kinds == ["Duplicate", "Corrupt"]
    wrong_key = output_anomalies(expected, [Record("a", "other", 1)])
    assert wrong_key[0].note == "the key differs, at place 0"
    nan = [Record("a", "k", float("nan"))]
    assert check_outputs(nan, nan).verdict == "valid"


def test_malformed_histories_are_unknown_and_name_the_record() -> None:
    twice = check_outputs(records("a b a"), records("a b"))
    assert twice.verdict == "unknown"
    assert "record 3 has the id a, as record 1" in twice.reason
    without = check_outputs(records("a"), [Record("a"), Record(None, "k", "payload")])
    assert without.verdict == "unknown"
    assert "observed record 2 has no id" in without.reason
    assert "payload" in without.reason
    assert check_outputs([], []).verdict == "unknown"
    assert check_outputs([], records("a")).verdict == "invalid"


def test_at_least_once_accepts_duplicates_but_not_losses() -> None:
    assert (
        check_outputs(records("a b"), records("a a b"), expect="at-least-once").verdict == "valid"
    )
    assert check_outputs(records("a b"), records("a"), expect="at-least-once").verdict == "invalid"
    assert check_outputs(records("a b"), records("a"), expect="at-most-once").verdict == "valid"
