"""Jars from Maven, resolved by ``mvn`` into a cache folder: ``$XDG_CACHE_HOME/bettong/jars``."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bettong.harness.servers.errors import ServerFailedError
from bettong.harness.servers.programs import find_program

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bettong</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = """
    <dependency>
      <groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version>{exclusions}
    </dependency>"""
_NO_TRANSITIVE = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)


def jars(coordinates: Sequence[str], transitive: bool = True) -> list[Path]:
    """The jars of ``group:artifact:version`` coordinates, with their dependencies or without.

    Raises ServerMissingError without ``mvn``, ServerFailedError if they cannot be resolved."""
    key = hashlib.sha256(repr((sorted(coordinates), transitive)).encode()).hexdigest()[:16]
    folder = _cache() / key
    if not folder.is_dir():
        _resolve(coordinates, transitive, folder)
    return sorted(folder.glob("*.jar"))


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "bettong" / "jars"


def _resolve(coordinates: Sequence[str], transitive: bool, folder: Path) -> None:
    maven = find_program("mvn", "apt-get install maven")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        dependencies = "".join(
            _DEPENDENCY.format(*c.split(":"), exclusions="" if transitive else _NO_TRANSITIVE)
            for c in coordinates
        )
        (Path(scratch) / "pom.xml").write_text(_POM.format(dependencies=dependencies))
        goal = "dependency:copy-dependencies"
        done = subprocess.run(
            [maven, "-q", "-B", goal, "-DincludeScope=runtime", "-DoutputDirectory=jars"],
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        found = list((Path(scratch) / "jars").glob("*.jar"))
        if done.returncode != 0 or not found:
            message = (done.stdout + done.stderr).strip()[-1000:]
            raise ServerFailedError(f"mvn could not resolve {', '.join(coordinates)}: {message}")
        if not folder.exists():  # another process may have been faster
            shutil.move(Path(scratch) / "jars", folder)
