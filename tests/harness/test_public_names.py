"""Every name that a room's ``__init__`` promises is there."""

from __future__ import annotations

import importlib

import pytest

import bettong.harness


@pytest.mark.parametrize("name", bettong.harness.__all__)
def test_the_harness_gives_each_of_its_public_names(name: str) -> None:
    assert getattr(importlib.import_module("bettong.harness"), name).__name__ == name
