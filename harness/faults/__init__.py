"""What faults are: their kinds, schedules of them, and the ids of the steps at which they
fire."""
