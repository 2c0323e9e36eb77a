"""Exact integer samplers on RandomBits: what is cut off or rounded is a number that reaches delta."""
