"""Draws the pictures of the documentation from plans: `make pictures`."""

from pathlib import Path

from shuffledp import BinarySum, Privacy
from shuffledp.pictures.curves import draw_error_curves

PRIVACY = Privacy(epsilon=1, delta=1e-6)
USERS = [30, 60, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 100_000, 300_000, 1_000_000]


def main() -> None:
    plans = {m: [BinarySum.plan(users=n, privacy=PRIVACY, method=m) for n in USERS] for m in ("coins", "shares")}
    references = [plan.reference() for plan in plans["coins"]]
    lines = {
        "local model": [r["local_standard_error"] for r in references],
        "the paper's constants": [r["paper_standard_error"] for r in references],
        "coins": [plan.standard_error for plan in plans["coins"]],
        "shares = trusted curator": [plan.standard_error for plan in plans["shares"]],
    }
    draw_error_curves(USERS, lines, "A private count: epsilon 1, delta 1e-6", Path(__file__).with_name("errors.png"))


if __name__ == "__main__":
    main()
