"""Who may come in."""

from __future__ import annotations

import importlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.engine.address import Address
from bettong.engine.ingest.acked import AckedFile
from bettong.engine.ingest.client import RangeClient
from bettong.engine.ingest.gateway import Gateway
from bettong.engine.ingest.sender import Pace, Sender
from bettong.engine.net.access import Key, ListenConfig
from bettong.engine.net.client import Patience
from bettong.engine.net.errors import ConnectionLostError
from bettong.lineage.errors import UsageError

LOOPBACK = Address("127.0.0.1", 0)
ONCE = Patience(timeout_s=5, give_up_s=0)


def test_addresses() -> None:
    assert Address.parse("127.0.0.1:4000") == ("127.0.0.1", 4000)
    assert Address.parse("[::1]:4000") == ("::1", 4000)
    assert str(Address("::1", 4000)) == "[::1]:4000"
    for text in ("", "4000", ":4000", "host:", "host:x", "host:70000", "host:-1"):
        with pytest.raises(UsageError, match="write HOST:PORT"):
            Address.parse(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_needs_nothing(host: str) -> None:
    ListenConfig(Address(host, 0)).check()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
@pytest.mark.parametrize(
    "half",
    [{}, {"token": "t"}, {"certificate": Path("c"), "key": Path("k")}],
    ids=["nothing", "token alone", "TLS alone"],
)
def test_beyond_loopback_half_a_lock_is_none(host: str, half: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match=r"give --tls-cert FILE --tls-key FILE, and --token-file"):
        ListenConfig(Address(host, 0), **half).check()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "server", ["bettong.engine.ingest.gateway", "bettong.engine.receiver.server"]
)
def test_servers_that_strangers_could_reach_do_not_start(server: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", server, "--listen", "0.0.0.0:0", "--dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (2, "")
    assert "give --tls-cert FILE --tls-key FILE, and --token-file" in done.stderr


@pytest.mark.parametrize("lock", [{"token": "t"}, {"client_ca": Path("ca")}])
def test_beyond_loopback_with_tls_and_a_token_or_client_certificates(
    lock: dict[str, str | Path],
) -> None:
    ListenConfig(Address("0.0.0.0", 0), Path("c"), Path("k"), **lock).check()  # type: ignore[arg-type]


_NAMES = {
    "gateway": ["172.18.0.2", "fd00::2"],
    "example.org": ["8.8.8.8"],
    "both": ["172.18.0.2", "8.8.8.8"],
}


def _addresses(host: str, port: int, **asked: object) -> list[tuple[object, ...]]:
    if host == "unknown":
        raise socket.gaierror
    return [(0, 0, 0, "", (at, port)) for at in _NAMES.get(host, [host])]


def test_a_closed_network_is_one_private_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _addresses)
    for host in ("10.213.0.2", "gateway"):
        ListenConfig(Address(host, 0), closed_network=True).check()
    for host in ("0.0.0.0", "::", "8.8.8.8", "example.org", "both", "unknown"):
        with pytest.raises(UsageError, match="which other machines reach"):
            ListenConfig(Address(host, 0), closed_network=True).check()


@pytest.fixture
def gateway(
    request: pytest.FixtureRequest, certificates: Path, tmp_path: Path
) -> Iterator[Gateway]:
    client_ca = certificates / "ca.pem" if request.param else None
    access = ListenConfig(
        LOOPBACK,
        certificates / "server.pem",
        certificates / "server.key",
        client_ca,
        "" if request.param else "secret",
    )
    found = Gateway(access, tmp_path / "gateway", max_unreleased=10)
    threading.Thread(target=found.run, daemon=True).start()
    yield found
    found.close()


@pytest.mark.parametrize("gateway", [False], indirect=True)
def test_tls_with_a_token(gateway: Gateway, certificates: Path, tmp_path: Path) -> None:
    key = Key("secret", certificates / "ca.pem")
    messages = [b"x" * 10_000] * 200
    note = AckedFile(None, "lines")
    sender = Sender(gateway.address, "lines", messages, note, pace=Pace(3, 2), key=key)
    sending = threading.Thread(target=sender.run)
    sending.start()
    client = RangeClient(gateway.address, "lines", key)
    seen = 0
    while seen < len(messages):
        end = client.status(seen + 1, wait=30).end
        seen += sum(map(len, client.read(seen, end)))
        client.release(seen)  # credit is sent while the sender's own thread receives
    sending.join(60)
    assert not sending.is_alive()
    with pytest.raises(ConnectionLostError):
        RangeClient(gateway.address, "lines", Key("secret"), ONCE).status()


@pytest.mark.parametrize("gateway", [True], indirect=True)
def test_client_certificates(gateway: Gateway, certificates: Path) -> None:
    ca = certificates / "ca.pem"
    with pytest.raises(ConnectionLostError):
        RangeClient(gateway.address, "lines", Key(ca=ca), ONCE).status()
    own = Key("", ca, certificates / "client.pem", certificates / "client.key")
    assert RangeClient(gateway.address, "lines", own, ONCE).status().end == 0


def test_unusable_files_are_named(tmp_path: Path) -> None:
    access = ListenConfig(LOOPBACK, tmp_path / "none.pem", tmp_path / "none.key")
    with pytest.raises(UsageError, match="cannot use the TLS files"):
        access.tls()
    for key in (Key(ca=tmp_path / "none.pem"), Key("", None, tmp_path / "none.pem")):
        with pytest.raises(UsageError, match=r"TLS|tls"):
            key.connect(LOOPBACK, 1)


def test_the_former_name_of_the_module_works_and_says_the_new_one() -> None:
    sys.modules.pop("bettong.engine.net.doors", None)
    with pytest.warns(DeprecationWarning, match=r"bettong\.engine\.net\.access"):
        former = importlib.import_module("bettong.engine.net.doors")
    assert former.ListenConfig is ListenConfig
