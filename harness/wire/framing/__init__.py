"""How requests and replies are distinguished, protocol by protocol."""
