"""Who may come in: TLS and tokens.

A listener is on loopback, or it has TLS and asks for a token or a client certificate, or it is on a
network of which its user says that no other machine reaches it.
"""

from __future__ import annotations

import argparse
import hmac
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

from bettong.engine.address import Address
from bettong.engine.net.errors import ConnectionLostError
from bettong.lineage.errors import UsageError, reason_of

_LONGEST_TOKEN = 4096  # bytes


@dataclass(frozen=True)
class ListenConfig:
    """How a server lets others in.

    Attributes:
        address: where to listen; port 0 takes any free one.
        certificate, key: PEM files of the server's certificate, for TLS.
        client_ca: PEM file; only clients with a certificate signed by it come in.
        token: what every client has to say first; empty asks for none.
        closed_network: no other machine reaches the address, which is one of a private network,
            such as that of containers which leads nowhere.
    """

    address: Address
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    token: str = ""
    closed_network: bool = False

    def check(self) -> None:
        """Raises UsageError for an address at which strangers would be let in."""
        if self.client_ca is not None and self.certificate is None:
            raise UsageError("--tls-client-ca needs --tls-cert and --tls-key")
        if self.address.is_loopback or (self.closed_network and self.address.is_private):
            return
        if self.certificate is None or not (self.token or self.client_ca):
            raise UsageError(
                f"will not listen on {self.address}, which other machines reach: give --tls-cert "
                "FILE --tls-key FILE, and --token-file FILE or --tls-client-ca FILE; or listen on "
                "127.0.0.1"
            )

    def tls(self) -> ssl.SSLContext | None:
        """The server's side of TLS, or None without; raises UsageError for unusable files."""
        if self.certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key)
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
        except (OSError, ssl.SSLError) as e:
            raise UsageError(f"cannot use the TLS files of {self.address}: {e}") from e
        return context

    def admits(self, token: str) -> bool:
        """Whether a client that says this token may come in."""
        return not self.token or hmac.compare_digest(token.encode(), self.token.encode())

    def listen(self) -> socket.socket:
        """A listening socket; raises UsageError when the address cannot be had."""
        self.check()
        family = socket.AF_INET6 if ":" in self.address.host else socket.AF_INET
        try:
            return socket.create_server(self.address, family=family, backlog=128)
        except OSError as e:
            why, _, _ = reason_of(e).partition(" (while attempting")
            raise UsageError(
                f"cannot listen on {self.address}: {why}: choose another address, or end what "
                "listens there"
            ) from e


@dataclass(frozen=True)
class Key:
    """What a client needs to be let in by a listener.

    Attributes:
        token: said first; empty when the listener asks for none.
        ca: PEM file of who signed the server's certificate; None speaks without TLS.
        certificate, key: PEM files of the client's own certificate, where the listener wants one.
    """

    token: str = ""
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def connect(self, address: Address, timeout: float) -> socket.socket:
        """A connected socket; raises ConnectionLostError, or UsageError for unusable files."""
        context = self._tls()
        try:
            sock = socket.create_connection(address, timeout)
            if context is None:
                return sock
            try:
                return context.wrap_socket(sock, server_hostname=address.host)
            except OSError:
                sock.close()
                raise
        except OSError as e:
            raise ConnectionLostError(f"cannot connect to {address}: {e}") from e

    def _tls(self) -> ssl.SSLContext | None:
        if self.ca is None:
            if self.certificate is not None:
                raise UsageError("--tls-cert needs --tls-ca, which says to speak TLS at all")
            return None
        try:
            context = ssl.create_default_context(cafile=str(self.ca))
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as e:
            raise UsageError(f"cannot use the TLS files of this client: {e}") from e
        return context


def add_listen_options(parser: argparse.ArgumentParser) -> None:
    """The options of a server's command line that say who may come in."""
    parser.add_argument("--listen", required=True, metavar="HOST:PORT", help="port 0: any free one")
    parser.add_argument("--tls-cert", type=Path, metavar="FILE")
    parser.add_argument("--tls-key", type=Path, metavar="FILE")
    parser.add_argument("--tls-client-ca", type=Path, metavar="FILE")
    parser.add_argument("--token-file", type=Path, metavar="FILE")
    parser.add_argument(
        "--closed-network", action="store_true", help="no other machine reaches --listen"
    )


def listen_config_from(options: argparse.Namespace) -> ListenConfig:
    """What the options ask for; raises UsageError."""
    return ListenConfig(
        Address.parse(options.listen),
        options.tls_cert,
        options.tls_key,
        options.tls_client_ca,
        read_token(options.token_file),
        options.closed_network,
    )


def add_key_options(parser: argparse.ArgumentParser) -> None:
    """The options of a client's command line by which a listener lets it in."""
    parser.add_argument("--tls-ca", type=Path, metavar="FILE", help="speak TLS")
    parser.add_argument("--tls-cert", type=Path, metavar="FILE")
    parser.add_argument("--tls-key", type=Path, metavar="FILE")
    parser.add_argument("--token-file", type=Path, metavar="FILE")


def key_from(options: argparse.Namespace) -> Key:
    """The key that the options name; raises UsageError."""
    token = read_token(options.token_file)
    return Key(token, options.tls_ca, options.tls_cert, options.tls_key)


def read_token(path: Path | None) -> str:
    """The token in a file, or none without a file; raises UsageError."""
    if path is None:
        return ""
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST_TOKEN + 1)
        token = content.decode("utf-8").strip()
    except (OSError, ValueError) as e:
        raise UsageError(f"cannot read the token file {path}: {reason_of(e)}") from e
    if len(content) > _LONGEST_TOKEN:
        raise UsageError(f"the token file {path} has more than {_LONGEST_TOKEN} bytes")
    if not token:
        raise UsageError(f"the token file {path} is empty")
    return token
