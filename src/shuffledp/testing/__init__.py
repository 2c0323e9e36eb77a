"""Assertions for statistical code, and the one check that every protocol must pass."""
