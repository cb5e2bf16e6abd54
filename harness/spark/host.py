"""The driver host: a process with a warm Spark session that takes jobs one at a time.

Protocol: JSON lines, requests on stdin, answers on the file descriptor that stdout was at start
(standard output itself then goes to standard error, the host's log)::

    -> {"config": {SessionConfig's fields}, "home": DIRECTORY, "jvm": PID | null,
        "fork_servers": [PID, ...]}
    <- {"ready": true, "jvm": PID}
    -> {"id": N, "call": "module:function", "args": {...}, "instrumentation": {...} | null}
    <- {"id": N, "ok": true, "value": JSON}
    <- {"id": N, "ok": false, "kind": "ValueError", "error": TEXT, "traceback": TEXT}
    -> {"id": N, "reset": true}       # after the jobs before it
    <- {"id": N, "ok": true, "value": null}
    -> {"id": N, "stop": true}        # at once: stops the queries of the job that runs
    <- {"id": N, "ok": true, "value": null}
    -> {"id": N, "quiet": true}      # at once: cancels what runs, waits until no task does
    <- {"id": N, "ok": true, "value": null}
    -> {"id": N, "lose_executor": true}  # at once: Spark takes its one executor for lost
    <- {"id": N, "ok": true, "value": null}
    -> {"id": N, "where": true}      # at once: where each of its threads stands, outermost first
    <- {"id": N, "ok": true, "value": [[[FILE, LINE, FUNCTION, CODE], ...], ...]}

The function is called as ``function(spark, **args)``. When stdin ends, the host and every process
of its session are killed: a host outlives nobody.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bettong.engine.steps import Instrumentation
from bettong.harness.processes.session import session_members
from bettong.harness.spark import fence, instrument, jar
from bettong.harness.spark.archive import current_archive
from bettong.harness.spark.reset import QUIET_S, NotCleanError, Resetter
from bettong.harness.spark.session import SessionConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_S = 0.02
_GATEWAY = "gateway"
"""Where a JVM says how it is joined; its folder is nobody else's to read."""


def start_session(
    config: SessionConfig, home: Path, java_options: tuple[str, ...] = ()
) -> tuple[SparkSession, subprocess.Popen[bytes]]:
    """Start the JVM of a session in ``home`` and join it; imports pyspark while the JVM starts."""
    settings = config.settings(home)
    command = config.java_command(settings, None if java_options else current_archive())
    command[1:1] = java_options
    info = home / _GATEWAY
    ends: tuple[int, ...] = ()
    if (home / fence.NAME).exists():  # it outlives its driver: both ends of its input are its own
        command[1:1] = [f"-Dbettong.fence={home / fence.NAME}"]
        ends = os.pipe()
    jvm = subprocess.Popen(
        command,
        stdin=ends[0] if ends else subprocess.PIPE,  # the JVM ends when nobody can write there
        pass_fds=ends[1:],
        env={
            **os.environ,
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
            "SPARK_CONNECT_MODE": "0",
        },
    )
    for end in ends:
        os.close(end)
    import pyspark.sql  # noqa: F401 - while the JVM starts

    while not info.exists():
        if jvm.poll() is not None:
            raise RuntimeError(f"the JVM ended with {jvm.returncode} while it started")
        time.sleep(_POLL_S)
    _find_gateway(home)
    return _session(settings), jvm


def join_session(config: SessionConfig, home: Path) -> SparkSession:
    """A new session in the JVM in ``home``, which throws away what its dead driver has left there;
    raises NotCleanError."""
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    _find_gateway(home)
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    # The JVM tells whoever is its driver to forget the functions of the dead one, by their numbers,
    # when it collects them at last: the clock gives numbers that no earlier process has given.
    gateway.gateway_property.pool.next_id = time.monotonic_ns()
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    dead = getattr(gateway.jvm, jar.DEAD_DRIVER)
    left = dead.clear(server.getGateway(), round(QUIET_S * 1000))
    if left:
        raise NotCleanError(f"a thread of the dead driver still runs after {QUIET_S:.0f} s: {left}")
    SparkContext._ensure_initialized(gateway=gateway)
    return _session(config.settings(home))


def _find_gateway(home: Path) -> None:
    """Have pyspark join the JVM in ``home``."""
    from pyspark.serializers import UTF8Deserializer, read_int

    with (home / _GATEWAY).open("rb") as file:
        os.environ["PYSPARK_GATEWAY_PORT"] = str(read_int(file))  # type: ignore[no-untyped-call]
        secret = UTF8Deserializer().loads(file)  # type: ignore[no-untyped-call]
        os.environ["PYSPARK_GATEWAY_SECRET"] = secret


def _session(settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    from bettong.engine.spark.classes import remember_classes

    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    remember_classes(spark.sparkContext)
    return spark


def _function(call: str) -> Callable[..., Any]:
    module, _, name = call.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def _answer(spark: SparkSession, resetter: Resetter, request: Mapping[str, Any]) -> Any:
    if request.get("reset"):
        return resetter.reset()
    instrument.install(spark, Instrumentation(**(request.get("instrumentation") or {})))
    return _function(request["call"])(spark, **request.get("args", {}))


def _reply(request: Mapping[str, Any], work: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"id": request["id"], "ok": True, "value": work()}
    except Exception as e:
        return {
            "id": request["id"],
            "ok": False,
            "kind": type(e).__name__,
            "error": str(e),
            "traceback": traceback.format_exc(),
        }


def _stop_queries(spark: SparkSession) -> None:
    for query in spark.streams.active:
        query.stop()


def _lose_executor(spark: SparkSession) -> None:
    """What Spark does when an executor's heartbeats stay away; in local mode the driver is one."""
    context = spark.sparkContext
    assert context._jvm is not None
    none = context._jvm.scala.Option.apply(None)
    lost = context._jvm.org.apache.spark.scheduler.ExecutorProcessLost("heartbeats", none, False)
    context._jsc.sc().taskScheduler().executorLost("driver", lost)


def _where() -> list[list[tuple[str, int | None, str, str]]]:
    asks = threading.get_ident()
    return [
        [(f.filename, f.lineno, f.name, f.line or "") for f in traceback.extract_stack(frame)]
        for thread, frame in sys._current_frames().items()
        if thread != asks
    ]


def _serve(out: TextIO) -> None:
    """Start the session that the first request asks for, then answer requests for ever."""
    lock = threading.Lock()

    def answer(value: Mapping[str, Any]) -> None:
        with lock:
            print(json.dumps(value), file=out, flush=True)

    first = json.loads(sys.stdin.readline())
    config, home, jvm = SessionConfig(**first["config"]), Path(first["home"]), first["jvm"]
    try:
        if jvm is None:
            spark, process = start_session(config, home)
            jvm = process.pid
            spark.range(1).count()  # what every job would otherwise wait for
        else:
            spark = join_session(config, home)
        resetter = Resetter(spark, jvm, first["fork_servers"])
    except Exception as e:
        answer({"ready": False, "error": f"{type(e).__name__}: {e}"})
        raise
    jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            request = json.loads(line)
            if request.get("stop"):
                answer(_reply(request, lambda: _stop_queries(spark)))
            elif request.get("quiet"):
                answer(_reply(request, resetter.until_quiet))
            elif request.get("lose_executor"):
                answer(_reply(request, lambda: _lose_executor(spark)))
            elif request.get("where"):
                answer(_reply(request, _where))
            else:
                jobs.put(request)
        _end()

    threading.Thread(target=read, name="requests", daemon=True).start()
    answer({"ready": True, "jvm": jvm})
    while True:
        request = jobs.get()
        answer(_reply(request, partial(_answer, spark, resetter, request)))


def _end() -> None:
    """Kill every process of this session, ourselves last."""
    for pid in sorted(session_members(os.getsid(0)), key=lambda pid: pid == os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Serve on stdin and stdout."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.set_inheritable(out.fileno(), False)
    _serve(out)


if __name__ == "__main__":
    main()
