"""Lineage-driven fault injection: traces and lineage in, minimal fault hypotheses out.

- :mod:`~bettong.lineage.trace`, :mod:`~bettong.lineage.results`, :mod:`~bettong.lineage.errors`:
  what every room shares.
- :mod:`~bettong.lineage.graph`: the lineage graph; :mod:`~bettong.lineage.queries`: supports,
  cones, frontiers; :mod:`~bettong.lineage.export`: DOT, OpenLineage.
- :mod:`~bettong.lineage.faults`: faults and bounds; :mod:`~bettong.lineage.search.hypotheses`:
  minimal fault sets by a SAT solver.
- :mod:`~bettong.lineage.search.executor`: what a system under test provides;
  :mod:`~bettong.lineage.search.loop`: the search.
- :mod:`~bettong.lineage.protocols.failure_spec`: failure specifications of round-based programs;
  :mod:`~bettong.lineage.protocols.protocol`: protocols as plain Python;
  :mod:`~bettong.lineage.protocols.simulator`: their simulator; :mod:`~bettong.lineage.dedalus`:
  Dedalus programs; :mod:`~bettong.lineage.protocols.executor`: both as systems under test.
- :mod:`~bettong.lineage.protocols.explorer`, :mod:`~bettong.lineage.protocols.sweep`: judges that
  share nothing with the solver; :mod:`~bettong.lineage.protocols.random_search`: the baseline.
- :mod:`~bettong.lineage.protocols.strategies`: Hypothesis strategies.
"""
