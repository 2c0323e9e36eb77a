"""Packages that hold frames, where they are installed."""

import importlib
import os
from typing import Any

import pytest


def library(name: str) -> Any:
    """A package that holds frames; continuous integration has them all, so that nothing is skipped there in silence."""
    if os.environ.get("CI"):
        return importlib.import_module(name)
    return pytest.importorskip(name, reason=f"{name} is not installed: make setup installs it")
