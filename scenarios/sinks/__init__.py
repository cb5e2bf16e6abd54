"""Sinks under test that ship: what users write, and how each of them fails."""
