"""Learners that ask and are told: state machines with no input or output."""
