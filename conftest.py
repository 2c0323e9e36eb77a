"""Slow tests are listed in `tests/slow.txt`: `make quick` leaves them out, and the whole suite begins with them.

Cases marked `sweep` take the same road as another case of their test, with other numbers: only `make sweep` runs them.
"""

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes depends on what else the machine does; it says nothing about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

_LIST = Path(__file__).parent / "tests" / "slow.txt"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The cases that only `make sweep` runs."""
    parser.addoption("--sweep", action="store_true", help="run the cases that are marked as a sweep, and no others")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without looking for garbage: all that is made stays to the end, and is looked through in vain."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is listed, and move the files of it to the front, so that no worker ends with a long one alone."""
    _leave_out(config, items)
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


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name a test that failed at once: of a long run that is cut off, only what was printed is left."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nFAILED {report.when} of {report.nodeid}", file=sys.__stderr__, flush=True)


def _leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases of the sweep, or all others if it is asked for; who names a single case gets it."""
    if any("[" in argument for argument in config.args):
        return
    swept, others = (
        [item for item in items if bool(item.get_closest_marker("sweep")) is is_it] for is_it in (True, False)
    )
    alone = {item.nodeid.partition("[")[0] for item in swept} - {item.nodeid.partition("[")[0] for item in others}
    if alone:
        raise pytest.UsageError(f"all cases of {', '.join(sorted(alone))} are marked as a sweep: leave one that is not")
    items[:], left_out = (swept, others) if config.getoption("--sweep") else (others, swept)
    config.hook.pytest_deselected(items=left_out)


def _is_listed(nodeid: str, listed: dict[str, float]) -> bool:
    """Whether a test, all its parameters or its whole file is in the list."""
    file, _, name = nodeid.partition("::")
    return bool({file, f"{file}::{name.partition('[')[0]}", nodeid} & listed.keys())
