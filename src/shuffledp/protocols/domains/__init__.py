"""Domains: the sets of values that a user may have, and how a value becomes what a plan takes."""
