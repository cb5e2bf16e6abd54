"""Hashes of whole Arrow columns at once, 64 bits a value.

Equal values have equal hashes whichever file they come from: numbers of all kinds and widths,
text of all Arrow's kinds, dictionary-coded or not, JSON of one type or of several in a column.
Values of different types (1, true, "1") differ. Two different values share a hash with
probability 2^-64.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bettong.harness.histories.json_values import JsonType, canonical, float_of

U64 = npt.NDArray[np.uint64]

SLICE = 1 << 15
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_NULL = np.uint64(0x5D1E6A7A5D1E6A7B)
_S29, _S32 = np.uint64(29), np.uint64(32)
_FALSE_TRUE = np.array([0x27D4EB2F165667C5, 0x9FB21C651E98DF25], np.uint64)
_FLOAT = np.uint64(0xE7037ED1A0B428DB)
_TEXT = np.uint64(0x8EBC6AF09C88C6E3)
_JSON = np.uint64(0x589965CC75374CC3)
_TIME = np.uint64(0x1D8E4E27C47D124F)
_DURATION = np.uint64(0xEB44ACCAB455D165)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST_BYTES = np.array([256**n - 1 for n in range(9)], np.uint64)


def mix(values: U64) -> U64:
    """A one-to-one scrambling of 64-bit words (after the finaliser of splitmix64), in place."""
    values *= _GOLDEN
    values ^= values >> _S29
    values *= _MIX
    values ^= values >> _S32
    return values


def hash_column(array: pa.Array) -> U64:
    """One hash for each value; null has its own."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        coded: U64 = np.append(hash_column(array.dictionary), _NULL)
        codes = array.indices.fill_null(len(array.dictionary))
        decoded: U64 = coded[codes.to_numpy(zero_copy_only=False)]
        return decoded
    hashes = _hash_values(array)
    if array.null_count:
        hashes[np.asarray(array.is_null())] = _NULL
    return hashes


def _hash_values(array: pa.Array) -> U64:
    kind = array.type
    if isinstance(kind, JsonType):
        return _hash_json(array.storage.to_pylist())
    if pa.types.is_null(kind):
        return np.full(len(array), _NULL)
    if pa.types.is_boolean(kind):
        chosen: U64 = _FALSE_TRUE[array.fill_null(False).cast(pa.int8()).to_numpy()]
        return chosen
    if pa.types.is_integer(kind):
        return _numbers(array)
    if pa.types.is_floating(kind):
        return _floats(array)
    if pa.types.is_timestamp(kind):
        return _ticks(array, _TIME if kind.tz is None else ~_TIME)
    if pa.types.is_duration(kind):
        return _ticks(array, _DURATION)
    if pa.types.is_time(kind):
        texts = array.cast(pa.time64("ns")).cast(pa.string())
        return _text(pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), "."))
    if pa.types.is_date(kind):
        return _text(array.cast(pa.string()))
    if pa.types.is_fixed_size_binary(kind):
        return _text(array.cast(pa.binary()))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _text(array)
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _text(array.cast(pa.string() if pa.types.is_large_string(kind) else pa.binary()))
    return _hash_json([None if v is None else canonical(v) for v in array.to_pylist()])


def _hash_json(texts: Sequence[str | None]) -> U64:
    """Canonical texts, each hashed as a column of its own type would be."""
    hashes = np.full(len(texts), _NULL)
    integers: list[tuple[int, Any]] = []
    floats: list[tuple[int, Any]] = []
    strings: list[tuple[int, Any]] = []
    others: list[tuple[int, Any]] = []
    for place, text in enumerate(texts):
        if text is None:
            continue
        if text[0] == '"':
            strings.append((place, json.loads(text).encode("utf-8", "surrogatepass")))
        elif text in ("true", "false"):
            hashes[place] = _FALSE_TRUE[int(text == "true")]
        elif text[0] in "[{":
            others.append((place, text))
        elif text.lstrip("-").isdecimal():
            integers.append((place, int(text)))
        else:
            value = float(text) if text[-1] in "Ny" else float_of(text)
            (others if value is None else floats).append((place, text if value is None else value))
    for found, kind, hashed in (
        (integers, pa.int64(), _numbers),
        (floats, pa.float64(), _floats),
        (strings, pa.binary(), _text),
        (others, pa.binary(), _text_of_json),
    ):
        if found:
            places, values = zip(*found, strict=True)
            hashes[list(places)] = hashed(pa.array(values, kind))
    return hashes


def _text_of_json(array: pa.Array) -> U64:
    return mix(_text(array) ^ _JSON)


def _numbers(array: pa.Array) -> U64:
    filled = array.fill_null(0) if array.null_count else array
    values: npt.NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    if values.dtype == np.uint64 and (values >= 1 << 63).any():
        return _hash_json([canonical(v) for v in values.tolist()])
    return mix(values.astype(np.int64).view(np.uint64))


def _floats(array: pa.Array) -> U64:
    """A whole number as the integer that it equals; every not-a-number alike."""
    values = array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
    whole = (values == np.floor(values)) & (values >= -(2.0**63)) & (values < 2.0**63)
    words = np.where(np.isnan(values), np.nan, values).view(np.uint64).copy()
    mix(words)
    words ^= _FLOAT
    words[whole] = values[whole].astype(np.int64).view(np.uint64)
    return mix(words)


def _ticks(array: pa.Array, what: np.uint64) -> U64:
    """The same instant or duration alike in all units. ``what`` keeps one from the other, and a
    time of day of no zone from one of a zone's."""
    per_second = _PER_SECOND[array.type.unit]
    ticks = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    seconds, rest = np.divmod(ticks, per_second)
    words = mix(seconds.view(np.uint64) ^ what)
    return mix(words + (rest * (10**9 // per_second)).view(np.uint64))


def _text(array: pa.Array) -> U64:
    """In slices that stay in a core's cache."""
    slices = [array.slice(at, SLICE) for at in range(0, len(array), SLICE)]
    return np.concatenate([_slice_of_text(s) for s in slices] or [np.empty(0, np.uint64)])


def _slice_of_text(array: pa.Array) -> U64:
    """Eight bytes at a time, all values in step."""
    _, offset_buffer, data = array.buffers()
    count = len(array)
    offsets = np.frombuffer(offset_buffer, np.int32)[array.offset : array.offset + count + 1]
    start, end = int(offsets[0]), int(offsets[-1])
    raw = np.zeros(end - start + 16, np.uint8)
    if end > start:
        raw[: end - start] = np.frombuffer(data, np.uint8)[start:end]
    words = np.ndarray((len(raw) - 7,), "<u8", raw, strides=(1,))
    at = offsets[:-1].astype(np.int64) - start
    left = np.diff(offsets).astype(np.int64)
    hashes = mix(left.astype(np.uint64) ^ _TEXT)  # scrambled, or a length could undo a first byte
    shortest, longest = int(left.min()), int(left.max())
    if shortest == longest:
        return _even(hashes, raw, longest)
    done = 0
    while done + 8 <= shortest:
        hashes ^= words[at]
        mix(hashes)
        at += 8
        done += 8
    going = np.arange(count)
    while done < longest:
        if shortest <= done:  # only those that are this long go on
            going = going[left[going] > done]
            hashes[going] = _next_word(hashes[going], words, at[going], left[going] - done)
        else:
            hashes = _next_word(hashes, words, at, left - done)
        at += 8
        done += 8
    return hashes


def _even(hashes: U64, raw: npt.NDArray[np.uint8], width: int) -> U64:
    """The same for values that all have this many bytes: words are found without their places."""
    for done in range(0, width, 8):
        words = np.ndarray((len(hashes),), "<u8", raw, done, (width,))
        hashes ^= words if width - done >= 8 else words & _FIRST_BYTES[width - done]
        mix(hashes)
    return hashes


def _next_word(
    hashes: U64, words: npt.NDArray[Any], at: npt.NDArray[np.int64], left: npt.NDArray[np.int64]
) -> U64:
    """Add one word to each hash; of the last word only the ``left`` bytes that belong to it."""
    return mix(hashes ^ (words[at] & _FIRST_BYTES[np.minimum(left, 8)]))


def first_without_id(array: pa.Array) -> int | None:
    """Place of the first value that is null, an empty text or not a number."""
    as_json = False
    if array.null_count:
        return int(pc.index(pc.is_null(array), True).as_py())
    if isinstance(array.type, JsonType):
        array, as_json = array.storage, True
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_floating(array.type):
        empty = pc.is_nan(array)
    elif pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        empty = pc.equal(array, '""') if as_json else pc.equal(pc.binary_length(array), 0)
    else:
        return None
    place = int(pc.index(empty, True).as_py())
    return None if place < 0 else place
