"""An untouched script as a job under test: what it is given and fed, who reads its output."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bettong.harness.queries.job.contract import Job
from bettong.harness.queries.job.inputs import StepInput
from bettong.harness.queries.job.plan import shown_by
from bettong.harness.queries.raised import cause
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.script import Script
from bettong.harness.queries.sense import VacuousError
from bettong.harness.queries.sink.loading import load_object
from bettong.harness.servers import (
    KafkaServer,
    MariaDBServer,
    NatsServer,
    PostgresServer,
    RabbitMQServer,
    RedisServer,
)
from bettong.harness.servers.server import Server
from bettong.lineage.errors import UsageError
from bettong.lineage.files import read_text

_SERVERS: Mapping[str, Callable[[], Server]] = {
    server.name: server
    for server in (
        KafkaServer,
        MariaDBServer,
        NatsServer,
        PostgresServer,
        RabbitMQServer,
        RedisServer,
    )
}
_CLASSES = "ClassNotFoundException: bettong.hooks"
_LINE_END = re.compile(r"\r\n?|\n")
_HOOKS = {
    "/offsets": "spark.sql.streaming.checkpointFileManagerClass",
    "/task": "spark.plugins",
    # Not "idle", which a query that ends by itself (availableNow) never is.
    "query.started": "spark.sql.streaming.streamingQueryListeners",
}


class Lines(StepInput):
    """The lines of a file, fed as they are: to a topic, or as files of a folder.

    Attributes:
        topic: its name, or empty.
        folder: below the run's own folder, or empty.
    """

    kind = "lines"

    def __init__(self, path: Path, steps: int, topic: str = "", folder: str = "") -> None:
        self.topic, self.folder = topic, folder
        self.suffix = path.suffix or ".txt"
        lines = _LINE_END.split(read_text(path, "the input"))
        self.header = [lines.pop(0)] if self.suffix == ".csv" and folder and lines else []
        self.lines = [line for line in lines if line.strip()]
        if not self.lines:
            raise UsageError(f"--input {path}: it has no lines: that proves nothing")
        self._each = -(-len(self.lines) // min(steps, len(self.lines)))

    @property
    def on_topic(self) -> bool:
        """Whether its lines are records of a topic."""
        return bool(self.topic)

    @property
    def steps(self) -> list[list[Any]]:
        """The lines of each step."""
        return [self.lines[at : at + self._each] for at in range(0, len(self.lines), self._each)]

    @property
    def closing(self) -> None:
        """The user's last line closes what is open."""
        return None


class ScriptJob(Job):
    """A script as a job: its output is held against the envelope of clean runs."""

    def __init__(self, script: Script, servers: Mapping[str, Callable[[], Server]]) -> None:
        self.script = script
        self.name = Path(script.path).name
        self.inputs = {text: _input(text, script.steps) for text in script.inputs}
        self.servers = servers

    def read(self, env: Any) -> Any:
        """What the reader returns."""
        return load_reader(self.script.reader)(env)


def load_script(request: Request) -> ScriptJob:
    """The script of a request as a job; raises UsageError, saying what to do."""
    script = request.script
    assert script is not None
    if not Path(script.path).is_file():
        raise UsageError(f"--script {script.path}: there is no such file")
    if not script.inputs:
        raise UsageError("--script needs --input FILE@topic:NAME or FILE@dir:PATH")
    if not script.reader:
        raise UsageError("--script needs --read FILE.py:FUNCTION, which returns the output's rows")
    load_reader(script.reader)
    _expect_places(script)
    needed = [name for name in script.endpoints if name not in request.endpoints]
    for name in needed:
        if name not in _SERVERS:
            raise UsageError(
                f"proxy:{name} has no address: give --endpoint {name}=HOST:PORT, or name a server "
                f"that can be started, one of {', '.join(_SERVERS)}"
            )
    return ScriptJob(script, {name: _SERVERS[name] for name in needed})


def _expect_places(script: Script) -> None:
    """Raises UsageError for two inputs that go to the same place: files would replace each other,
    and steps of a topic could not be told apart."""
    places = set()
    for text in script.inputs:
        given = _input(text, script.steps)
        place = f"topic:{given.topic}" if given.topic else f"dir:{Path(given.folder)}"
        if place in places:
            raise UsageError(
                f"--input {text}: another one goes to {place} too: put the lines into one file"
            )
        places.add(place)


def load_reader(target: str) -> Any:
    """The function that reads the output back; raises UsageError."""
    where, colon, name = target.rpartition(":")
    if not colon or not where or not name:
        raise UsageError(f"--read {target!r}: write FILE.py:function, which returns rows")
    found = load_object(where, name, False)
    if not callable(found):
        raise UsageError(f"--read {target}: is no function")
    return found


def expect_hooks(name: str, run: QueryRun) -> None:
    """Raises VacuousError when a hook did not report: no fault could be placed, and none that is
    not seen to fire counts."""
    silent = [
        setting
        for end, setting in _HOOKS.items()
        if not any(event.step.endswith(end) for event in run.events)
    ]
    if not silent:
        return
    why = f" ({cause(run.errors[-1])})" if run.errors else ""
    if _CLASSES in why:
        raise VacuousError(
            f"{name}: Bettong's classes are not found{why}: its own code, PYSPARK_SUBMIT_ARGS or "
            "its configuration must not set spark.driver.extraClassPath (--driver-class-path): use "
            "spark.jars (--jars)"
        )
    if len(silent) == len(_HOOKS):
        if why:
            raise VacuousError(
                f"{name}: it ended before a streaming query of it was seen{why}: mend that first; "
                "its command line comes from --args, its environment variables from --set, and it "
                f"runs in {Path.cwd()}"
            )
        raise VacuousError(
            f"{name}: it ended, and no streaming query of it was seen: have it start one and wait "
            f"for it; its own code, PYSPARK_SUBMIT_ARGS or its configuration must not set "
            f"{silent[0]}, nor name another --properties-file than the one in SPARK_CONF_DIR"
        )
    if silent == [_HOOKS["/task"]] and not (why or run.drained):
        raise VacuousError(
            f"{name}: it ended while its streaming query had just begun: have it wait for what it "
            "starts: query.awaitTermination()"
        )
    raise VacuousError(
        f"{name}: the hook of {silent[0]} did not report, faults are not injected{why}: the "
        "script's own code, PYSPARK_SUBMIT_ARGS or its configuration must not set it"
    )


def facts_of(run: QueryRun) -> list[dict[str, Any]]:
    """What the plan and the progress of a script's query show of it."""
    return [
        {
            **shown_by(event.detail.get("plan", "")),
            "rows": event.detail["rows"],
            "dropped": event.detail["dropped"],
            "stateful": ["state"] if event.detail["operators"] else [],
        }
        for event in run.events
        if event.step == "query.progress" and event.phase == "before"
    ]


def _input(text: str, steps: int) -> Lines:
    file, at, place = text.rpartition("@")
    kind, colon, name = place.partition(":")
    if not (file and at and colon and name) or kind not in ("topic", "dir"):
        raise UsageError(f"--input {text!r}: write FILE@topic:NAME or FILE@dir:PATH")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"--input {text}: there is no file {file}")
    if kind == "topic":
        return Lines(path, steps, topic=name)
    folder = name.replace("{work}/", "")
    if Path(folder).is_absolute() or ".." in Path(folder).parts:
        raise UsageError(
            f"--input {text}: the folder is below {{work}}, an empty one of each run: write "
            f"FILE@dir:{Path(folder).name} and --set NAME={{work}}/{Path(folder).name}"
        )
    return Lines(path, steps, folder=folder)
