"""Bandits: which arm next, from rewards that reach the analyzer shuffled and noisy."""
