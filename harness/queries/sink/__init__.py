"""The contract of a sink under test, and how one is loaded and fed."""
