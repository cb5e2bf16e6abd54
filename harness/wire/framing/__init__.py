"""How requests and replies are told apart, protocol by protocol."""
