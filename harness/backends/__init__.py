"""Where runs take place: this machine, containers, a standalone cluster, or a given master."""
