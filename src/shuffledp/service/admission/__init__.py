"""Admission without names: a seat costs a token that an issuer has signed without seeing it (Privacy Pass)."""
