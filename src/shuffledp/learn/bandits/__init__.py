"""Bandits: which arm next, from rewards that nobody sees."""
