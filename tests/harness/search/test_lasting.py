"""What lasts is not looked through again, and what is garbage is found all the same."""

from __future__ import annotations

import gc
import sys
import weakref

from bettong.harness.search.lasting import lasting


class Loop:
    def __init__(self) -> None:
        self.own = self


def test_what_is_learned_is_looked_through_no_more_until_the_end() -> None:
    kept = []
    frozen = gc.get_freeze_count()
    with lasting() as learned:
        for _ in range(100):
            kept.append(Loop())
            learned()
        assert gc.get_freeze_count() > frozen
        assert not any(o is kept[0] for o in gc.get_objects())
    assert any(o is kept[0] for o in gc.get_objects())


def test_garbage_that_is_there_when_the_rest_is_set_aside_goes() -> None:
    with lasting() as learned:
        lost = weakref.ref(Loop())
        for _ in range(100):
            learned()
        assert lost() is None


def test_threads_that_answer_get_their_turn_sooner_until_the_end() -> None:
    before = sys.getswitchinterval()
    with lasting():
        assert sys.getswitchinterval() < before / 2
    assert sys.getswitchinterval() == before
