"""Entities of plain dataclasses as NumPy columns, for state computations over arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from bettong.engine.errors import UserFunctionError

Columns = dict[str, np.ndarray[Any, np.dtype[Any]]]


def to_columns(column: pa.StructArray) -> Columns:
    """The fields of a column without nulls, to be changed in place."""
    return {
        f.name: column.field(i).to_numpy(zero_copy_only=False).copy()
        for i, f in enumerate(column.type)
    }


def from_columns(step: str, columns: Columns, kind: pa.StructType) -> pa.StructArray:
    """The column of changed fields; raises UserFunctionError when they are not what they were."""
    try:
        arrays = [pa.array(columns[f.name], f.type) for f in kind]
        return pa.StructArray.from_arrays(arrays, fields=list(kind))
    except (pa.ArrowException, KeyError, TypeError, ValueError) as e:
        raise UserFunctionError(
            f"step {step} has left columns that are no entities: {type(e).__name__}: {e}"
        ) from e
