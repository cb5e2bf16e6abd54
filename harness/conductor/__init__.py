"""The conductor: every step of a run asks it, and it injects the planned faults exactly there."""
