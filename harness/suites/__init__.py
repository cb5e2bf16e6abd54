"""Suites: what a team runs in CI, and the jobs that one call of ``bettong run`` has to do."""
