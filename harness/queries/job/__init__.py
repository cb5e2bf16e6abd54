"""The contract of a whole streaming job under test: how it is fed, run, and judged."""
