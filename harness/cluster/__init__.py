"""The nodes and links of one run together: what faults act upon."""
