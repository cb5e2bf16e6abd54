"""What this machine has, what a missing thing costs, and the command that brings it."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Literal

import psutil

from bettong.harness.backends.docker.engine import connect, engine_address

Status = Literal["ok", "missing", "limited"]

_ENGINE_SECONDS = 5
MIN_FREE_MEMORY = 3 * 2**30
VECTOR_MODULE = "jdk.incubator.vector"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for.

    Attributes:
        name: what was looked for.
        status: ``ok``, ``limited`` (works, with less) or ``missing``.
        found: what is there.
        required: without it nothing works that needs Spark, which is the default everywhere.
        cost: what is lost, when it is not ``ok``.
        remedy: the command or the step that brings it, when it is not ``ok``.
    """

    name: str
    status: Status
    found: str
    required: bool = False
    cost: str = ""
    remedy: str = ""


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout + done.stderr if done.returncode == 0 else None


def _python() -> Finding:
    return Finding("Python", "ok", f"{sys.version.split()[0]} ({sys.executable})", required=True)


def _java() -> Finding:
    remedy = "apt-get install openjdk-17-jre-headless, or point JAVA_HOME at a Java 17 or newer"
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"  # noqa: PTH118
    text = _output(java, "-version")
    version = re.search(r'version "(\d+)', text or "")
    if not version:
        return Finding(
            "Java",
            "missing",
            f"{java} does not start",
            True,
            "Spark does not start; --runner in-process, of run, demo and start, needs none",
            remedy,
        )
    found = (text or "").splitlines()[0]
    if int(version[1]) < 17:
        return Finding("Java", "missing", found, True, "Spark 4 needs Java 17 or newer", remedy)
    if VECTOR_MODULE not in (_output(java, "--list-modules") or ""):
        return Finding(
            "Java",
            "missing",
            f"{found}, without the module {VECTOR_MODULE}",
            True,
            "Spark does not start on a Java that was cut down",
            remedy,
        )
    return Finding("Java", "ok", found, required=True)


def _package(name: str, accepted: str, matches: Callable[[tuple[int, ...]], bool]) -> Finding:
    remedy = f'pip install "{name}{accepted}"'
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, "missing", "not installed", True, "Spark jobs do not run", remedy)
    numbers = tuple(int(n) for n in re.findall(r"\d+", found)[:2])
    if not matches(numbers):
        return Finding(name, "missing", found, True, f"works with {accepted} only", remedy)
    return Finding(name, "ok", found, required=True)


def _toxiproxy() -> Finding:
    name = "Toxiproxy"
    url = os.environ.get("TOXIPROXY_URL")
    if url:
        return Finding(name, "ok", "the server that TOXIPROXY_URL names")
    path = shutil.which("toxiproxy-server")
    if path:
        return Finding(name, "ok", path)
    return Finding(
        name,
        "limited",
        "the embedded server",
        cost="nothing in verdicts: it has the same interface and toxics; "
        "a server of your own is slower or faster, and known to others",
        remedy="go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0, "
        "and put the binary on PATH as toxiproxy-server",
    )


def _docker() -> Finding:
    from docker.errors import DockerException

    try:
        connect(_ENGINE_SECONDS).close()
    except DockerException:
        return Finding(
            "Docker",
            "missing",
            f"no engine answers at {engine_address()}",
            cost="--backend docker; the local backend does without",
            remedy="apt-get install docker.io, and start dockerd",
        )
    return Finding("Docker", "ok", f"an engine answers at {engine_address()}")


def _loopback() -> Finding:
    name = "Loopback addresses"
    for address in ("127.0.0.11", "127.1.0.1"):
        with socket.socket() as probe:
            try:
                probe.bind((address, 0))
            except OSError:
                return Finding(
                    name,
                    "limited",
                    "127.0.0.1 only",
                    cost="--workers 1 and more; links are distinguished by port instead of address",
                    remedy="macOS: sudo ifconfig lo0 alias 127.0.0.11 up, for each address needed",
                )
    return Finding(name, "ok", "127.0.0.0/8 can be bound")


def _ports() -> Finding:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", 0))
        except OSError as e:
            return Finding(
                "Ports",
                "missing",
                str(e),
                True,
                "no server can listen",
                "allow this user to open sockets on 127.0.0.1",
            )
    return Finding("Ports", "ok", "free ports on 127.0.0.1", required=True)


def _memory() -> Finding:
    free = psutil.virtual_memory().available
    found = f"{free / 2**30:.1f} GiB available"
    if free >= MIN_FREE_MEMORY:
        return Finding("Memory", "ok", found)
    return Finding(
        "Memory",
        "limited",
        found,
        cost="runs may be slow or be killed for want of memory, above all with --workers",
        remedy=f"free memory until {MIN_FREE_MEMORY // 2**30} GiB are available",
    )


def _user() -> Finding:
    if os.geteuid() == 0:
        return Finding("User", "ok", "root (not needed; PostgreSQL is started as its own user)")
    return Finding("User", "ok", "not root (root is not needed)")


def examine() -> Iterator[Finding]:
    """Look at this machine, one thing after another."""
    yield _python()
    yield _java()
    yield _package("pyspark", ">=4.1,<5", lambda v: (4, 1) <= v < (5, 0))
    yield _package("pandas", ">=2.2,<3", lambda v: (2, 2) <= v < (3, 0))
    yield _package("pyarrow", ">=18", lambda v: v >= (18, 0))
    yield _toxiproxy()
    yield _docker()
    yield _loopback()
    yield _ports()
    yield _memory()
    yield _user()
