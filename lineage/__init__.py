"""Lineage-driven fault injection: traces and lineage in, minimal fault hypotheses out, a loop that
ends in a counterexample or a bounded guarantee.

The modules are the interface: :mod:`~bettong.lineage.graph` (facts, firings, leaves),
:mod:`~bettong.lineage.faults`, :mod:`~bettong.lineage.executor` (what a system under test
implements), :mod:`~bettong.lineage.loop` (the search), :mod:`~bettong.lineage.protocol` (protocols
as plain Python), :mod:`~bettong.lineage.results` (what reports and CI read).
"""
