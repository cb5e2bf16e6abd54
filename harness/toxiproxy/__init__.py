"""Toxiproxy: a strict client, an embedded server, and links that can be broken exactly."""

from bettong.harness.toxiproxy.client import Proxy, Toxiproxy
from bettong.harness.toxiproxy.errors import (
    ProxyExistsError,
    ProxyNotFoundError,
    ToxicError,
    ToxiproxyError,
    ToxiproxyHungError,
)
from bettong.harness.toxiproxy.link import Armed, Evidence, ProxiedLink
from bettong.harness.toxiproxy.server import ToxiproxyServer, resolve
from bettong.harness.toxiproxy.spec import Stream, Toxic
from bettong.harness.toxiproxy.traffic import Flow, Touched, Traffic
from bettong.harness.toxiproxy.watchdog import SupervisedToxiproxy

__all__ = [
    "Armed",
    "Evidence",
    "Flow",
    "ProxiedLink",
    "Proxy",
    "ProxyExistsError",
    "ProxyNotFoundError",
    "Stream",
    "SupervisedToxiproxy",
    "Touched",
    "Toxic",
    "ToxicError",
    "Toxiproxy",
    "ToxiproxyError",
    "ToxiproxyHungError",
    "ToxiproxyServer",
    "Traffic",
    "resolve",
]
