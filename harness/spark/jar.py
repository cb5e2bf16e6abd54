"""The few kilobytes of Java that make Spark's own steps visible, compiled on the machine itself.

The sources in ``hooks/`` are compiled by Janino, which is among Spark's own jars, so that no JDK
is needed. The jar is cached under the hash of the sources and of Spark's version.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from bettong.harness.spark.cache import cache_directory, made_whole
from bettong.lineage.errors import UsageError

CHECKPOINT_FILE_MANAGER = "bettong.hooks.CheckpointFiles"
PLUGIN = "bettong.hooks.TaskAttempts"
CONDUCTOR = "bettong.hooks.Conductor"
DEAD_DRIVER = "bettong.hooks.DeadDriver"
QUERY_EVENTS = "bettong.hooks.QueryEvents"
AHEAD_PROPERTY, AHEAD_VARIABLE = "bettong.ahead_s", "BETTONG_AHEAD_S"
"""Of a JVM: so far SQL's clock is set ahead in it."""
FILES = "bettong.hooks.LocalFiles"
"""Hadoop's local files with checksums, made without a process for each of them."""
RAW_FILES = "bettong.hooks.RawLocalFiles"
"""The same without checksums."""
FILES_SETTING = "spark.hadoop.fs.file.impl"
_OPTIONS_ENTRY = "META-INF/jvm-options"
_SERVICES = {
    "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider": (
        b"bettong.hooks.ClockAhead\n"
    )
}
_EPOCH = (1980, 1, 1, 0, 0, 0)


class JarError(UsageError):
    """Spark's own steps cannot be made visible on this machine."""


@dataclass(frozen=True)
class Hooks:
    """The hook jar and what goes with it.

    Attributes:
        path: the jar.
        jvm_options: the options that this Spark needs on this Java (``--add-opens`` and such).
    """

    path: Path
    jvm_options: tuple[str, ...]


def spark_home() -> Path:
    """The Spark that pyspark starts: ``$SPARK_HOME`` or the one inside the package."""
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def class_path() -> list[str]:
    """Spark's part of a class path, in the order in which Spark's own launcher names it.

    An archive of class data is used only by JVMs whose class paths begin alike.
    """
    home = spark_home()
    first = sorted(map(str, (home / "jars").glob("slf4j-api-*.jar")))
    return [str(home / "conf"), *first, str(home / "jars" / "*")]


def java() -> str:
    """The java that Spark starts; raises JarError when there is none."""
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if path is None or not Path(path).exists():
        raise JarError(
            f"no Java {f'at {path}' if path else 'on PATH'}: install one of 17 or newer, or set "
            "JAVA_HOME to it; run, demo and start have --runner in-process, which needs none"
        )
    return path


def _sources() -> dict[str, bytes]:
    directory = resources.files("bettong.harness.spark").joinpath("hooks")
    files = sorted(directory.iterdir(), key=lambda f: f.name)
    return {f.name: f.read_bytes() for f in files if f.name.endswith(".java")}


@cache
def hooks() -> Hooks:
    """The hook jar for this machine's Spark, made when there is none yet (about 2 s)."""
    sources = _sources()
    jars = sorted((spark_home() / "jars").glob("spark-core_*.jar"))
    if not jars:
        raise JarError(f"no Spark in {spark_home()}: install pyspark, or correct SPARK_HOME")
    digest = hashlib.sha256(repr((sources, _SERVICES, jars[0].name, java())).encode()).hexdigest()[
        :16
    ]
    path = cache_directory() / f"hooks-{digest}.jar"
    if not path.exists():
        with made_whole(path) as temporary:
            _build(sources, temporary)
    with zipfile.ZipFile(path) as jar:
        return Hooks(path, tuple(jar.read(_OPTIONS_ENTRY).decode().split()))


def _build(sources: dict[str, bytes], target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="bettong-hooks-") as name, _gateway() as gateway:
        directory = Path(name)
        for file, text in sources.items():
            (directory / file).write_bytes(text)
        launcher = gateway.jvm.org.apache.spark.launcher
        options = launcher.JavaModuleOptions.defaultModuleOptions()
        classes = _compile(gateway, [directory / file for file in sources], directory / "classes")
        with zipfile.ZipFile(target, "w") as jar:
            entries = {**classes, **_SERVICES, _OPTIONS_ENTRY: options.encode()}
            for file, content in sorted(entries.items()):
                jar.writestr(zipfile.ZipInfo(file, _EPOCH), content)


@contextmanager
def _gateway() -> Iterator[Any]:
    """A JVM with Spark's jars and nothing started in it."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    jars = spark_home() / "jars"
    port, token = launch_gateway(
        jarpath=str(next(iter(sorted(jars.glob("py4j-*.jar"))))),
        classpath=str(jars / "*"),
        java_path=java(),
        javaopts=["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield gateway
    finally:
        gateway.shutdown()


def _compile(gateway: Any, files: list[Path], target: Path) -> dict[str, bytes]:
    """Compile Java files into class files: path in the jar -> bytes."""
    from py4j.protocol import Py4JJavaError

    target.mkdir()
    jvm = gateway.jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler = jvm.org.codehaus.janino.Compiler(
        jvm.org.codehaus.commons.compiler.util.resource.ResourceFinder.EMPTY_RESOURCE_FINDER,
        jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader),
    )
    compiler.setSourceVersion(11)
    compiler.setTargetVersion(8)
    compiler.setDestinationDirectory(jvm.java.io.File(str(target)), False)
    array = gateway.new_array(jvm.java.io.File, len(files))
    for i, file in enumerate(files):
        array[i] = jvm.java.io.File(str(file))
    try:
        compiler.compile(array)
    except Py4JJavaError as e:
        why = e.java_exception.getMessage()
        raise JarError(f"the hooks do not compile against {spark_home()}: {why}") from e
    return {
        str(file.relative_to(target)): file.read_bytes() for file in sorted(target.rglob("*.class"))
    }
