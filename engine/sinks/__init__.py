"""Sinks that need no server of ours: files, plain TCP, Kafka. Each says what it promises."""
