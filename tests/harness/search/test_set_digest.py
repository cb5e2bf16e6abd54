"""The digest of a set that grows."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.search.set_digest import SetDigest

PARTS = st.lists(st.lists(st.text(max_size=3), max_size=5), max_size=5)


def digest_of(parts: Sequence[Sequence[str]]) -> tuple[str, list[str]]:
    digest, fresh = SetDigest(), []
    for part in parts:
        fresh += digest.take_in(part)
    return str(digest), fresh


@given(PARTS, st.data())
def test_it_depends_on_what_is_in_the_set_alone(
    parts: list[list[str]], data: st.DataObject
) -> None:
    texts = [text for part in parts for text in part]
    again = data.draw(st.permutations(texts))
    assert digest_of(parts)[0] == digest_of([again])[0] == digest_of([texts, again])[0]


@given(PARTS, PARTS)
def test_unequal_sets_have_unequal_digests(parts: list[list[str]], others: list[list[str]]) -> None:
    sets = [frozenset(text for part in each for text in part) for each in (parts, others)]
    assert (digest_of(parts)[0] == digest_of(others)[0]) == (sets[0] == sets[1])


@given(PARTS)
def test_what_is_new_is_told_once(parts: list[list[str]]) -> None:
    fresh = digest_of(parts)[1]
    assert fresh == list(dict.fromkeys(text for part in parts for text in part))
