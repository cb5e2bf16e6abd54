"""The fence's file: what its owner reads and writes there."""

from __future__ import annotations

import struct
from pathlib import Path

from bettong.harness.spark.fence import Fence


def test_a_new_fence_is_open_and_nobody_is_amid_anything(tmp_path: Path) -> None:
    fence = Fence(tmp_path)
    assert (fence.is_closed, fence.operations) == (False, 0)


def test_closing_leaves_alone_what_the_jvm_counts(tmp_path: Path) -> None:
    fence = Fence(tmp_path)
    with fence.path.open("r+b") as jvm:
        jvm.seek(4)
        jvm.write(struct.pack(">i", 3))
    fence.close()
    assert (fence.is_closed, fence.operations) == (True, 3)


def test_the_jvm_opens_it_in_the_file_that_it_has_mapped(tmp_path: Path) -> None:
    fence = Fence(tmp_path)
    with fence.path.open("r+b") as jvm:
        fence.close()
        jvm.write(bytes(4))
    assert not fence.is_closed
