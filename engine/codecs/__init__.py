"""How entities and their fields are stored."""
