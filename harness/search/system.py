"""What a search is asked of: a scenario as it is defined, and the code that its runs are made of.

A search that was interrupted goes on only with the same. What another engine or application has
survived says nothing of this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import fields
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

import bettong.engine
from bettong.harness.scenario import Scenario
from bettong.lineage.errors import UsageError
from bettong.lineage.user_code import files_in_use

_NO_PART = frozenset({"input", "title", "expect", "schedule", "advice"})
"""The input is in the question itself; the others change no run."""


def system_of(scenario: Scenario) -> str:
    """Another digest where the scenario, the engine or code of the user's is another one.

    Raises UsageError when the application cannot be loaded.
    """
    scenario.load_application()  # so that what it imports is known
    return digest_of({*_engine(), *_named(scenario), *files_in_use()}, _defined(scenario))


def code_of(scenario: Scenario) -> str:
    """Another digest where the engine or a module that the scenario names is another one; raises
    UsageError when such a module cannot be found."""
    return digest_of({*_engine(), *_named(scenario)})


def shared_of(scenario: Scenario, asked: str) -> str:
    """Another digest where several machines are asked something else, or of another scenario or
    other code: wherever each of them keeps its files."""
    return digest_of({*_engine(), *_named(scenario)}, _defined(scenario) + asked)


def _defined(scenario: Scenario) -> str:
    return "".join(
        f"{field.name} {getattr(scenario, field.name)!r}\n"
        for field in fields(scenario)
        if field.name not in _NO_PART
    )


def digest_of(files: Set[Path], about: str = "") -> str:
    """Another digest where a file holds something else, or where ``about`` says it."""
    digest = blake2b(about.encode(), digest_size=16)
    for file in sorted(files):
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _engine() -> Iterator[Path]:
    yield from Path(str(bettong.engine.__file__)).parent.rglob("*.py")


def _named(scenario: Scenario) -> Iterator[Path]:
    """The modules that the scenario names, with those beside them, which they may import when
    they run."""
    for named in (scenario.application, *scenario.earlier, *scenario.classes.values()):
        module = named.partition(":")[0]
        try:
            spec = find_spec(module)
        except (ImportError, ValueError) as e:
            raise UsageError(f"scenario {scenario.name}: cannot find {module}: {e}") from e
        if spec is not None and spec.origin is not None and Path(spec.origin).is_file():
            yield from (f for f in Path(spec.origin).parent.glob("*.py") if f.is_file())
