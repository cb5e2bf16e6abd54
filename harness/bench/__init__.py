"""Measurements: figures are ratios to a peer or to a plain way, taken in the same run."""
