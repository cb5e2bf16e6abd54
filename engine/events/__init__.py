"""Event by event: each message through the whole application before the next, for low latency."""
