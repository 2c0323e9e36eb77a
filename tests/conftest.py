"""What the tests of several rooms share: a judge of orders that should be uniformly random, and a database."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy import special

if TYPE_CHECKING:
    from harness.postgresql import Server

CELLS = 8
Orders = NDArray[np.int64]


def _table_p_value(items: Orders, places: Orders) -> float:
    """Chi-square of items' cells against places' cells: both have fixed margins in each order, hence (CELLS - 1)^2.

    `items[t]` and `places[t]` are the cells of order t; in a uniform order the two are independent.
    """
    size = items.shape[1]
    counts = np.bincount((items * CELLS + places).ravel(), minlength=CELLS**2).reshape(CELLS, CELLS)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    statistic = float(np.sum((counts - expected) ** 2 / expected)) * (size - 1) / size
    return float(special.chdtrc((CELLS - 1) ** 2, statistic))


def _count_p_value(count: int, mean: float) -> float:
    """Of a Poisson count, on both sides; matches in a large uniform order have that law to within 1/size."""
    return min(1.0, 2 * min(float(special.pdtr(count, mean)), float(special.pdtrc(count - 1, mean)) if count else 1.0))


def orders_p_value(orders: ArrayLike) -> float:
    """Of the hypothesis that each row is a uniformly random order of 0, 1, ..., and all rows are independent.

    Where the items of an eighth of the order go, by eighths and by remainders modulo 8; how many items stay where they
    are; how many keep a neighbour. The same for the order that turns each second row into the one before: two rows
    that have to do with each other are seen, though each by itself is random. The smallest of the p-values times
    their number (Bonferroni). Needs hundreds of items, so that the laws are close to their limits.
    """
    rows = np.asarray(orders, dtype=np.int64)
    trials, size = rows.shape
    assert size >= 256 and (np.sort(rows, axis=1) == np.arange(size)).all(), "every item must come once"
    kinds = [rows]
    if trials > 1:
        first, second = rows[: trials // 2 * 2 : 2], rows[1 : trials // 2 * 2 : 2]
        kinds.append(np.take_along_axis(np.argsort(first, axis=1), second, axis=1))
    p_values = []
    for each in kinds:
        places = np.broadcast_to(np.arange(size), each.shape)
        p_values.append(_table_p_value(each * CELLS // size, places * CELLS // size))
        p_values.append(_table_p_value(each % CELLS, places % CELLS))
        p_values.append(_count_p_value(int(np.count_nonzero(each == places)), len(each)))
        neighbours = int(np.count_nonzero(np.abs(np.diff(each, axis=1)) == 1))
        p_values.append(_count_p_value(neighbours, 2 * len(each) * (size - 1) / size))
    return min(1.0, len(p_values) * min(p_values))


@pytest.fixture(scope="session")
def assert_uniform_orders() -> Callable[..., None]:
    """Fails unless rows are independent uniformly random orders; a false alarm has the stated probability."""

    def check(orders: ArrayLike, *, false_alarm: float = 1e-9) -> None:
        p_value = orders_p_value(orders)
        assert p_value >= false_alarm, f"these orders are not uniformly random: p-value {p_value:.3g}"

    return check


@pytest.fixture(scope="session")
def postgresql() -> "Iterator[Server]":
    """A PostgreSQL server of this session's own."""
    from harness.postgresql import require_programs, running_server

    with running_server(require_programs()) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """The address of a new store by a name, on each kind of store."""
    if request.param == "sqlite":
        return lambda name: str(tmp_path / f"{name}.db")
    server: Server = request.getfixturevalue("postgresql")
    schemas: dict[str, str] = {}
    return lambda name: server.address(tmp_path / "batch keys", schemas.setdefault(name, server.new_schema()))
