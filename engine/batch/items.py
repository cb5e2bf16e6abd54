"""Messages in columns: their ids, keys and values, on their way through one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bettong.engine.ids import MessageId, StreamNames
from bettong.engine.keys import EVERY_CANONICAL, Key, canonical, hash_bytes, parse

IntArray = np.ndarray[Any, np.dtype[Any]]

Values: TypeAlias = "list[Any] | pa.Array"
"""Values of messages: Python objects, or an Arrow array after a step over arrays."""

_CACHED_KEYS = 1_000_000
_cache: dict[Key, tuple[bytes, int]] = {}


@dataclass(frozen=True, eq=False)
class KeyColumn:
    """Keys of messages: each key once, and for each message its place among them.

    Attributes:
        codes: for each message the place of its key.
        keys: canonical bytes, each once; some may be no message's.
        hashes: of the keys, uint64.
    """

    codes: IntArray
    keys: list[bytes]
    hashes: IntArray

    def take(self, places: IntArray) -> KeyColumn:
        return replace(self, codes=self.codes[places])

    def used(self) -> KeyColumn:
        """The same without keys that no message has."""
        used = np.flatnonzero(np.bincount(self.codes, minlength=len(self.keys)))
        if len(used) == len(self.keys):
            return self
        place = np.zeros(len(self.keys), np.int64)
        place[used] = np.arange(len(used))
        return KeyColumn(place[self.codes], [self.keys[i] for i in used], self.hashes[used])

    def partitions(self, count: int) -> IntArray:
        """The state partition, of ``count``, that owns each of the keys."""
        high, low = self.hashes >> np.uint64(32), self.hashes & np.uint64(0xFFFFFFFF)
        factor = np.uint64(count)  # hash * count / 2**64, whose product has more than 64 bits
        return (high * factor + (low * factor >> np.uint64(32))) >> np.uint64(32)

    def for_every_key(self) -> IntArray | None:
        """For each message whether it is for every key; None when none is."""
        for code in np.flatnonzero(self.hashes == 0).tolist():
            if self.keys[code] == EVERY_CANONICAL:
                found: IntArray = self.codes == code
                return found
        return None

    def values(self) -> list[Key]:
        """The key of each message."""
        parsed = [parse(k) for k in self.keys]
        return list(map(parsed.__getitem__, self.codes.tolist()))


def key_column(values: list[Key] | pa.Array) -> KeyColumn:
    """The column of plain keys; raises KeyTypeError for what cannot be a key."""
    codes, distinct = _dictionary(values)
    known = []
    for key in distinct:
        entry = _cache.get(key) if type(key) in (str, bytes, int) else None
        if entry is None:
            data = canonical(key)
            entry = data, hash_bytes(data)
            if len(_cache) >= _CACHED_KEYS:
                _cache.clear()
            _cache[key] = entry
        known.append(entry)
    return KeyColumn(codes, [data for data, _ in known], np.array([h for _, h in known], np.uint64))


def every_key(count: int) -> KeyColumn:
    """The column of messages that are for every key."""
    return KeyColumn(np.zeros(count, np.int64), [EVERY_CANONICAL], np.zeros(1, np.uint64))


def _dictionary(values: list[Key] | pa.Array) -> tuple[IntArray, list[Key]]:
    if isinstance(values, pa.Array):
        encoded = values.dictionary_encode(null_encoding="encode")
        return encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
    kinds = set(map(type, values))
    if len(kinds) == 1 and kinds <= {str, int, bytes}:
        try:
            encoded = pa.array(values).dictionary_encode()
            return encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        except (OverflowError, UnicodeError, pa.ArrowException):
            pass  # numbers beyond 64 bits, text that is no Unicode: one by one below
    places: dict[tuple[type, Key], int] = {}
    codes = [places.setdefault((type(v), v), len(places)) for v in values]
    return np.array(codes, np.int64), [v for _, v in places]


@dataclass(frozen=True, eq=False)
class Items:
    """Messages at one point of an application.

    Attributes:
        streams: for each message the code of its stream, see :class:`StreamNames`.
        numbers: its number in the stream.
        paths: one row for each message and one column for each step on the longest way here that
            lengthens ids; -1 for a step that was not on the message's way.
        keys: None before the first key extractor.
        values: what the last step made of it; an Arrow array after a step over arrays.
    """

    streams: IntArray
    numbers: IntArray
    paths: IntArray
    keys: KeyColumn | None
    values: Values

    def __len__(self) -> int:
        return len(self.values)

    def take(self, places: IntArray) -> Items:
        """The messages at these places, in this order."""
        return Items(
            self.streams[places],
            self.numbers[places],
            self.paths[places],
            self.keys and self.keys.take(places),
            take_values(self.values, places),
        )

    def of_depth(self, depth: int) -> Items:
        """The same with paths of so many columns; those left out hold nothing."""
        return replace(self, paths=self.paths[:, :depth])

    def with_values(self, values: Values) -> Items:
        return replace(self, values=values)

    def one_to_many(self, groups: Sequence[Sequence[Any]]) -> Items:
        """Each message replaced by its group; ``.k`` is appended to the ids."""
        sizes = np.fromiter(map(len, groups), np.int64, len(groups))
        places = np.repeat(np.arange(len(groups)), sizes)
        first = np.cumsum(sizes) - sizes
        within = np.arange(len(places)) - first[places]
        return Items(
            self.streams[places],
            self.numbers[places],
            append_path(self.paths[places], within),
            self.keys and self.keys.take(places),
            [value for group in groups for value in group],
        )

    def id_of(self, place: int, streams: StreamNames) -> MessageId:
        path = tuple(self.paths[place].tolist())
        return MessageId(streams[int(self.streams[place])], int(self.numbers[place]), path)

    def key_of(self, place: int) -> Key | None:
        data = EVERY_CANONICAL if self.keys is None else self.keys.keys[self.keys.codes[place]]
        return None if data == EVERY_CANONICAL else parse(data)

    def ids(self, streams: StreamNames) -> pa.Array:
        """The id of each message as text."""
        names = [streams[code] + "/" for code in range(int(self.streams.max(initial=0)) + 1)]
        heads = pa.array(names, pa.string()).take(pa.array(self.streams))
        texts = pc.binary_join_element_wise(heads, _decimal(self.numbers), "")
        for column in self.paths.T:
            longer = pc.binary_join_element_wise(texts, _decimal(column), ".")
            way = column >= 0
            texts = longer if way.all() else pc.if_else(pa.array(way), longer, texts)
        return texts


def _decimal(numbers: IntArray) -> pa.Array:
    return pa.array(np.ascontiguousarray(numbers)).cast(pa.string())


def plain(values: Values) -> list[Any]:
    """Values as Python objects."""
    return values if isinstance(values, list) else list(values.to_pylist())


def take_values(values: Values, places: IntArray) -> Values:
    """Values at these places, in this order."""
    if isinstance(values, list):
        return list(map(values.__getitem__, places.tolist()))
    return values.take(pa.array(places))


def _concat_values(parts: Sequence[Values]) -> Values:
    arrays = [p for p in parts if isinstance(p, pa.Array)]
    if len(arrays) == len(parts) and len({a.type for a in arrays}) == 1:
        return pa.concat_arrays(arrays)
    return list(chain.from_iterable(map(plain, parts)))


def append_path(paths: IntArray, last: IntArray) -> IntArray:
    """Paths with one more column."""
    longer = pad_paths(paths, paths.shape[1] + 1)
    longer[:, -1] = last
    return longer


def pad_paths(paths: IntArray, width: int) -> IntArray:
    """A copy with as many columns as asked."""
    padded = np.full((len(paths), width), -1, np.int32)
    padded[:, : paths.shape[1]] = paths
    return padded


def concat(parts: Sequence[Items]) -> Items:
    """Items of several parts, one after the other; all have keys or none has."""
    if len(parts) == 1:
        return parts[0]
    width = max(p.paths.shape[1] for p in parts)
    return Items(
        np.concatenate([p.streams for p in parts]),
        np.concatenate([p.numbers for p in parts]),
        np.concatenate([pad_paths(p.paths, width) for p in parts]),
        _concat_keys([p.keys for p in parts if p.keys is not None]),
        _concat_values([p.values for p in parts]),
    )


def _concat_keys(columns: list[KeyColumn]) -> KeyColumn | None:
    if not columns:
        return None
    places: dict[bytes, int] = {}
    codes = []
    for column in columns:
        own = np.array([places.setdefault(k, len(places)) for k in column.keys], np.int64)
        codes.append(own[column.codes])
    hashes = np.zeros(len(places), np.uint64)
    for column in columns:
        hashes[[places[k] for k in column.keys]] = column.hashes
    return KeyColumn(np.concatenate(codes), list(places), hashes)


def order_of(items: Items, ranks: IntArray | None = None) -> IntArray | None:
    """Places in the order in which a state entity meets the messages: by number, stream, rank
    of the step that it meets them in, and path. None when they are in that order already."""
    columns = [items.numbers, items.streams]
    columns += [] if ranks is None else [ranks]
    columns += list(items.paths.T)
    if _ordered(columns):
        return None
    return np.lexsort(columns[::-1])


def _ordered(columns: list[IntArray]) -> bool:
    undecided = np.ones(max(len(columns[0]) - 1, 0), bool)
    for column in columns:
        below, above = column[:-1], column[1:]
        if (undecided & (below > above)).any():
            return False
        undecided &= below == above
    return True
