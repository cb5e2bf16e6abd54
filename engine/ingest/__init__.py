"""The way in: senders hand messages to the ingest gateway, which keeps them in a durable journal
and serves ranges of them to whoever computes."""
