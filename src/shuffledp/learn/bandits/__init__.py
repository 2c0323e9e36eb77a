"""Bandits: which choice is best, learned from the rewards of people who stay private."""
