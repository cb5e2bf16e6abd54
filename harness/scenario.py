"""What is run: an application, its input, and which classes make up the system around it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Literal

from bettong.engine import Application
from bettong.harness.schedule import Schedule
from bettong.lineage.errors import UsageError

Component = Literal["gateway", "receiver", "protocol"]


@dataclass(frozen=True)
class Resource:
    """A file that ships in a package."""

    package: str
    name: str

    @property
    def path(self) -> str:
        """Where it is in the file system."""
        return str(resources.files(self.package).joinpath(self.name))

    def read_bytes(self) -> bytes:
        """The file's content."""
        return resources.files(self.package).joinpath(self.name).read_bytes()


@dataclass(frozen=True)
class Scenario:
    """A pipeline with its input, to be run under faults.

    Attributes:
        application: ``module:attribute`` of the application.
        stream: its source, and the name of the stream that is sent.
        input: the messages, one for each line.
        batch: messages in a micro-batch; the last one may have fewer.
        frame: messages that the sender puts into a frame.
        partitions: state partitions.
        classes: classes ``module:Class`` that replace the right ones, by component.
        expect: whether the system is right.
        schedule: the faults that show what is wrong with a broken one.
        advice: what to repair in a broken one.
    """

    name: str
    title: str
    application: str
    input: Callable[[], bytes]
    stream: str = "lines"
    batch: int = 8
    frame: int = 4
    partitions: int = 2
    classes: Mapping[Component, str] = field(default_factory=dict)
    expect: Literal["valid", "invalid"] = "valid"
    schedule: Resource | None = None
    advice: str = ""

    def load_application(self) -> Application:
        """The application itself; raises UsageError."""
        module, _, name = self.application.partition(":")
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as e:
            raise UsageError(f"scenario {self.name}: cannot load {self.application}: {e}") from e
        if not isinstance(found, Application):
            raise UsageError(f"scenario {self.name}: {self.application} is not an application")
        return found

    def messages(self, file: Path | None = None) -> Sequence[bytes]:
        """The input's messages, or those of a file instead; raises UsageError."""
        try:
            data = self.input() if file is None else file.read_bytes()
        except OSError as e:
            raise UsageError(f"cannot read the input {file or self.name}: {e}") from e
        messages = data.removesuffix(b"\n").split(b"\n") if data else []
        if not messages:
            raise UsageError(f"the input {file or self.name} is empty: there is nothing to test")
        return messages

    def shown_by(self) -> Schedule:
        """The schedule that shows what is wrong; empty when none ships."""
        if self.schedule is None:
            return Schedule()
        return Schedule.parse(self.schedule.read_bytes().decode())
