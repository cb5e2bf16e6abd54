"""Spark under test: hooks in its JVM, fast sessions, driver hosts and warm pools of them."""
