"""One run of a query under faults, in a warm session or in one that is killed."""
