"""What garbage collection may look at in a worker."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bettong.engine.batch.garbage import spare_what_is_loaded


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


SPARED = """
import gc
from bettong.engine.batch.garbage import spare_what_is_loaded, without_collection

spare_what_is_loaded()
spared = gc.get_freeze_count()
with without_collection():
    assert not gc.isenabled()
assert gc.isenabled()
assert gc.get_freeze_count() == spared > 1_000
"""


def test_what_is_spared_stays_so_after_batches() -> None:
    """In a process in which no other thread lets go of what is spared."""
    subprocess.run([sys.executable, "-c", SPARED], check=True)


def test_objects_made_since_are_collected_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    spare_what_is_loaded()
    monkeypatch.setitem(sys.modules, "made_for_this_test", gc)
    spare_what_is_loaded()
    spared = gc.get_freeze_count()
    loop: list[object] = []
    loop.append(loop)
    spare_what_is_loaded()
    assert gc.get_freeze_count() == spared
    del loop
    assert gc.collect() >= 1
