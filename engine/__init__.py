"""A streaming engine in which each message counts exactly once, whatever dies.

Build an application from marked functions, then run it in this process or on Spark::

    from bettong.engine import application, computation_multi, source, …

Names are imported when they are first used, so that processes of the engine which need none of
them (gateway, sender, receiver) start at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bettong.engine import arrays as arrays
    from bettong.engine.batching import Batching as Batching
    from bettong.engine.errors import DeadLetter as DeadLetter
    from bettong.engine.errors import FencedError as FencedError
    from bettong.engine.errors import UserFunctionError as UserFunctionError
    from bettong.engine.expiry import expiring as expiring
    from bettong.engine.formats import json_decoder as json_decoder
    from bettong.engine.formats import json_encoder as json_encoder
    from bettong.engine.functions import computation as computation
    from bettong.engine.functions import computation_multi as computation_multi
    from bettong.engine.functions import decoder as decoder
    from bettong.engine.functions import encoder as encoder
    from bettong.engine.functions import key_extractor as key_extractor
    from bettong.engine.functions import predicate as predicate
    from bettong.engine.functions import state_computation as state_computation
    from bettong.engine.functions import state_computation_multi as state_computation_multi
    from bettong.engine.functions import state_entity as state_entity
    from bettong.engine.graph import Application as Application
    from bettong.engine.graph import Pipeline as Pipeline
    from bettong.engine.graph import Sink as Sink
    from bettong.engine.graph import Stream as Stream
    from bettong.engine.graph import application as application
    from bettong.engine.graph import sink as sink
    from bettong.engine.graph import source as source
    from bettong.engine.interpreter import Interpretation as Interpretation
    from bettong.engine.interpreter import Output as Output
    from bettong.engine.interpreter import interpret as interpret
    from bettong.engine.node import GraphError as GraphError
    from bettong.engine.ticks import Tick as Tick
    from bettong.engine.ticks import watermark as watermark
    from bettong.engine.windows import Fired as Fired
    from bettong.engine.windows import count_window as count_window
    from bettong.engine.windows import session as session
    from bettong.engine.windows import sliding as sliding
    from bettong.engine.windows import tumbling as tumbling

_MODULES = {
    "batching": ("Batching",),
    "errors": ("DeadLetter", "FencedError", "UserFunctionError"),
    "expiry": ("expiring",),
    "formats": ("json_decoder", "json_encoder"),
    "functions": (
        "computation",
        "computation_multi",
        "decoder",
        "encoder",
        "key_extractor",
        "predicate",
        "state_computation",
        "state_computation_multi",
        "state_entity",
    ),
    "graph": (
        "Application",
        "Pipeline",
        "Sink",
        "Stream",
        "application",
        "sink",
        "source",
    ),
    "interpreter": ("Interpretation", "Output", "interpret"),
    "node": ("GraphError",),
    "ticks": ("Tick", "watermark"),
    "windows": ("Fired", "count_window", "session", "sliding", "tumbling"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted([*_HOME, "arrays"])


def __getattr__(name: str) -> Any:
    if name == "arrays":
        return importlib.import_module(f"{__name__}.arrays")
    if name not in _HOME:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
