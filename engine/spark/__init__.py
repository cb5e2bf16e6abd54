"""The Spark runner: an application as a Structured Streaming query."""
