"""Synthetic worlds. They protect nobody and may use numpy's generators."""
