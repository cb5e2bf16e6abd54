"""The faults that a Spark query is judged under, and where they can fire."""
