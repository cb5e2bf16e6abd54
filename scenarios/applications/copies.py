"""Gives back each line as it came: of a few million bytes, where that is asked for."""

from __future__ import annotations

from bettong.engine import application, decoder, encoder, sink, source


@decoder
def text(data: bytes) -> str:
    return data.decode()


@encoder
def line(value: str) -> bytes:
    return value.encode()


app = application("copies", source("lines", text).to_sink(sink("copied", line)))
