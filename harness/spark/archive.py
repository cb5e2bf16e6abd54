"""A shared archive of class data, which halves what a short-lived driver JVM costs.

It is made once (:mod:`bettong.harness.spark.archive_maker`); until it is there, JVMs start without.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path

from bettong.harness.spark import jar
from bettong.harness.spark.cache import cache_directory

_UNUSED_S = 30 * 24 * 3600


def archive_path() -> Path:
    """Where this machine's archive is, or will be: one for each Java, Spark and hook jar. A JVM
    takes none that was made when any of its jars was another file."""
    java = Path(jar.java()).resolve()
    jars = sorted((jar.spark_home() / "jars").glob("*.jar"))
    files = [(str(path), path.stat().st_mtime_ns) for path in (jar.hooks().path, java, *jars)]
    made_from = (files, jar.class_path())
    digest = hashlib.sha256(repr(made_from).encode()).hexdigest()[:16]
    return cache_directory() / f"classes-{digest}.jsa"


def current_archive() -> Path | None:
    """The archive when it is there: it is about to be used."""
    path = archive_path()
    try:
        os.utime(path)
    except OSError:
        return path if path.exists() else None
    return path


def forget_unused() -> None:
    """Remove the archives that nobody has used for so long: each Java, Spark and version of
    Bettong has one of its own, of 180 MB."""
    for path in cache_directory().glob("classes-*.jsa"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _UNUSED_S:
                path.unlink()


def short_lived() -> list[str]:
    """Options of a JVM that lives for minutes at most, whose class path begins as a driver's."""
    archive = current_archive()
    shared = [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"] if archive is not None else []
    return ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *shared]
