"""Framed requests and replies over TCP, shared by the ingest gateway and the receiver."""
