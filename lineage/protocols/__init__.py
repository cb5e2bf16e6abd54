"""Round-based protocols: their simulator, its lineage, and exhaustive and random search."""
