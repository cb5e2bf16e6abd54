"""Which faults to try on a query next: lineage of what became visible, equivalence, hypotheses."""
