"""A Spark master that the user gives: what is asked of its executors, and where faults end there.

Executors run our code at our addresses: they need Bettong, this machine's temporary folder, and a
way to its loopback. The jar that makes Spark's own steps visible travels with the application.
"""

from __future__ import annotations

import re
import tempfile
from typing import TYPE_CHECKING, Any

from bettong.engine.address import Address
from bettong.harness.spark import jar
from bettong.harness.spark.driver import DriverError, DriverHost, JobError
from bettong.harness.spark.session import SessionConfig
from bettong.harness.spark.supply import DriverSupply
from bettong.lineage.errors import UsageError
from bettong.lineage.results import tool_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MASTER = re.compile(r"local(\[[^\]]+\])?|local-cluster\[[^\]]+\]|spark://.+|yarn|k8s://.+")
_TELLING = re.compile(r"(?:ModuleNotFound|Import|IO|PySparkRuntime)(?:Error|Exception): [^\n]+")
_LOOK = "bettong.harness.backends.spark_master:look"
_PROBE = """
import importlib.metadata, os, socket
found = {"host": socket.gethostname(), "bettong": None, "sees": os.path.exists(file), "why": ""}
try:
    found["bettong"] = importlib.metadata.version("bettong")
except importlib.metadata.PackageNotFoundError:
    pass
try:
    socket.create_connection(tuple(conductor), 5).close()
except OSError as e:
    found["why"] = str(e)
"""


def check_url(master: str, option: str = "--master") -> None:
    """Raises UsageError for what is no master of Spark's."""
    if not _MASTER.fullmatch(master):
        raise UsageError(
            f"{option} {master}: write it as Spark does, as spark://HOST:7077 or local[4]"
        )


def has_executors(master: str) -> bool:
    """Whether tasks run elsewhere than in the driver."""
    return not re.match(r"local(\[|$)", master)


def session_config(master: str) -> SessionConfig:
    """Of drivers that use the executors of a master that is not ours."""
    return SessionConfig(master, {"spark.jars": str(jar.hooks().path)})


def limit(master: str) -> str:
    """What no run on this master shows."""
    return (
        f"the executors of {master} are not ours: faults hit the sender, the gateway, the "
        "driver, the receiver and the links between them, not master, workers and their links; "
        "what executors do counts as the driver's"
    )


def check_executors(supply: DriverSupply, master: str, conductor: str) -> None:
    """Raises UsageError for executors that cannot take part, and says what they lack."""
    try:
        host = supply.acquire()
    except DriverError as e:
        raise UsageError(
            f"--master {master}: no application could be started there; is it up, and has it "
            f"workers with free cores? {' '.join(str(e).split())[:300]}"
        ) from e
    try:
        found = _looked(host, master, conductor)
    finally:
        supply.release(host)
    for executor in found:
        name = executor["host"]
        if executor["bettong"] != tool_version():
            has = f"Bettong {executor['bettong']}" if executor["bettong"] else "no Bettong"
            raise UsageError(
                f"--master {master}: the Python of executors on {name} has {has}; install "
                f"bettong=={tool_version()} there, or name another Python with PYSPARK_PYTHON"
            )
        if not executor["sees"]:
            raise UsageError(
                f"--master {master}: executors on {name} do not see {tempfile.gettempdir()}; set "
                "TMPDIR to a folder that they share with this machine"
            )
        if executor["why"]:
            raise UsageError(
                f"--master {master}: executors on {name} do not reach {conductor}, where faults "
                f"are placed ({executor['why']}); they have to run on this machine"
            )


def _looked(host: DriverHost, master: str, conductor: str) -> list[dict[str, Any]]:
    with tempfile.NamedTemporaryFile(prefix="bettong-") as file:
        try:
            found = host.run(_LOOK, {"file": file.name, "conductor": conductor}, timeout=120)
        except JobError as e:
            reported = _TELLING.search(str(e))
            why = reported[0] if reported else " ".join(str(e).split())[:300]
            raise UsageError(
                f"--master {master}: its executors cannot run Python with pyspark ({why}); "
                "PYSPARK_PYTHON names one"
            ) from e
    assert isinstance(found, list)
    return found


def look(spark: SparkSession, file: str, conductor: str) -> list[dict[str, Any]]:
    """What executors have and see. Runs in the driver; they need nothing of ours for it."""
    known = {"file": file, "conductor": list(Address.parse(conductor))}
    asked = f"(lambda space: exec({_PROBE!r}, space) or space['found'])({known!r})"
    context = spark.sparkContext
    count = max(2, context.defaultParallelism)
    found: list[dict[str, Any]] = context.parallelize([asked] * count, count).map(eval).collect()
    return found
