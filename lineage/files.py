"""Files that users give: read as a whole, within limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bettong.lineage.errors import UsageError, reason_of

LIMIT = 256 << 20


def read_bytes(path: Path, what: str) -> bytes:
    """The content of a file; a pipe will do.

    Args:
        what: what the file is, for the error.

    Raises UsageError when it cannot be read or has more than LIMIT bytes.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LIMIT + 1)
    except (OSError, ValueError) as e:
        raise UsageError(f"cannot read {what} {path}: {reason_of(e)}") from e
    if len(content) > LIMIT:
        raise UsageError(f"{what} {path} has more than {LIMIT >> 20} MiB: it cannot be meant")
    return content


def read_text(path: Path, what: str) -> str:
    """The text of such a file; raises UsageError also when it is no UTF-8."""
    try:
        return read_bytes(path, what).decode("utf-8")
    except UnicodeDecodeError as e:
        raise UsageError(f"{what} {path} is no text: {e}") from e


def read_json(path: Path, what: str) -> Any:
    """The JSON value in such a file; raises UsageError."""
    try:
        return json.loads(read_text(path, what))
    except (ValueError, RecursionError) as e:
        reason = "it is nested too deep" if isinstance(e, RecursionError) else e
        raise UsageError(f"cannot read {what} {path}: {reason}") from e
