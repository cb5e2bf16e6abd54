"""What is run: an application, its input, and which classes make up the system around it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from bettong.engine import Application
from bettong.harness.faults.schedule import Schedule
from bettong.lineage.errors import UsageError, reason_of
from bettong.lineage.files import read_bytes

Component = Literal["gateway", "receiver", "protocol", "sink"]
Messages = Mapping[str, Sequence[bytes]]
"""The messages of each stream."""

Inputs = Literal["gateway", "folder", "kafka"]
"""Where messages come from: senders by way of the gateway; or, all of them there before the run
begins, files of a folder for each stream, or a topic of one partition."""

Outputs = Literal["receiver", "files", "arrow", "kafka"]
"""Where outputs go: to the two-phase receiver, to text or Arrow files that the driver and workers
write, or to a topic for each sink."""


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
        earlier: those of earlier versions of it, each of which is run until its streams have ended
            before the next one is started; who is started again after a crash is the next one. For
            given schedules: in a search, an old version that starts late beside a newer one ends
            with an error that nothing excuses.
        input: gives the messages: lines of text, all of ``stream``, or those of each stream.
        stream: the stream that is sent when the input is text.
        batch: messages of each stream in a micro-batch; the last one may have fewer.
        moments: of a live scenario, whose batches close by time too: how far each stream has come
            when the wait of the n-th batch ends, as the conductor tells a driver that asks; a
            driver that asks again is told the next. Later waits do not end: batches close by
            number. Without any all batches do.
        frame: messages that the sender puts into a frame, or that are in each file of a folder.
        window: frames that the sender may send before the first of them is acknowledged.
        partitions: state partitions.
        inputs, outputs: where messages come from, and where outputs go.
        classes: classes ``module:Class`` that replace the right ones, by component.
        options: further arguments of the gateway and the receiver.
        rows: what the outputs of this input are, by their ids, found by other means than the
            functions of the engine, which interpreter and runner have in common: a text, or, of
            bytes that are none, ``{"base64": TEXT}``. Without any the interpreter alone says it.
        judges_state: whether the state that a run leaves is compared with the interpreter's too.
            Not where it rightly is another one although the outputs are the same, such as that of
            code that changes on the way.
        versions: of the state that a run is to keep at most, where that is judged.
        batches: a search has its faults in the first so many, unless its bounds say otherwise.
        expect: whether the system is right.
        schedule: the faults that show what is wrong with a broken one.
        advice: what to repair in a broken one.
    """

    name: str
    title: str
    application: str
    input: Callable[[], bytes | Messages]
    stream: str = "lines"
    batch: int = 8
    moments: Sequence[Mapping[str, int]] = ()
    frame: int = 4
    window: int = 1
    partitions: int = 2
    inputs: Inputs = "gateway"
    outputs: Outputs = "receiver"
    classes: Mapping[Component, str] = field(default_factory=dict)
    options: Mapping[Component, Sequence[str]] = field(default_factory=dict)
    rows: Mapping[str, Any] = field(default_factory=dict)
    judges_state: bool = True
    versions: int | None = None
    batches: int = 2
    expect: Literal["valid", "invalid"] = "valid"
    schedule: Resource | None = None
    advice: str = ""
    earlier: Sequence[str] = ()

    def __post_init__(self) -> None:
        for component in ("gateway", "receiver"):
            if component in self.classes and component not in self.servers:
                raise UsageError(
                    f"scenario {self.name}: its {component} {self.classes[component]} would never "
                    f"run: inputs come from {self.inputs}, and outputs go to {self.outputs}"
                )

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

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers that the driver and its workers talk to."""
        needed = {self.inputs, self.outputs}
        return tuple(s for s in ("gateway", "receiver", "kafka") if s in needed)

    @property
    def senders(self) -> Mapping[str, str]:
        """The node that sends each stream of the application, in its order."""
        if self.inputs != "gateway":
            return {}
        streams = [source.name for source in self.load_application().sources]
        return {s: "sender" if len(streams) == 1 else f"sender-{s}" for s in streams}

    def messages(self, path: Path | None = None) -> Messages:
        """The input's messages, or those of a file instead, or, of several streams, those of the
        files of their names in a folder; raises UsageError."""
        try:
            found = self._read(path)
        except OSError as e:
            where = path or self.name
            raise UsageError(f"cannot read the input {where}: {reason_of(e)}") from e
        if not any(found.values()):
            raise UsageError(f"the input {path or self.name} is empty: there is nothing to test")
        sources = {source.name for source in self.load_application().sources}
        if sources != set(found):
            raise UsageError(
                f"scenario {self.name} gives messages of {sorted(found)}, and its application "
                f"reads {sorted(sources)}: name the source with stream=, or let input give a dict "
                "of all of them"
            )
        for stream, messages in found.items():
            if any(b"\n" in message for message in messages):
                raise UsageError(f"a message of {stream} has a line feed, at which files are cut")
        return found

    def _read(self, path: Path | None) -> Messages:
        own = self.input()
        if path is None:
            return {self.stream: _lines(own)} if isinstance(own, bytes) else own
        streams = [self.stream] if isinstance(own, bytes) else list(own)
        if len(streams) == 1:
            return {streams[0]: _lines(read_bytes(path, "the input"))}
        return {stream: _lines(read_bytes(path / stream, "the input")) for stream in streams}

    def shown_by(self) -> Schedule:
        """The schedule that shows what is wrong; empty when none ships."""
        if self.schedule is None:
            return Schedule()
        return Schedule.parse(self.schedule.read_bytes().decode())


def _lines(text: bytes) -> list[bytes]:
    return text.removesuffix(b"\n").split(b"\n") if text else []
