"""Sending the user's functions to workers that do not have the user's files."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from pyspark import cloudpickle

from bettong.engine.graph import Application

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INSTALLED = tuple(
    Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib", "stdlib")
)


def use_this_python(spark: SparkSession) -> None:
    """Let workers on this machine run the Python that the driver runs, unless asked otherwise:
    another one may not have Bettong."""
    reported = any(os.environ.get(n) for n in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"))
    if str(spark.sparkContext.master).startswith("local") and not reported:
        spark.sparkContext.pythonExec = sys.executable


def ship_modules(app: Application, *used: object) -> None:
    """Make the modules in which the application's functions and states are, and the classes of
    other objects that workers use, travel with them, unless they are installed and so can be
    imported by workers."""
    owners: list[object] = [n.function.call for n in app.nodes if n.function is not None]
    owners += [thing for s in app.states for thing in (s.cls, type(s.codec), s.forget)]
    owners += [thing if isinstance(thing, type) else type(thing) for thing in used]
    owners += [part for thing in used for part in getattr(thing, "__dict__", {}).values()]
    for owner in owners:
        module = sys.modules.get(getattr(owner, "__module__", None) or "")
        if module is not None and not _installed(module):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _installed(module: ModuleType) -> bool:
    if module.__name__ == "__main__" or module.__name__.partition(".")[0] == "bettong":
        return True  # cloudpickle sends the main module's functions by value anyhow
    path = getattr(module, "__file__", None)
    if path is None:
        return True
    return any(Path(path).resolve().is_relative_to(folder) for folder in _INSTALLED)
