"""Running counts and fits of more people than memory holds: CPU time a million users, peak memory, and two processes.

Every command runs in a process of its own (`watched.py`). CPU time does not depend on who else uses the machine; wall
times, which two processes are compared by, do.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from report import figure, report, shown
from watched import ran

COUNT = ["--epsilon", "1", "--delta", "1e-6", "--seed", "1", "--shufflers", "4", "--json"]
FIT = ["--epsilon", "1", "--delta", "1e-6", "--seed", "1", "--classes", "0,1", "--bounds", "0:1", "--json"]
_FEATURES = 20


def clicks(folder: Path, users: int, kind: str) -> Path:
    """A column of bits, written in pieces."""
    path = folder / f"clicks-{users}.{kind}"
    generator, piece = np.random.default_rng(1), 1 << 22
    if kind == "npy":
        made = np.lib.format.open_memmap(path, "w+", np.bool_, (users,))
        for first in range(0, users, piece):
            made[first : first + piece] = generator.random(min(piece, users - first)) < 0.3
        made.flush()
        return path
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetWriter(path, pa.schema([("clicked", pa.bool_())])) as writer:
        for first in range(0, users, piece):
            some = generator.random(min(piece, users - first)) < 0.3
            writer.write_table(pa.table({"clicked": some}))
    return path


def table(folder: Path, rows: int) -> Path:
    """Features in 0..1, and a label that they decide but for chance."""
    path, generator, piece = folder / "rows.npy", np.random.default_rng(1), 1 << 18
    made = np.lib.format.open_memmap(path, "w+", np.float64, (rows, _FEATURES + 1))
    for first in range(0, rows, piece):
        some = generator.uniform(0, 1, (min(piece, rows - first), _FEATURES))
        scores = 6 * some @ np.linspace(1, -1, _FEATURES)
        made[first : first + piece, :-1] = some
        made[first : first + piece, -1] = scores + generator.logistic(size=len(some)) > 0
    made.flush()
    return path


def counts(folder: Path, sizes: list[int]) -> list[dict]:
    """Time and memory at every size, of both formats; then two processes beside one."""
    rows, by_users = [], {}
    for users in sizes:
        for kind in ("npy", "parquet"):
            file = clicks(folder, users, kind)
            column = [] if kind == "npy" else ["--column", "clicked"]
            found = ran(["count", str(file), *column, *COUNT, "--processes", "2"])
            by_users[users, kind] = found
            note = f"{found['cpu']:.1f} s of CPU, {found['wall']:.1f} s, bound {found['answer']['bound']:.0f}"
            name = f"count, {users:,} users, {kind}"
            rows.append(shown(f"{name}: CPU s a million users", found["cpu"] / users * 1e6, note))
            rows.append(shown(f"{name}: peak MB of all processes", found["peak"] / 2**20, note))
            file.unlink()
            print(rows[-2:], file=sys.stderr, flush=True)
    many, least = sizes[-1], max(each for each in sizes[:-1]) if len(sizes) > 1 else sizes[-1]
    for kind in ("npy", "parquet"):
        larger, smaller = by_users[many, kind], by_users[least, kind]
        name = f"count, {kind}, {many:,} beside {least:,} users"
        if many == 10**8:
            rows.append(figure(f"{name}: peak memory", larger["peak"] / smaller["peak"], "<=", 1.2, ""))
        linear = larger["cpu"] / many / (smaller["cpu"] / least)
        rows.append(figure(f"{name}: CPU a user", linear, "<=", 1.2, "linear is 1; what begins a command is in both"))
    return rows


def processes(folder: Path, users: int) -> list[dict]:
    """Two processes beside one, by the time in which people report and by that of the whole command; one answer."""
    file = clicks(folder, users, "npy")
    one, two = (ran(["count", str(file), *COUNT, "--processes", str(each)]) for each in (1, 2))
    assert one["answer"]["estimate"] == two["answer"]["estimate"]
    seconds = [each["answer"]["seconds"] for each in (one, two)]
    free = os.getloadavg()[0]
    note = f"{seconds[0]:.1f} s and {seconds[1]:.1f} s; CPU {one['cpu']:.1f} s and {two['cpu']:.1f} s; load {free:.1f}"
    whole = f"{one['wall']:.1f} s and {two['wall']:.1f} s, with planning and what begins a command"
    return [
        figure(f"count, {users:,} users: two processes beside one", seconds[0] / seconds[1], ">=", 1.7, note),
        figure(f"count, {users:,} users: two beside one, whole", one["wall"] / two["wall"], ">=", 1.7, whole),
    ]


def fits(folder: Path, rows: int, memory: str) -> list[dict]:
    """A table larger than what a fit may take."""
    file = table(folder, rows)
    asked = ["fit", str(file), "--target", str(_FEATURES + 1), *FIT, "--memory", memory]
    found = ran([*asked, "--processes", "2"])
    size, peak = file.stat().st_size / 2**20, found["peak"] / 2**20
    note = f"a table of {size:,.0f} MB, --memory {memory}; {found['cpu']:.0f} s of CPU, {found['wall']:.0f} s"
    note += f"; {found['answer']['rounds']} rounds by {found['answer']['solver']}"
    allowed = float(memory.removesuffix("MB"))
    return [figure(f"fit, {rows:,} rows: peak / --memory", peak / allowed, "<=", 1.0, note)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=float, default=1e8, help="users; from 1e5 on by tens")
    parser.add_argument("--rows", type=float, default=6e6, help="of the table that a model is learned from")
    parser.add_argument("--memory", default="600MB", help="that a fit may take")
    asked = parser.parse_args()
    sizes = [10**power for power in range(5, 12) if 10**power <= asked.largest]
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        figures = (
            processes(here, min(sizes[-1], 10**7)) + counts(here, sizes) + fits(here, int(asked.rows), asked.memory)
        )
    sys.exit(report("Running streams", figures))
