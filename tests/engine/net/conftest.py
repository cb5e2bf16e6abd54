"""What tests of the listeners share."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.pem; server.pem and client.pem signed by it, each with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    home = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=home, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl(
        *("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test"),
        *("-addext", "keyUsage=critical,keyCertSign,digitalSignature"),
    )
    for name in ("server", "client"):
        (home / "ext").write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
        openssl("req", *key, "-keyout", f"{name}.key", "-out", "csr", "-subj", f"/CN={name}")
        openssl(
            *("x509", "-req", "-in", "csr", "-CA", "ca.pem", "-CAkey", "ca.key"),
            *("-CAcreateserial", "-extfile", "ext", "-out", f"{name}.pem"),
        )
    return home
