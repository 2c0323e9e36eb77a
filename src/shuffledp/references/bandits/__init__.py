"""Gaussian noise of linear bandits in the other trust models: it protects nobody here."""
