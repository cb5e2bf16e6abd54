"""What :mod:`bettong.engine.net.access` was called; it still works, and says so."""

import warnings

from bettong.engine.address import Address
from bettong.engine.net.access import Key, ListenConfig

__all__ = ["Address", "Key", "ListenConfig"]

warnings.warn("bettong.engine.net.doors is bettong.engine.net.access now", DeprecationWarning, 2)
