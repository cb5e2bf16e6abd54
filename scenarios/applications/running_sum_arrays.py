"""The running sum of each key, over whole arrays at a time: the same outputs as
:mod:`bettong.scenarios.applications.running_sum`, some times faster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bettong.engine import application, arrays, sink, source
from bettong.scenarios.applications.running_sum import Sum, messages

__all__ = ["app", "messages"]


@arrays.decoder
def amounts(data: pa.BinaryArray) -> pa.StructArray:
    parts = pc.split_pattern(data.cast(pa.string()), ",")
    names = pc.list_element(parts, 0)
    numbers = pc.list_element(parts, 1).cast(pa.int64())
    return pa.StructArray.from_arrays([names, numbers], names=["name", "number"])


@arrays.key_extractor
def names(message: pa.StructArray) -> pa.StringArray:
    return message.field("name")


@arrays.state_computation(state=Sum)
def add(
    message: pa.StructArray,
    codes: np.ndarray[Any, np.dtype[Any]],
    columns: arrays.Columns,
) -> pa.StructArray:
    numbers = message.field("number").to_numpy()
    totals = columns["total"]
    running = pd.Series(numbers).groupby(codes).cumsum().to_numpy() + totals[codes]
    np.add.at(totals, codes, numbers)
    return pa.StructArray.from_arrays(
        [message.field("name"), pa.array(running)], names=["name", "total"]
    )


@arrays.encoder
def lines(total: pa.StructArray) -> pa.BinaryArray:
    text = pc.binary_join_element_wise(
        total.field("name"), total.field("total").cast(pa.string()), " "
    )
    return text.cast(pa.binary())


app = application(
    "running_sum_arrays",
    source("amounts", amounts).key_by(names).to(add).to_sink(sink("sums", lines)),
)
