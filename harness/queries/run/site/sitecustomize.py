"""Run at the start of every Python process of a driver host that is given this folder on its path:
installs the probe of sinks, then whatever other ``sitecustomize`` there is."""

import importlib.machinery
import importlib.util
import pathlib
import sys

from bettong.harness.queries.sink import probes

probes.install()

_here = str(pathlib.Path(__file__).parent)
_others = [path for path in sys.path if path != _here]
_spec = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _spec is not None and _spec.loader is not None:
    _spec.loader.exec_module(importlib.util.module_from_spec(_spec))
