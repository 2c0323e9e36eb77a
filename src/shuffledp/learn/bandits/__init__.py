"""Bandits: who is shown what, learned from rewards that nobody sees."""
