"""The LDFI loop: hypotheses from supports, by SAT, until none is left."""
