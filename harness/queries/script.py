"""An untouched script: how it is run, what it is given, what it is fed, who reads its output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PYTHON, SUBMIT = STARTERS = ("python", "spark-submit")
_PROXY = re.compile(r"proxy:([\w-]+)")
_STEPS = 4
KAFKA = "kafka"


@dataclass(frozen=True)
class Script:
    """A script and how it is run.

    Attributes:
        path: of the script.
        variables: environment variables; in their values ``{work}`` is an empty folder of each
            run, and ``proxy:NAME`` the address of an endpoint.
        inputs: each ``FILE@topic:NAME`` or ``FILE@dir:PATH``.
        reader: ``FILE.py:function`` that is called with an environment and returns rows.
        starter: what starts the script: ``python``, or ``spark-submit`` with its options.
        arguments: the words that follow it on its command line, filled in as variables are.
        steps: in so many steps the lines of each input are fed.
    """

    path: str
    variables: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    reader: str = ""
    starter: str = PYTHON
    steps: int = _STEPS
    arguments: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """How requests and results name it."""
        return f"script:{self.path}"

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Names of the endpoints that it talks to."""
        values = (*self.variables.values(), *self.arguments, self.starter)
        found = [name for value in values for name in _PROXY.findall(value)]
        fed = [KAFKA for text in self.inputs if "@topic:" in text]
        return tuple(dict.fromkeys([*found, *fed]))

    @property
    def is_submitted(self) -> bool:
        """Whether spark-submit starts it."""
        return self.starter.partition(" ")[0] == SUBMIT

    @property
    def files(self) -> list[Path]:
        """Those whose lines it is fed."""
        return [Path(text.rpartition("@")[0]) for text in self.inputs]

    def environment(
        self, work: Path, addresses: Mapping[str, tuple[str, int]]
    ) -> Mapping[str, str]:
        """Its variables in a run."""
        return {name: _filled(text, work, addresses) for name, text in self.variables.items()}

    def options(self, work: Path, addresses: Mapping[str, tuple[str, int]]) -> str:
        """The options of what starts it, in a run."""
        return _filled(self.starter.partition(" ")[2], work, addresses)

    def words(self, work: Path, addresses: Mapping[str, tuple[str, int]]) -> list[str]:
        """Its command line in a run, after what starts it."""
        return [self.path, *(_filled(text, work, addresses) for text in self.arguments)]


def _filled(text: str, work: Path, addresses: Mapping[str, tuple[str, int]]) -> str:
    def address(found: re.Match[str]) -> str:
        host, port = addresses[found[1]]
        return f"{host}:{port}"

    return _PROXY.sub(address, text.replace("{work}", str(work)))
