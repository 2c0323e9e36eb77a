"""Empirical lower bounds on epsilon: how one finds out that a mechanism lies."""
