"""Draws the pictures of the documentation from plans and experiments: `make pictures`."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from shuffledp import BinarySum, BoundedSum, Privacy, VectorSum
from shuffledp.pictures.curves import DrawnLine, draw_lines

PRIVACY = Privacy(epsilon=1, delta=1e-6)
USERS = [30, 60, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 100_000, 300_000, 1_000_000]


def main() -> None:
    draw_cities()
    draw_counts()
    draw_sums()
    draw_running()
    draw_bandits()


def draw_cities() -> None:
    """The README's histogram, by its own command."""
    folder = Path(__file__).parent
    options = ["--domain", "Berlin,Köln,München,Ulm", "--other", "elsewhere", "--epsilon", "1", "--delta", "1e-6"]
    file, picture = str(folder.parent / "tutorial" / "people.csv"), str(folder / "cities.png")
    command = [sys.executable, "-m", "shuffledp", "histogram", file, "--column", "city", *options, "-o", picture]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def draw_sums() -> None:
    """What each method costs against what it gains, for numbers and for vectors."""
    asked = {
        "numbers": (BoundedSum, {"low": 0, "high": 1}, "A private sum of numbers in [0, 1]: epsilon 1, delta 1e-6"),
        "vectors": (
            VectorSum,
            {"dimension": 10, "radius": 1},
            "A private sum of vectors, 10 numbers, length at most 1: epsilon 1, delta 1e-6",
        ),
    }
    for name, (family, domain, title) in asked.items():
        plans = {
            method: [family.plan(users=n, privacy=PRIVACY, method=method, **domain) for n in USERS]
            for method in ("bits", "shares")
        }
        compared = [family.comparisons["gaussian"](users=n, privacy=PRIVACY, **domain) for n in USERS]
        references = [plan.reference() for plan in plans["bits"]]
        paper = [family.plan(users=n, privacy=PRIVACY, method="bits", constants="paper", **domain) for n in USERS]
        errors = {
            "the paper's constants": [r["paper_standard_error"] for r in references],
            "gaussian (P_Amp)": [document["standard_error"] for document in compared],
            "local model": [r["local_standard_error"] for r in references],
            "bits": [plan.standard_error for plan in plans["bits"]],
            "shares": [plan.standard_error for plan in plans["shares"]],
            "curator, Gaussian": [r["central_standard_error"] for r in references],
        }
        costs = {
            "the paper's constants": [plan.messages_per_user_max * plan.bits_per_message for plan in paper],
            **{m: [plan.messages_per_user_max * plan.bits_per_message for plan in plans[m]] for m in plans},
            "gaussian (P_Amp)": [document["bits_per_message"] for document in compared],
        }
        panels = {"what it gains: standard error": drawn(errors), "what it costs: bits a user sends": drawn(costs)}
        path = Path(__file__).with_name(f"{name}.png")
        draw_lines(path, [panels], against="users", measures="", title=title, one_scale=False)


def drawn(lines: dict[str, list[float]]) -> list[DrawnLine]:
    return [DrawnLine(name=name, x=USERS, y=line) for name, line in lines.items()]


def draw_running() -> None:
    """A schedule of each kind and a running count, by the commands that a reader would type."""
    here = Path(__file__).parent
    target = ["--users", "1000000", "--shufflers", "4", "--epsilon", "1", "--delta", "1e-6"]
    run = [sys.executable, "-m", "shuffledp"]
    for noise, name in (("laplace", "schedule"), ("carried", "windows")):
        drawn_to = ["--noise", noise, "-o", str(here / f"{name}.png"), "--json"]
        subprocess.run([*run, "plan", "counter", *target, *drawn_to], check=True)
    made_up = ["--synthetic", "--with-truth", "--fast", "--seed", "1", "--picture", str(here / "count.png"), "--json"]
    subprocess.run([*run, "count", *target, *made_up], check=True)


def draw_bandits() -> None:
    """Figure 1 and the growth of regret, which take minutes; the rows are measured anew and not kept."""
    here = Path(__file__).parent
    for name, words in (("regret", []), ("growth", ["--scaling"])):
        with TemporaryDirectory() as folder:
            drawn = Path(folder) / f"{name}.png"
            command = [sys.executable, "-m", "shuffledp", "papers", "linucb", *words, "--picture", str(drawn)]
            subprocess.run([*command, "--json"], check=True, stdout=subprocess.DEVNULL)
            (here / drawn.name).write_bytes(drawn.read_bytes())


def draw_counts() -> None:
    """The error of a count, in the README."""
    plans = {m: [BinarySum.plan(users=n, privacy=PRIVACY, method=m) for n in USERS] for m in ("coins", "shares")}
    references = [plan.reference() for plan in plans["coins"]]
    lines = {
        "local model": [r["local_standard_error"] for r in references],
        "the paper's constants": [r["paper_standard_error"] for r in references],
        "coins": [plan.standard_error for plan in plans["coins"]],
        "shares = trusted curator": [plan.standard_error for plan in plans["shares"]],
    }
    panel = {"A private count: epsilon 1, delta 1e-6": drawn(lines)}
    path = Path(__file__).with_name("errors.png")
    draw_lines(path, [panel], against="users", measures="standard error of the count")


if __name__ == "__main__":
    main()
