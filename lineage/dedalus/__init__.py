"""The Dedalus front end: programs in Molly's dialect, run and explained.

``load(paths, nodes)`` gives a :class:`bettong.lineage.protocols.rounds.RoundProgram` like any
other.

The language, where Molly's papers leave it open:

* A rule fires where its first body term is (that term's first column; anywhere for ``_``). An
  ``@next`` or ``@async`` rule fires only at a node; a deductive rule may speak of things that are
  no nodes. An ``@async`` head goes to its first column, and nowhere when that names no node.
* A node's messages to itself take a round and are never lost, not even after its crash
  (``send-stop``).
* ``r(…)@N`` in a body is what held in round N; its rule fires from round N on.
* Aggregates range over the distinct values of their group. Those of ``@next`` and ``@async`` rules
  are made where and when the values arrive. There is no group without a value, hence no count of 0.
* ``crash(Seen, Node, Time)`` holds in every round, from the first on. ``clock(From, To, Sent)``
  holds in the round in which what From sent To in round Sent arrives.
* ``full-stop`` and ``restart``: the facts that @next rules brought to a node stay as they are while
  it stands still; facts given to it, and messages, do not arrive; deductive rules go on, as a view
  of what is there. A restart loses the relations that ``load`` is told are volatile.
"""

from bettong.lineage.dedalus.errors import DedalusError
from bettong.lineage.dedalus.program import DedalusProgram, load

__all__ = ["DedalusError", "DedalusProgram", "load"]
