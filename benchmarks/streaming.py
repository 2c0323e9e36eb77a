"""More people than memory holds: every method of every family within --memory or refused; time linear, memory flat.

    python benchmarks/streaming.py            # all, about an hour on 2 cores: up to 1e8 people
    python benchmarks/streaming.py --users 1e6 --most 1e7

Every run is a process of its own, and its peak that of all its processes at once (`watched.py`).
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from report import figure, report, shown
from watched import ran

TARGET = ["--epsilon", "1", "--delta", "1e-9", "--seed", "1", "--json"]
MEGABYTE = 1 << 20
MEMORY = 1024
NUMBER = ["--column", "number", "--low", "0", "--high", "2"]
BY = ["--by", "group", "--groups", "a,b"]
USER = ["--user", "user", "--at-most", "3"]

METHODS = {
    "binary-sum": ("coins", "shares", "rr", "zsum", "poisson-bits", "correlated", "pure"),
    "bounded-sum": ("bits", "shares"),
    "vector-sum": ("bits", "shares"),
    "histogram": ("decoys", "correlated", "zsum", "opt-in", "fake-users", "count-min", "sketch"),
    "wide histogram": ("decoys", "buckets", "hadamard", "count-min", "sketch"),
    "ranges": ("tree", "dyadic"),
    "two axes": ("grid",),
    "distinct-elements": ("parities",),
    "mean": ("bits", "shares"),
    "moments": ("bits", "shares"),
    "weighted-mean": ("bits", "shares"),
    "heavy-hitters": ("everybody", "prefixes"),
    "masked-sum": ("masks",),
    "distribution-test": ("decoys", "compressed", "rows"),
    "repeated-count": ("bits", "shares"),
    "grouped-count": ("decoys", "shares"),
    "grouped-sum": ("shares", "totals"),
    "grouped-mean": ("shares",),
    "grouped-histogram": ("decoys", "sketch"),
    "grouped-moments": ("shares",),
    "counter": ("coins",),
}
COMMANDS = {
    "binary-sum": ["simulate", "--column", "bit"],
    "bounded-sum": ["sum", *NUMBER],
    "vector-sum": ["simulate", "--protocol", "vector-sum", "--columns", "number,weight", "--radius", "4"],
    "histogram": ["histogram", "--column", "category", "--categories", "4"],
    "wide histogram": ["histogram", "--column", "category", "--domain", "hash:300000", "--names", "1,2,3"],
    "ranges": ["quantile", "--column", "number", "--domain", "0:2", "--steps", "64"],
    "two axes": [
        "simulate",
        "--protocol",
        "ranges",
        "--columns",
        "number,weight",
        "--domain",
        "0:2x0:3",
        "--steps",
        "16",
    ],
    "distinct-elements": ["simulate", "--protocol", "distinct-elements", "--column", "category", "--categories", "4"],
    "mean": ["mean", *NUMBER],
    "moments": ["variance", *NUMBER],
    "weighted-mean": ["mean", "--columns", "number,weight", "--low", "0", "--high", "2", "--largest-weight", "3"],
    "heavy-hitters": ["heavy-hitters", "--column", "word", "--length", "2", "--top", "3", "--alphabet", "ab"],
    "masked-sum": ["simulate", "--protocol", "masked-sum", "--column", "bit"],
    "distribution-test": [
        *("simulate", "--protocol", "distribution-test", "--column", "category"),
        *("--categories", "4", "--distance", "0.1"),
    ],
    "repeated-count": ["simulate", "--protocol", "repeated-count", "--column", "bit", *USER],
    "grouped-count": ["simulate", "--protocol", "grouped-count", "--column", "bit", *BY],
    "grouped-sum": ["sum", *NUMBER, *BY],
    "grouped-mean": ["mean", *NUMBER, *BY],
    "grouped-histogram": ["histogram", "--column", "category", "--categories", "4", *BY],
    "grouped-moments": ["simulate", "--protocol", "grouped-moments", *NUMBER, *BY],
    "counter": ["simulate", "--protocol", "counter", "--column", "bit", "--shufflers", "4"],
}
"""A command for every family, without its file, its target and its method."""


def cases() -> list[tuple[str, list[str]]]:
    """Every method of every family as a command, by its name."""
    found = []
    for family, methods in METHODS.items():
        command, *words = COMMANDS[family]
        found += [(f"{family} by {method}", [command, *words, "--method", method]) for method in methods]
    return found


def people(path: Path, users: int, *columns: str) -> Path:
    """A Parquet file of so many people, written a million at a time; all columns if none are named."""
    draw, writer = np.random.default_rng(7), None
    for start in range(0, users, MEGABYTE):
        rows = min(MEGABYTE, users - start)
        category = draw.integers(0, 4, rows)
        table = pa.table(
            {
                "bit": (draw.random(rows) < 0.3).astype(np.uint8),
                "number": 2 * draw.random(rows),
                "weight": 3 * draw.random(rows),
                "category": category,
                "word": pa.array(["a", "b", "ab", "ba"]).take(pa.array(category)),
                "group": pa.array(["a", "b"]).take(pa.array(category % 2)),
                "user": draw.integers(0, max(1, users // 3), rows),
            }
        )
        table = table.select(columns) if columns else table
        writer = parquet.ParquetWriter(path, table.schema) if writer is None else writer
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return path


def measured(words: list[str], limit: float) -> dict[str, Any]:
    """What a command says, its seconds of CPU and its peak in megabytes, all processes together."""
    found = ran(words, limit)
    return {**found.pop("answer"), **found, "peak": found["peak"] / MEGABYTE}


def sweep(folder: Path, users: int, limit: float, families: list[str] | None = None) -> list[dict]:
    """Every method of every family at so many people: within --memory, or refused in a sentence before it starts."""
    file, rows = people(folder / "people.parquet", users), []
    for name, (command, *words) in cases():
        if families is not None and name.partition(" by ")[0] not in families:
            continue
        found = measured([command, str(file), *words, *TARGET, "--memory", f"{MEMORY}MB", "--processes", "2"], limit)
        print(
            name, json.dumps({key: found.get(key) for key in ("peak", "cpu", "wall", "messages", "error")}), flush=True
        )
        if isinstance(found.get("error"), dict):
            sentence = found["error"]["message"]
            rows.append(figure(f"{name}: refused after, s of CPU", found.get("cpu", 0.0), "<=", 60, sentence))
            continue
        how = f"{found.get('fidelity')}, {found.get('messages', 0):,} messages, {found['cpu']:.1f} s of CPU"
        rows.append(figure(f"{name}: peak, MB", found["peak"], "<=", MEMORY, how))
    return rows


def scaling(folder: Path, most: int, limit: float) -> list[dict]:
    """One sum and one histogram by messages at more and more people, by one process: CPU linear, memory flat."""
    rows = []
    for family, method in (("binary-sum", "coins"), ("histogram", "decoys")):
        command, *words = COMMANDS[family]
        took: dict[int, dict[str, Any]] = {}
        for users in (10**power for power in range(5, 9) if 10**power <= most):
            file = people(folder / "more.parquet", users, "bit", "category")
            how = ["--method", method, *TARGET, "--memory", f"{MEMORY}MB", "--processes"]
            took[users] = measured([command, str(file), *words, *how, "1"], limit)
            note = f"{took[users]['wall']:.1f} s, {took[users]['cpu']:.1f} s of CPU, {took[users].get('fidelity')}"
            print(family, users, note, flush=True)
            rows.append(shown(f"{family} by {method}, {users:,} people: peak, MB", took[users]["peak"], note))
        if most < 10**7:
            continue
        before = most // 10
        rate = (took[most]["cpu"] / most) / (took[before]["cpu"] / before)
        rows.append(figure(f"{family}: CPU a person, {most:,} / {before:,}", rate, "<=", 1.2, "linear is 1"))
        flat = took[most]["peak"] / took[max(before, 10**6)]["peak"]
        rows.append(figure(f"{family}: peak, {most:,} / {max(before, 10**6):,}", flat, "<=", 1.2, "flat is 1"))
    return rows


def parallel(folder: Path, users: int, limit: float) -> list[dict]:
    """Many messages by one process and by two: the walls, and what CPU alone says on a machine that others use, too."""
    command, *words = COMMANDS["ranges"]
    file = people(folder / "numbers.parquet", users, "number")
    how = ["--method", "tree", *TARGET, "--memory", f"{MEMORY}MB", "--processes"]
    by_one, by_two = (measured([command, str(file), *words, *how, tasks], limit) for tasks in ("1", "2"))
    name = f"ranges by tree, {users:,} people: one process / two"
    note = (
        f"{by_one['wall']:.1f} s beside {by_two['wall']:.1f} s; {by_one['cpu']:.1f} s and {by_two['cpu']:.1f} s of CPU"
    )
    # The first process does its part, and the two others theirs at the same time.
    path = by_two["first"] + (by_two["cpu"] - by_two["first"]) / 2
    return [
        figure(f"{name}, wall", by_one["wall"] / by_two["wall"], ">=", 1.7, note),
        figure(f"{name}, by CPU", by_one["cpu"] / path, ">=", 1.7, "as if two cores were free"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=float, default=1e7, help="people of the sweep")
    parser.add_argument("--most", type=float, default=1e8, help="people of the largest run")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds that a run may take")
    parser.add_argument("--only", choices=["sweep", "scaling", "parallel"])
    parser.add_argument("--families", nargs="+", choices=list(METHODS), help="of the sweep; all if left out")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        if asked.only in (None, "sweep"):
            rows += sweep(Path(folder), int(asked.users), asked.limit, asked.families)
        if asked.only in (None, "scaling"):
            rows += scaling(Path(folder), int(asked.most), asked.limit)
        if asked.only in (None, "parallel"):
            rows += parallel(Path(folder), int(asked.most) // 2, asked.limit)
    return report("streaming", rows)


if __name__ == "__main__":
    sys.exit(main())
