"""Frames, blocks and messages: whatever goes out comes in, and nothing else does."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_type_hints

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine.ingest import frames
from bettong.engine.net.block import Block
from bettong.engine.net.codec import Codec, ErrorReply
from bettong.engine.net.errors import FrameError
from bettong.engine.net.frame import HEADER_BYTES, check_body, encode, parse_header
from bettong.engine.receiver import protocol

u64 = st.integers(0, 2**64 - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
payloads = st.lists(st.binary(max_size=20), max_size=8)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    int: u64,
    bool: st.booleans(),
    str: text,
    bytes: st.binary(max_size=20),
    Block: payloads.map(Block.of),
    tuple[str, ...]: st.lists(text, max_size=4).map(tuple),
    dict[int, int]: st.dictionaries(u64, u64, max_size=4),
}


def messages(codec: Codec) -> st.SearchStrategy[Any]:
    types = [message for message, _ in codec._layouts.values()]
    return st.one_of(
        st.builds(t, *[VALUES[get_type_hints(t)[field.name]] for field in fields(t)]) for t in types
    )


CODECS = [frames.CODEC, protocol.CODEC]
all_messages = st.sampled_from(CODECS).flatmap(lambda c: st.tuples(st.just(c), messages(c)))


@given(all_messages)
def test_messages_survive_the_wire(case: tuple[Codec, Any]) -> None:
    codec, message = case
    frame = encode(message.KIND, codec.encode(message))
    header = parse_header(frame[:HEADER_BYTES], 1 << 20)
    check_body(header, frame[HEADER_BYTES:])
    assert codec.decode(header.kind, frame[HEADER_BYTES:]) == message


@given(all_messages, st.data())
def test_no_flipped_bit_passes(case: tuple[Codec, Any], data: st.DataObject) -> None:
    codec, message = case
    frame = bytearray(encode(message.KIND, codec.encode(message)))
    place = data.draw(st.integers(0, len(frame) - 1))
    frame[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(FrameError):
        check_body(parse_header(bytes(frame[:HEADER_BYTES]), 1 << 20), frame[HEADER_BYTES:])


@given(st.sampled_from(CODECS), st.integers(0, 255), st.binary(max_size=80))
def test_hostile_bodies_are_refused_or_mean_what_they_say(
    codec: Codec, kind: int, body: bytes
) -> None:
    try:
        message = codec.decode(kind, body)
    except FrameError:
        return
    again = b"".join(bytes(part) for part in codec.encode(message))
    assert codec.decode(kind, again) == message


@given(all_messages, st.data())
def test_cut_bodies_are_refused(case: tuple[Codec, Any], data: st.DataObject) -> None:
    codec, message = case
    body = b"".join(bytes(part) for part in codec.encode(message))
    if body:
        with pytest.raises(FrameError):
            codec.decode(message.KIND, body[: data.draw(st.integers(0, len(body) - 1))])


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (b"GET / HTTP/1.1\r\n", "not a frame of Bettong"),
        (b"BT\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00", "version 2 is unknown; this side speaks 1"),
        (b"BT\x01\x01\xff\xff\xff\xff\x00\x00\x00\x00", "over the limit of 1024 bytes"),
    ],
)
def test_wrong_headers_say_why(header: bytes, why: str) -> None:
    with pytest.raises(FrameError, match=why):
        parse_header(header[:HEADER_BYTES], 1024)


def test_numbers_that_do_not_fit_are_refused_before_they_are_sent() -> None:
    with pytest.raises(ValueError, match=r"Credit\.limit"):
        frames.CODEC.encode(frames.Credit(-1))


def test_every_protocol_can_say_error() -> None:
    for codec in CODECS:
        error = ErrorReply("code", "text")
        assert codec.decode(255, b"".join(map(bytes, codec.encode(error)))) == error


@given(payloads, st.data())
def test_a_slice_of_a_block_is_that_of_its_messages(
    found: list[bytes], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(found)))
    stop = data.draw(st.integers(start, len(found)))
    part = Block.of(found).slice(start, stop)
    assert part.payloads() == found[start:stop]
    assert Block.parse(b"".join(map(bytes, part.buffers()))) == part
    assert part.to_arrow().to_pylist() == found[start:stop]


@given(st.lists(payloads, max_size=5))
def test_joined_blocks_hold_all_messages(found: list[list[bytes]]) -> None:
    joined = Block.join(map(Block.of, found))
    assert joined.payloads() == [payload for part in found for payload in part]
    assert len(joined) == sum(map(len, found))


@given(payloads, st.data(), st.sampled_from([pa.binary(), pa.large_binary()]))
def test_a_block_of_an_arrow_array_is_that_of_its_values(
    found: list[bytes], data: st.DataObject, kind: pa.DataType
) -> None:
    start = data.draw(st.integers(0, len(found)))
    stop = data.draw(st.integers(start, len(found)))
    part = Block.of_arrow(pa.array(found, kind).slice(start, stop - start))
    assert part.payloads() == found[start:stop]
    assert Block.parse(b"".join(map(bytes, part.buffers()))) == part


def test_an_arrow_array_that_lacks_a_value_makes_no_block() -> None:
    with pytest.raises(TypeError):
        Block.of_arrow(pa.array([b"a", None]))
