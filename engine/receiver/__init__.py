"""The receiver: a sink of its own process that stages rows and makes a batch visible at once."""
