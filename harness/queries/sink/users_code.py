"""Which of the code under way is the user's."""

from __future__ import annotations

import sysconfig
from types import FrameType

_OURS = ("bettong.engine.", "bettong.harness.", "bettong.lineage.")
_NOT_THE_USERS = ("pyspark.", "py4j.", *_OURS)
_LIBRARIES = f"{sysconfig.get_path('stdlib')}/"


def is_users(frame: FrameType) -> bool:
    """Whether it is neither Spark's, nor ours, nor Python's own."""
    module = str(frame.f_globals.get("__name__", ""))
    file = frame.f_code.co_filename
    library = file.startswith(_LIBRARIES) and "site-packages" not in file
    return not (module.startswith(_NOT_THE_USERS) or library or file.startswith("<"))
