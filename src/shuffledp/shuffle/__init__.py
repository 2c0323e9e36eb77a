"""Shufflers: they permute what they cannot read, and release nothing before it is full."""
