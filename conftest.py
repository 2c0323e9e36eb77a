"""Slow tests are listed in `tests/slow.txt`: `make quick` leaves them out, and the whole suite begins with them."""

from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes depends on what else the machine does; it says nothing about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

_LIST = Path(__file__).parent / "tests" / "slow.txt"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is listed, and move the files of it to the front, so that no worker ends with a long one alone."""
    lines = (line.split(maxsplit=1) for line in _LIST.read_text("utf-8").splitlines() if not line.startswith("#"))
    listed = {prefix: float(seconds) for seconds, prefix in lines}
    of_file: dict[str, float] = {}
    for prefix, seconds in listed.items():
        of_file[prefix.partition("::")[0]] = of_file.get(prefix.partition("::")[0], 0.0) + seconds
    for item in items:
        if _is_listed(item.nodeid, listed):
            item.add_marker(pytest.mark.slow)
    # Files stay whole: what their tests share is made once.
    items.sort(key=lambda item: -of_file.get(item.nodeid.partition("::")[0], 0.0))


def _is_listed(nodeid: str, listed: dict[str, float]) -> bool:
    """Whether a test, all its parameters or its whole file is in the list."""
    file, _, name = nodeid.partition("::")
    return bool({file, f"{file}::{name.partition('[')[0]}", nodeid} & listed.keys())
