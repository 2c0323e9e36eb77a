"""Protocols: a frozen plan that says what a client sends and what an analyzer makes of it."""
