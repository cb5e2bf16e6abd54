"""A shared archive of class data, which halves what a short-lived driver JVM costs.

It is made once (:mod:`bettong.harness.spark.archive_maker`); until it is there, JVMs start without.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from bettong.harness.spark import jar
from bettong.harness.spark.cache import cache_directory


def archive_path() -> Path:
    """Where this machine's archive is, or will be: one for each Java, Spark and hook jar."""
    java = Path(jar.java()).resolve()
    made_from = (str(jar.hooks().path), str(java), java.stat().st_mtime, *jar.class_path())
    digest = hashlib.sha256(repr(made_from).encode()).hexdigest()[:16]
    return cache_directory() / f"classes-{digest}.jsa"


def current_archive() -> Path | None:
    """The archive when it is there."""
    path = archive_path()
    return path if path.exists() else None


def short_lived() -> list[str]:
    """Options of a JVM that lives for minutes at most, whose class path begins as a driver's."""
    archive = current_archive()
    shared = [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"] if archive is not None else []
    return ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *shared]
