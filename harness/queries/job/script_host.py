"""A script's process in place of a driver host: started anew for each incarnation, with Bettong's
hooks through Spark's own configuration."""

from __future__ import annotations

import math
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from bettong.engine.steps import Instrumentation
from bettong.harness.processes.session import Ended, ProcessSession, guard_folder, unguard_folder
from bettong.harness.queries.job.script_java import java_home
from bettong.harness.queries.job.script_workload import ScriptWorkload
from bettong.harness.queries.raised import raised_in
from bettong.harness.queries.run.environment import SparkEnvironment, python_path
from bettong.harness.queries.run.host import HostPool
from bettong.harness.queries.script import KAFKA, Script
from bettong.harness.queries.sink import aiming
from bettong.harness.queries.sink.ran_lines import noted_in
from bettong.harness.servers.kafka import kafka_connector
from bettong.harness.spark import jar
from bettong.harness.spark.driver import START_S, DriverDiedError, Stack
from bettong.harness.spark.session import merged, submit_settings, unseeded

READ = "bettong.harness.queries.job.host:read_script"
_OF_PROBES = ("elsewhere", "lines", "ahead_s")
"""Arguments that nobody but the probes needs."""
_LOG_BYTES = 1 << 18
_POLL_S = 0.05
_DEFAULTS = "spark-defaults.conf"
_OPTIONS = "--with"
"""Where the options of spark-submit are written."""
_FAST = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"


def hook_settings() -> dict[str, str]:
    """Spark's settings that bring the hooks into a session that somebody else starts; what the
    script's own code says wins, except for what must be there."""
    path = str(jar.hooks().path)
    return {
        "spark.master": "local[1,4]",
        "spark.log.level": "WARN",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": _FAST,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
        "spark.driver.extraClassPath": path,
        "spark.executor.extraClassPath": path,
        "spark.plugins": jar.PLUGIN,
        "spark.sql.streaming.checkpointFileManagerClass": jar.CHECKPOINT_FILE_MANAGER,
        jar.FILES_SETTING: jar.FILES,
        "spark.sql.streaming.streamingQueryListeners": jar.QUERY_EVENTS,
        "spark.sql.streaming.noDataProgressEventInterval": "200",
    }


class ScriptHost:
    """One process of a script after the other; what the rest of a run knows as the driver.

    Args:
        finished: says that the query has nothing left to do; asked while the process lives.
        warm: hosts that read the output back.
    """

    def __init__(self, script: Script, warm: HostPool[Any], finished: Callable[[], bool]) -> None:
        self._script, self._warm, self._finished = script, warm, finished
        self.home = Path(tempfile.mkdtemp(prefix="bettong-script-"))
        guard_folder(self.home)
        self.log = self.home / "script.log"
        self._session: ProcessSession | None = None
        self._stopped = threading.Event()

    @property
    def pid(self) -> int:
        """The session of the script's processes, once it has been started."""
        assert self._session is not None
        return self._session.pid

    def submit(
        self, call: str, args: Mapping[str, Any], instrumentation: Instrumentation | None = None
    ) -> Future[Any]:
        """Start the script; the future holds how it ended."""
        future: Future[Any] = Future()
        self._stopped.clear()
        self.log.write_bytes(b"")
        instrumentation = instrumentation or Instrumentation()
        work = Path(args["directory"]) / "work"
        work.mkdir(parents=True, exist_ok=True)
        aiming.aim(
            work,
            instrumentation,
            self.home,
            args["elsewhere"],
            args["lines"],
            noted_in(work.parent),
            args["ahead_s"],
        )
        session = ProcessSession.start(
            self._command(args, work),
            env=self._environment(args, work, instrumentation),
            log=self.log,
        )
        self._session = session
        seen = (session, future, work.parent)
        threading.Thread(target=self._watch, args=seen, daemon=True).start()
        return future

    def run(self, call: str, args: Mapping[str, Any], timeout: float | None = None) -> Any:
        """Have a warm driver read the output back; nothing else is done beside a script."""
        if "read" not in args["parts"]:
            return {}
        host = self._warm.acquire()
        try:
            asked = {name: value for name, value in args.items() if name not in _OF_PROBES}
            return host.run(READ, {**asked, "reader": self._script.reader}, timeout=timeout)
        finally:
            self._warm.release(host)

    def stop_queries(self, timeout: float = 60.0) -> None:
        """End the process; its future says so."""
        self._stopped.set()

    def until_quiet(self, timeout: float = 60.0) -> None:
        """Nothing of a process that is killed goes on."""

    def lose_executor(self, timeout: float = 60.0) -> None:
        """Not done to a script: its session is its own."""

    def where(self, timeout: float = 60.0) -> list[Stack]:
        """Nowhere that is known: nobody asks a process that somebody else has written."""
        return []

    def reset(self, timeout: float = 60.0) -> None:
        """Each start of a script is a process of its own, which knows nothing of the one before:
        all that is left of that one ends, and its temporary files go."""
        self.kill()
        shutil.rmtree(self._temporary, ignore_errors=True)

    def kill(self) -> Ended:
        """SIGKILL every process of the script, if there is one."""
        return Ended(0, 0, 0) if self._session is None else self._session.kill()

    def close(self) -> None:
        """Nothing of it is left."""
        if self._session is not None and self._session.poll() is None:
            self._session.kill()
        shutil.rmtree(self.home, ignore_errors=True)
        unguard_folder(self.home)

    def pause(self) -> str:
        """SIGSTOP every process of the script."""
        assert self._session is not None
        return self._session.pause()

    def resume(self) -> None:
        """SIGCONT every process of the script."""
        assert self._session is not None
        self._session.resume()

    @property
    def _temporary(self) -> Path:
        """Where Spark and its JVM keep what they would clear up if they were not killed."""
        return self.home / "spark"

    def _command(self, args: Mapping[str, Any], work: Path) -> list[str]:
        submit = str(jar.spark_home() / "bin" / "spark-submit")
        starter = submit if self._script.is_submitted else sys.executable
        return [starter, *self._script.words(work, args["addresses"])]

    def _environment(
        self, args: Mapping[str, Any], work: Path, who: Instrumentation
    ) -> dict[str, str]:
        self._temporary.mkdir(exist_ok=True)
        options = self._script.options(work, args["addresses"])
        # On the command line they would win over ours instead of being joined with them.
        submitted = submit_settings(options, _OPTIONS)
        configuration = self._configuration(submitted, args["settings"])
        return {
            **unseeded(),
            "JAVA_HOME": str(java_home(self.home, configuration)),
            "SPARK_CONF_DIR": str(configuration),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": python_path(),
            "TMPDIR": str(self.home),
            "SPARK_LOCAL_DIRS": str(self._temporary),
            "BETTONG_CONDUCTOR": str(who.conductor),
            "BETTONG_RUN": who.run,
            "BETTONG_NODE": who.node,
            "BETTONG_INCARNATION": str(who.incarnation),
            jar.AHEAD_VARIABLE: str(args["ahead_s"]),
            **self._script.environment(work, args["addresses"]),
        }

    def _configuration(self, submitted: Mapping[str, str], settings: Mapping[str, str]) -> Path:
        """The user's own configuration folder, with what is submitted, then our settings, at the
        end of its defaults."""
        folder = self.home / "conf"
        shutil.rmtree(folder, ignore_errors=True)
        own = os.environ.get("SPARK_CONF_DIR")
        if own and Path(own).is_dir():
            shutil.copytree(own, folder)
        else:
            folder.mkdir()
        file = folder / _DEFAULTS
        theirs = {}
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
            name, _, value = line.strip().partition(" ")
            if name and not name.startswith("#"):
                theirs[name] = value.strip()
        connector = kafka_connector() if KAFKA in self._script.endpoints else {}
        aside = {"spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={self._temporary}"}
        everything = merged(theirs, submitted, connector, hook_settings(), aside, settings)
        lines = [f"{name} {value}\n" for name, value in everything.items()]
        file.write_text("".join(lines), encoding="utf-8")
        return folder

    def _watch(self, session: ProcessSession, future: Future[Any], directory: Path) -> None:
        """Until the script ends, is killed, or its query has nothing left to do."""

        def ended(error: str | None) -> None:
            future.set_result(
                {
                    "error": error,
                    "outside": aiming.outside(directory, self.home),
                    "processes": aiming.processes(self.home),
                    "in_turn": aiming.in_turn(self.home),
                }
            )

        while session.poll() is None:
            if self._stopped.is_set() or self._finished():
                session.kill()
                ended(None)
                return
            time.sleep(_POLL_S)
        status = session.poll()
        if status is not None and status < 0:
            future.set_exception(DriverDiedError(f"script {session.pid} was killed"))
        else:
            ended(None if status == 0 else f"the script ended with {status}: {self._last_words()}")

    def _last_words(self) -> str:
        text = self.log.read_bytes()[-_LOG_BYTES:].decode("utf-8", "replace").strip()
        return raised_in(text) or text.rpartition("\n")[2] or "it said nothing"


class ScriptPool:
    """Hands out a script's hosts as a pool hands out warm ones."""

    def __init__(self, script: Script, warm: HostPool[Any], finished: Callable[[], bool]) -> None:
        self._script, self._warm, self._finished = script, warm, finished

    def acquire(self, timeout: float = START_S, most: float = math.inf) -> ScriptHost:
        """A host whose process is not started yet; the limits are for those that are waited for."""
        return ScriptHost(self._script, self._warm, self._finished)

    @property
    def ready(self) -> bool:
        """Whether there is a warm driver to read in."""
        return self._warm.ready

    def start_ahead(self, hosts: int) -> None:
        """Start so many warm drivers; a script's own process is started by its run."""
        self._warm.start_ahead(hosts)

    def start_no_more(self) -> None:
        """Start no warm drivers for those that end."""
        self._warm.start_no_more()

    def release(self, host: ScriptHost) -> None:
        """Its run is over."""
        host.close()

    kill = release


def script_environment(
    script: Script, warm: SparkEnvironment, workload: ScriptWorkload
) -> SparkEnvironment:
    """Where a script's runs take place; what is read back is read by warm drivers."""
    folder = warm.folder / "script"
    folder.mkdir(exist_ok=True)
    pool: HostPool[ScriptHost] = ScriptPool(script, warm.pool, workload.finished)
    return SparkEnvironment(pool, warm.conductor, folder)
