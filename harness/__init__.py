"""The test harness: run scenarios under faults, validate sinks, judge outputs::

    from bettong.harness import LocalBackend, check_sink, run_scenario

Names are imported when they are first used, so that a process that needs one of them does not load
the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bettong.harness.api import replay as replay
    from bettong.harness.api import run_scenario as run_scenario
    from bettong.harness.backends.docker import DockerBackend as DockerBackend
    from bettong.harness.backends.local import LocalBackend as LocalBackend
    from bettong.harness.catalog import CatalogEntry as CatalogEntry
    from bettong.harness.faults.fault import Fault as Fault
    from bettong.harness.faults.kinds import Crash as Crash
    from bettong.harness.faults.kinds import CrashWriting as CrashWriting
    from bettong.harness.faults.kinds import Cut as Cut
    from bettong.harness.faults.kinds import Delay as Delay
    from bettong.harness.faults.kinds import Duplicate as Duplicate
    from bettong.harness.faults.kinds import Omit as Omit
    from bettong.harness.faults.kinds import OmitReply as OmitReply
    from bettong.harness.faults.kinds import Pause as Pause
    from bettong.harness.faults.kinds import PowerCut as PowerCut
    from bettong.harness.faults.kinds import Reset as Reset
    from bettong.harness.faults.kinds import Silence as Silence
    from bettong.harness.faults.kinds import Slice as Slice
    from bettong.harness.faults.kinds import Stall as Stall
    from bettong.harness.faults.kinds import Stop as Stop
    from bettong.harness.faults.kinds import Storage as Storage
    from bettong.harness.faults.kinds import Throttle as Throttle
    from bettong.harness.faults.point import Point as Point
    from bettong.harness.faults.registry import register as register
    from bettong.harness.faults.schedule import Schedule as Schedule
    from bettong.harness.queries.check import check_sink as check_sink
    from bettong.harness.queries.job.check import check_job as check_job
    from bettong.harness.queries.job.compare import Bag as Bag
    from bettong.harness.queries.job.compare import OuterBag as OuterBag
    from bettong.harness.queries.job.compare import Table as Table
    from bettong.harness.queries.job.contract import Job as Job
    from bettong.harness.queries.job.inputs import Files as Files
    from bettong.harness.queries.job.inputs import Recorded as Recorded
    from bettong.harness.queries.job.inputs import Rows as Rows
    from bettong.harness.queries.job.inputs import Topic as Topic
    from bettong.harness.queries.job.oracles import Clean as Clean
    from bettong.harness.queries.job.oracles import OnePerKey as OnePerKey
    from bettong.harness.queries.sink.contract import Environment as Environment
    from bettong.harness.queries.sink.contract import Sink as Sink
    from bettong.harness.queries.sink.contract import foreach_batch_sink as foreach_batch_sink
    from bettong.harness.queries.sink.contract import format_sink as format_sink
    from bettong.harness.scenario import Resource as Resource
    from bettong.harness.scenario import Scenario as Scenario
    from bettong.harness.search.bounds import SearchBounds as SearchBounds
    from bettong.harness.search.bounds import bounds_of as bounds_of

_MODULES = {
    "api": (
        "replay",
        "run_scenario",
    ),
    "backends.local": ("LocalBackend",),
    "catalog": ("CatalogEntry",),
    "backends.docker": ("DockerBackend",),
    "faults.kinds": (
        "Crash",
        "CrashWriting",
        "Cut",
        "Delay",
        "Duplicate",
        "Omit",
        "OmitReply",
        "Pause",
        "PowerCut",
        "Reset",
        "Silence",
        "Slice",
        "Stall",
        "Stop",
        "Storage",
        "Throttle",
    ),
    "faults.fault": ("Fault",),
    "faults.point": ("Point",),
    "faults.registry": ("register",),
    "scenario": (
        "Resource",
        "Scenario",
    ),
    "faults.schedule": ("Schedule",),
    "search.bounds": (
        "SearchBounds",
        "bounds_of",
    ),
    "queries.check": ("check_sink",),
    "queries.job.check": ("check_job",),
    "queries.job.compare": ("Bag", "OuterBag", "Table"),
    "queries.job.contract": ("Job",),
    "queries.job.inputs": ("Files", "Recorded", "Rows", "Topic"),
    "queries.job.oracles": ("Clean", "OnePerKey"),
    "queries.sink.contract": (
        "Environment",
        "Sink",
        "foreach_batch_sink",
        "format_sink",
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOME)
_FORMER = {"Reach": "SearchBounds"}


def __getattr__(name: str) -> Any:
    name = _FORMER.get(name, name)
    if name not in _HOME:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
