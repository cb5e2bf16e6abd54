"""Recorded conversations, and exact cuts in them."""
