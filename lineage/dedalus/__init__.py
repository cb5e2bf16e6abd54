"""The Dedalus front end: programs in Molly's dialect, run and explained.

``load(paths, nodes)`` gives a :class:`bettong.lineage.rounds.RoundProgram` like any other.
"""

from bettong.lineage.dedalus.errors import DedalusError
from bettong.lineage.dedalus.program import DedalusProgram, load

__all__ = ["DedalusError", "DedalusProgram", "load"]
