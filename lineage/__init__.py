"""Lineage-driven fault injection: traces and lineage in, minimal fault hypotheses out.

- :mod:`~bettong.lineage.trace`, :mod:`~bettong.lineage.results`, :mod:`~bettong.lineage.errors`:
  what every room shares.
- :mod:`~bettong.lineage.graph`: the lineage graph; :mod:`~bettong.lineage.queries`: supports,
  cones, frontiers; :mod:`~bettong.lineage.export`: JSON, DOT, OpenLineage.
- :mod:`~bettong.lineage.faults`: faults and bounds; :mod:`~bettong.lineage.hypotheses`: minimal
  fault sets by a SAT solver.
- :mod:`~bettong.lineage.executor`: what a system under test provides;
  :mod:`~bettong.lineage.loop`: the search.
- :mod:`~bettong.lineage.spec`: failure specifications of round-based programs;
  :mod:`~bettong.lineage.protocol`: protocols as plain Python;
  :mod:`~bettong.lineage.simulator`: their simulator; :mod:`~bettong.lineage.dedalus`: Dedalus
  programs; :mod:`~bettong.lineage.round_executor`: both as systems under test.
- :mod:`~bettong.lineage.explorer`, :mod:`~bettong.lineage.sweep`: judges that share nothing with
  the solver; :mod:`~bettong.lineage.random_search`: the baseline.
- :mod:`~bettong.lineage.strategies`: Hypothesis strategies.
"""
