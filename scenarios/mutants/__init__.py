"""mutants: the right system with one honest mistake each, to show that it is found."""
