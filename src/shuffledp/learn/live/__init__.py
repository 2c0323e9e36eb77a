"""Learners on people's devices: documents of learners, and what a device makes of its own row."""
