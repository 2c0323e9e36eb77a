"""Learners that ask and tell: state machines with no input or output."""
