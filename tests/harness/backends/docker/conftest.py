"""One engine for all tests here."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from docker_engine import running_engine


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """The address of a container engine, which ``DOCKER_HOST`` names meanwhile."""
    before = os.environ.get("DOCKER_HOST")
    with running_engine() as address:
        os.environ["DOCKER_HOST"] = address
        yield address
    if before is None:
        del os.environ["DOCKER_HOST"]
    else:
        os.environ["DOCKER_HOST"] = before
