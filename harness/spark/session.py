"""How a Spark session under test is configured and its JVM started: fast, quiet, on loopback."""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bettong.harness.processes.forked import LONGEST_SOCKET_PATH
from bettong.harness.spark import jar
from bettong.lineage.errors import UsageError, reason_of
from bettong.lineage.secrets import is_secret

# Settings that are lists: what two sides set is joined, ours first.
_JOINED = {
    "spark.jars": ",",
    "spark.jars.packages": ",",
    "spark.plugins": ",",
    "spark.sql.extensions": ",",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.executor.extraClassPath": os.pathsep,
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
}
# Options of spark-submit that are only another way to write a setting.
_OPTIONS = {
    "--master": "spark.master",
    "--jars": "spark.jars",
    "--packages": "spark.jars.packages",
    "--repositories": "spark.jars.repositories",
    "--py-files": "spark.submit.pyFiles",
    "--driver-class-path": "spark.driver.extraClassPath",
    "--driver-java-options": "spark.driver.extraJavaOptions",
    "--driver-memory": "spark.driver.memory",
    "--name": "spark.app.name",
}


def sockets_fit(folder: Path) -> bool:
    """Whether Spark's Unix sockets, such as ``.UUID.sock``, can be in a folder."""
    room = LONGEST_SOCKET_PATH - len("/.00000000-0000-0000-0000-000000000000.sock")
    return hasattr(socket, "AF_UNIX") and len(os.fsencode(folder)) <= room


@dataclass(frozen=True)
class SessionConfig:
    """What kind of session a driver host starts.

    Attributes:
        master: Spark's master URL. ``local[2]`` fails a query with its first failed task,
            ``local[2,4]`` tries each task up to four times, as a cluster does.
        spark_config: settings that win over ours, except that lists (jars, plugins, extensions,
            class paths, Java options) are joined with ours. ``PYSPARK_SUBMIT_ARGS`` of the
            environment is read in the same way and wins over these.
        short: for runs of seconds: compile with C1 only, share class data. Off for throughput.
        hooks: make Spark's own steps visible to the conductor.
    """

    master: str = "local[2]"
    spark_config: Mapping[str, str] = field(default_factory=dict)
    short: bool = True
    hooks: bool = True

    def settings(self, home: Path) -> dict[str, str]:
        """All Spark settings of a session that keeps its temporary files in ``home``."""
        submitted = submit_settings(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
        return merged(self._own(home), self.spark_config, submitted)

    def _own(self, home: Path) -> dict[str, str]:
        own = {
            "spark.app.name": "bettong",
            "spark.master": self.master,
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.local.dir": str(home),
            "spark.log.level": "WARN",
            "spark.python.unix.domain.socket.enabled": str(sockets_fit(home)).lower(),
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(home / "warehouse"),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        if self.hooks:
            path = str(jar.hooks().path)
            own |= {
                "spark.driver.extraClassPath": path,
                "spark.executor.extraClassPath": path,
                "spark.plugins": jar.PLUGIN,
                "spark.sql.streaming.checkpointFileManagerClass": jar.CHECKPOINT_FILE_MANAGER,
            }
            if self.master.startswith("local["):  # executors of their own may lack the jar
                own[jar.FILES_SETTING] = jar.FILES
        return own

    def java_command(self, settings: Mapping[str, str], archive: Path | None) -> list[str]:
        """The command that starts the driver's JVM for pyspark to join.

        The JVM is started directly, not by ``spark-submit``, which takes a second JVM to find
        out this command.
        """
        classpath = [settings.get("spark.driver.extraClassPath", ""), *jar.class_path()]
        options = [
            *jar.hooks().jvm_options,
            "-XX:-UsePerfData",
            f"-Xmx{settings.get('spark.driver.memory', '1g')}",
            f"-Djava.io.tmpdir={settings['spark.local.dir']}",
        ]
        if self.short:
            options += ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        if self.short and archive is not None:
            options += [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"]
        options += shlex.split(settings.get("spark.driver.extraJavaOptions", ""))
        submit = ["org.apache.spark.deploy.SparkSubmit"]
        secrets = {name: value for name, value in settings.items() if is_secret(name, value)}
        if secrets:  # every user of the machine can read a command line
            file = _write_properties(Path(settings["spark.local.dir"]), secrets)
            submit += ["--properties-file", str(file), "--load-spark-defaults"]
        for name, value in settings.items():
            if name != "spark.jars" and name not in secrets:
                submit += ["--conf", f"{name}={value}"]
        if settings.get("spark.jars"):
            submit += ["--jars", settings["spark.jars"]]
        joined = os.pathsep.join(p for p in classpath if p)
        return [jar.java(), *options, "-cp", joined, *submit, "pyspark-shell"]

    def environment(self, home: Path) -> dict[str, str]:
        """The environment of the driver host: our Python for workers, loopback only."""
        return {
            **unseeded(),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(home),
        }


def unseeded() -> dict[str, str]:
    """The environment of this process but for how Python hashes texts: with that, which tox sets,
    all drivers would hash alike. Spark says it to its workers itself."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}


def _write_properties(folder: Path, settings: Mapping[str, str]) -> Path:
    """A file of Java properties that nobody else can read."""
    path = folder / "secret.properties"
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        for name, value in settings.items():
            file.write(f"{_escaped(name)}={_escaped(value)}\n")
    return path


def _escaped(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return re.sub(r"[:=#! \t]", lambda m: "\\" + m[0], plain)


def merged(*layers: Mapping[str, str]) -> dict[str, str]:
    """Settings of several layers: the last wins, lists are joined."""
    result: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.items():
            separator = _JOINED.get(name)
            if separator and result.get(name):
                result[name] = result[name] + separator + value
            else:
                result[name] = value
    return result


def submit_settings(arguments: str, of: str = "PYSPARK_SUBMIT_ARGS") -> dict[str, str]:
    """The settings that options of ``spark-submit`` stand for.

    Args:
        of: where they are written.

    Raises UsageError for an option that is not a setting, instead of ignoring it.
    """
    settings: dict[str, str] = {}
    try:
        words = iter(shlex.split(arguments))
    except ValueError as e:
        raise UsageError(f"{of}: {arguments!r}: {e}: write it as in a shell") from None
    for word in words:
        option, equals, value = word.partition("=")
        if word == "pyspark-shell":
            continue
        if option in ("--verbose", "-v"):
            continue
        if option not in _OPTIONS and option not in ("--conf", "-c", "--properties-file"):
            raise UsageError(
                f"{of}: {word!r} is not understood; use --conf, " + ", ".join(sorted(_OPTIONS))
            )
        if not equals:
            value = next(words, "")
        if option in _OPTIONS:
            settings = merged(settings, {_OPTIONS[option]: value})
        elif option == "--properties-file":
            settings = merged(settings, _properties(Path(value), of))
        else:
            name, _, text = value.partition("=")
            settings = merged(settings, {name: text})
    return settings


def _properties(path: Path, of: str) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as e:
        raise UsageError(f"{of}: cannot read {path}: {reason_of(e)}") from e
    pairs = (line.split(None, 1) for line in lines if line.strip() and line[0] != "#")
    return {pair[0]: pair[1].strip() if len(pair) > 1 else "" for pair in pairs}
