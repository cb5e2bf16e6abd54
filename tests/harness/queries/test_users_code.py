"""Whose code a frame is."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from bettong.harness.queries.sink.users_code import is_users


def frame_of(module: str, file: str) -> FrameType:
    """A frame of a module that has this name, in this file."""
    known: dict[str, Any] = {"__name__": module, "here": sys._getframe}
    exec(compile("found = here()", file, "exec"), known)
    found = known["found"]
    assert isinstance(found, FrameType)
    return found


@pytest.mark.parametrize(
    ("module", "users"),
    [
        ("mysink", True),
        ("bettong.scenarios.sinks.files", True),
        ("bettong.harness.queries.sink.probes", False),
        ("bettong.lineage.trace", False),
        ("bettong.engine.steps", False),
        ("pyspark.sql.dataframe", False),
    ],
)
def test_what_is_installed_beside_a_sink_is_not_its_own_code(module: str, users: bool) -> None:
    """Where it is installed into the sink's folder, the path says nothing."""
    file = f"/home/me/lib/{module.replace('.', '/')}.py"
    assert is_users(frame_of(module, file)) is users
