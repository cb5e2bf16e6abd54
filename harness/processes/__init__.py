"""Processes that a run starts, forks, watches and ends, by process id, and the addresses they
bind."""
