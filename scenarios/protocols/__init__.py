"""Distributed protocols as plain Python, to be tested by ``bettong protocol``."""
