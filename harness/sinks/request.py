"""What is asked about a sink."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bettong.harness.sinks.secrets import masked
from bettong.lineage.results import Guarantee

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """One question.

    Attributes:
        target: ``file.py:Object``, ``module:Object`` or ``format:NAME``.
        options: for ``format:NAME``.
        endpoints: overriding or adding to the sink's own.
        expect: the level asked for.
        faults: how many faults may strike together.
        window: faults strike in the first so many batches.
        seconds: budget of the search.
        only: ids of faults: run this one set and nothing else.
        real: every crash is SIGKILL.
        also: further questions: ``new-checkpoint``.
        out: where traces are kept, if anywhere.
    """

    target: str
    options: Mapping[str, str] = field(default_factory=dict)
    endpoints: Mapping[str, str] = field(default_factory=dict)
    expect: Guarantee = "effectively-once"
    faults: int = 2
    window: int = 2
    seconds: float = 300.0
    only: tuple[str, ...] = ()
    real: bool = False
    also: tuple[str, ...] = ()
    out: Path | None = None

    def replay(self, faults: Sequence[str]) -> str:
        """The command that runs just these faults, secrets masked."""
        words = ["bettong", "check-sink", self.target]
        for option, pairs in (("--option", self.options), ("--endpoint", self.endpoints)):
            for name, value in pairs.items():
                words += [option, masked(f"{name}={value}")]
        for id in faults:
            words += ["--only", id]
        return shlex.join(words)
