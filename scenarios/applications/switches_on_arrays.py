"""Lamps with one switch each, over whole arrays at a time: state of truth values, which lie in
memory otherwise than NumPy has them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bettong.engine import application, arrays, sink, source


@dataclass
class Lamp:
    is_lit: bool = False
    presses: int = 0


@arrays.decoder
def lamp(data: pa.BinaryArray) -> pa.StringArray:
    return data.cast(pa.string())


@arrays.key_extractor
def itself(lamp: pa.StringArray) -> pa.StringArray:
    return lamp


@arrays.state_computation(state=Lamp)
def press(
    lamp: pa.StringArray,
    codes: np.ndarray[Any, np.dtype[Any]],
    columns: arrays.Columns,
) -> pa.StructArray:
    now = pd.Series(codes).groupby(codes).cumcount().to_numpy() + 1
    presses = columns["presses"][codes] + now
    is_lit = columns["is_lit"][codes] ^ (now % 2 == 1)
    np.add.at(columns["presses"], codes, 1)
    columns["is_lit"][codes] = is_lit  # of several presses of a lamp the last one stays
    return pa.StructArray.from_arrays(
        [lamp, pa.array(is_lit), pa.array(presses)], names=["lamp", "is_lit", "presses"]
    )


@arrays.encoder
def line(pressed: pa.StructArray) -> pa.BinaryArray:
    """``hall is on, 3``."""
    is_lit = pc.if_else(pressed.field("is_lit"), "on", "off")
    told = pc.binary_join_element_wise(pressed.field("lamp"), is_lit, " is ")
    presses = pressed.field("presses").cast(pa.string())
    return pc.binary_join_element_wise(told, presses, ", ").cast(pa.binary())


app = application(
    "switches_on_arrays",
    source("lamps", lamp).key_by(itself).to(press).to_sink(sink("said", line)),
)


def messages(count: int, seed: int = 0, keys: int = 26) -> dict[str, list[bytes]]:
    """Input of this application."""
    chance = random.Random(seed)
    return {"lamps": [b"lamp %d" % chance.randrange(keys) for _ in range(count)]}
