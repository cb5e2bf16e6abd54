"""Lineage-driven search over real runs: what a trace says about why its outcomes happened, the
faults that could have prevented them, and which of those are the same."""
