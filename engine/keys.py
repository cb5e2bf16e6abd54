"""Keys: what they may be, how they are written, and where they go.

A key is ``str``, ``bytes`` or ``int``. Its canonical bytes are a letter for its type followed by
its UTF-8 text, its bytes or its decimal digits, so that ``"1"``, ``b"1"`` and ``1`` are three keys.
A key's hash is the first 8 bytes of BLAKE2b of its canonical bytes, read as a big-endian number:
the same on every machine and in every version. State partition p of P owns the hashes in
``[p * 2**64 / P, (p + 1) * 2**64 / P)``, so that another number of partitions reads slices of the
same sorted files.
"""

from __future__ import annotations

from hashlib import blake2b

from bettong.lineage.errors import BettongError

Key = str | bytes | int

HASH_SPACE = 1 << 64


class _EveryKey(str):
    """Told from every key that a user's function gives by being this one object."""


EVERY: Key = _EveryKey("every key")
"""In the place of a key: the message is for every key that has an entity."""

EVERY_CANONICAL = b""
"""What stands for it among canonical bytes."""


class KeyTypeError(BettongError):
    """A key extractor gave something that cannot be a key."""


def canonical(key: Key) -> bytes:
    """The canonical bytes of a key; raises KeyTypeError for anything else."""
    if type(key) is str:
        try:
            return b"s" + key.encode()
        except UnicodeEncodeError as e:
            raise KeyTypeError(f"key {key!r} has no UTF-8 form: {e.reason}") from e
    if type(key) is bytes:
        return b"b" + key
    if type(key) is int:
        return b"i%d" % key
    raise KeyTypeError(f"a key is str, bytes or int, got {type(key).__name__}: {key!r}")


def parse(data: bytes) -> Key:
    """The key of its canonical bytes; raises KeyTypeError when they are none."""
    kind, rest = data[:1], data[1:]
    try:
        if kind == b"s":
            return rest.decode()
        if kind == b"b":
            return rest
        if kind == b"i" and b"%d" % int(rest) == rest:
            return int(rest)
    except ValueError:
        pass
    raise KeyTypeError(f"not the canonical bytes of a key: {data[:80]!r}")


def key_text(key: Key | None) -> str | None:
    """The key of an output as a reader of a sink sees it."""
    if isinstance(key, bytes):
        return key.decode(errors="backslashreplace")
    return None if key is None else str(key)


def reported(key: Key | None) -> Key | None:
    """The key as errors tell it: a message that is for every key has none."""
    return None if key is EVERY else key


def hash_bytes(data: bytes) -> int:
    """Hash of canonical bytes, in ``[0, 2**64)``."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def partition_of(hashed: int, partitions: int) -> int:
    """The state partition that owns a hash."""
    return hashed * partitions >> 64


def bounds(partition: int, partitions: int) -> tuple[int, int]:
    """First hash of a state partition, and the first one after it."""
    low = -(-partition * HASH_SPACE // partitions)
    high = -(-(partition + 1) * HASH_SPACE // partitions)
    return low, high
