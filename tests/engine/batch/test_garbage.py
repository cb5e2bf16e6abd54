"""What garbage collection may look at in a worker."""

from __future__ import annotations

import subprocess
import sys

import pytest

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

COLLECTED = """
import gc
import sys
from bettong.engine.batch.garbage import freeze_what_is_loaded

freeze_what_is_loaded()
sys.modules["loaded_since"] = gc
freeze_what_is_loaded()
frozen = gc.get_freeze_count()
loop = []
loop.append(loop)
freeze_what_is_loaded()
assert gc.get_freeze_count() == frozen
del loop
assert gc.collect() >= 1
"""


@pytest.mark.parametrize("program", [SPARED, COLLECTED], ids=["spared", "collected"])
def test_only_what_is_loaded_is_kept_from_collection(program: str) -> None:
    """In a process in which no other thread lets go of what is frozen."""
    subprocess.run([sys.executable, "-c", program], check=True)
