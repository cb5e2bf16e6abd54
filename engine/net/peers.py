"""Where a peer is, as seen from this process.

On a cluster whose links are all watched, each node reaches each peer at an address of its own.
``BETTONG_PEERS`` holds them for the processes of a node: JSON of the peer's name and HOST:PORT.
"""

from __future__ import annotations

import json
import os

from bettong.engine.address import Address
from bettong.lineage.errors import UsageError

ENV_PEERS = "BETTONG_PEERS"


def address_of(peer: str, default: Address) -> Address:
    """The peer's address for this process; ``default`` where the environment has none.

    Raises:
        UsageError: the environment's value is not what it should be.
    """
    text = os.environ.get(ENV_PEERS)
    if not text:
        return default
    try:
        found = json.loads(text).get(peer)
    except (ValueError, AttributeError) as e:
        raise UsageError(f"{ENV_PEERS} is not a JSON object of HOST:PORT by name: {e}") from e
    return default if found is None else Address.parse(found)
