"""One engine for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from docker_engine import running_engine


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """The address of a container engine."""
    with running_engine() as address:
        yield address


@pytest.fixture(scope="module", autouse=True)
def docker_host(engine: str) -> Iterator[None]:
    """``DOCKER_HOST`` names it to the tests here alone: others may run in the same process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", engine)
        yield
