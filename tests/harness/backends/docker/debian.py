"""A plain Debian to build an image on, made of its packages where nothing can be pulled."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

SUITE = "bookworm"
# How packages are had here, which Debian's own images do not know.
_SETTINGS = (
    "etc/apt/apt.conf.d",
    "etc/pip.conf",
    "etc/ssl/certs/ca-certificates.crt",
)


def image(client: Any, folder: Path) -> str:
    """The name of an image of Debian, as debootstrap makes it, with this machine's settings for
    apt and pip; skips, and says why, where debootstrap is not there."""
    command = shutil.which("debootstrap", path=f"{os.environ['PATH']}:/usr/sbin")
    if command is None:
        pytest.skip("NO DEBOOTSTRAP: nothing to build an image on; the Dockerfile is untested")
    root = folder / "root"
    asked = [
        command,
        "--variant=minbase",
        "--include=ca-certificates",
        SUITE,
        str(root),
        *_mirror(),
    ]
    done = subprocess.run(asked, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    for name in _SETTINGS:
        here = Path("/", name)
        if here.is_dir():
            shutil.copytree(here, root / name, dirs_exist_ok=True)
        elif here.exists():
            shutil.copy(here, root / name)
    packed = folder / "root.tar"
    subprocess.run(["tar", "-C", root, "-cf", packed, "."], check=True)
    client.api.import_image_from_file(str(packed), repository="bettong-tests-debian", tag=SUITE)
    return f"bettong-tests-debian:{SUITE}"


def _mirror() -> list[str]:
    """Where this machine has Debian's packages from, if it says so."""
    asked = ["apt-get", "indextargets", "--format", "$(SITE)", "Codename: " + SUITE]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[:1]
