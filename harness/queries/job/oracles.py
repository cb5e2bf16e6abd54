"""What says which output of a job is right, where ``"batch"`` does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import one_of

VARIANTS = ("merged", "partitions", "restart", "rocksdb")


@dataclass(frozen=True, init=False)
class Clean:
    """What runs without a fault give: always the same twice, and in these variants.

    Args:
        variants: ``merged`` (two steps a batch), ``partitions`` (other shuffle partitions),
            ``restart`` (stopped in good order between two batches) and ``rocksdb`` (the other
            state store). Those that change nothing for a job without state are left out there.
    """

    variants: tuple[str, ...]

    def __init__(self, variants: Sequence[str] = VARIANTS) -> None:
        for name in variants:
            one_of(name, VARIANTS, "clean variant")
        object.__setattr__(self, "variants", tuple(variants))


@dataclass(frozen=True, init=False)
class OnePerKey:
    """One row of each key of an input, and it is one of that input's rows of that key.

    Args:
        key: the column or columns.
        among: the input's name; the only input when it is not said.
    """

    key: tuple[str, ...]
    among: str

    def __init__(self, *key: str, among: str = "") -> None:
        if not key:
            raise UsageError("OnePerKey(…): name the column that rows are deduplicated by")
        for name in key:
            if not isinstance(name, str):
                raise UsageError(f"OnePerKey(…): {name!r} is no name of a column")
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "among", among)
