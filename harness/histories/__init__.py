"""Checks of stored histories of any size: Arrow, Parquet and JSON lines, in bounded memory."""

from __future__ import annotations

from bettong.harness.histories.check import StoredCheck
from bettong.harness.histories.columns import Columns
from bettong.harness.histories.malformed import MalformedHistoryError
from bettong.harness.histories.readers import StoredHistory

__all__ = ["Columns", "MalformedHistoryError", "StoredCheck", "StoredHistory"]
