"""Policies that bandits are compared with in the other trust models: noise in floating point, which protects nobody."""
