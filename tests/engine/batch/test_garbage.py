"""What garbage collection may look at in a worker."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bettong.engine.batch.garbage import freeze_what_is_loaded


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


SPARED = """
import gc
from bettong.engine.batch.garbage import freeze_what_is_loaded, without_collection

freeze_what_is_loaded()
frozen = gc.get_freeze_count()
with without_collection():
    assert not gc.isenabled()
assert gc.isenabled()
assert gc.get_freeze_count() == frozen > 1_000
"""


def test_what_is_frozen_stays_so_after_batches() -> None:
    """In a process in which no other thread lets go of what is frozen."""
    subprocess.run([sys.executable, "-c", SPARED], check=True)


def test_objects_made_since_are_collected_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    freeze_what_is_loaded()
    monkeypatch.setitem(sys.modules, "made_for_this_test", gc)
    freeze_what_is_loaded()
    frozen = gc.get_freeze_count()
    loop: list[object] = []
    loop.append(loop)
    freeze_what_is_loaded()
    assert gc.get_freeze_count() == frozen
    del loop
    assert gc.collect() >= 1
