"""One run of a scenario under faults, and campaigns of many."""
