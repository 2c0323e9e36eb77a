"""A figure, its target, and a table of them."""

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

FOLDER = Path(__file__).parents[1] / "build" / "bench"


def figure(name: str, value: float, relation: str, target: float, note: str) -> dict:
    holds = value >= target if relation == ">=" else value <= target
    return {"name": name, "value": value, "relation": relation, "target": target, "holds": holds, "note": note}


def shown(name: str, value: float, note: str) -> dict:
    """A number that nothing is claimed of: it stands beside others, and neither holds nor is missed."""
    return {"name": name, "value": value, "relation": None, "target": None, "holds": None, "note": note}


def report(title: str, rows: list[dict]) -> int:
    """Print the figures, write them as JSON, and say by the exit code whether all hold."""
    table = Table(title=title, title_justify="left")
    for column in ("figure", "measured", "target", "", "beside"):
        table.add_column(column)
    for row in rows:
        measured = f"{row['value']:.4g}"
        target = "" if row["target"] is None else f"{row['relation']} {row['target']:g}"
        verdict = {True: "holds", False: "MISSED", None: ""}[None if row["holds"] is None else bool(row["holds"])]
        table.add_row(row["name"], measured, target, verdict, row["note"])
    Console(width=150).print(table)
    FOLDER.mkdir(parents=True, exist_ok=True)
    out = FOLDER / f"{title.lower().replace(' ', '_')}.json"
    out.write_text(json.dumps({"schema": 1, "figures": rows}, indent=2, default=float) + "\n")
    print(f"written to build/bench/{out.name}")
    return 0 if all(row["holds"] is None or row["holds"] for row in rows) else 1
