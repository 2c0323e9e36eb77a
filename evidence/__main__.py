"""Measures every claim and writes the page: exit code 3 if one fails, 0 if all hold."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from evidence.claims import Claim, Effort, Verdict, judge
from evidence.covered import uncovered
from evidence.page import document, page
from evidence.printed import ROOT
from evidence.register import claims

REFUTED = 3


def cpu() -> float:
    """Seconds of CPU of this process and of those that it has started and seen end."""
    return sum(os.times()[:4])


def judged(
    asked: Iterable[Claim], effort: Effort, *, root: Path = ROOT, tell: Callable[[Verdict], None] = lambda _: None
) -> list[Verdict]:
    """Every claim's verdict, with the seconds that it took."""
    found = []
    for claim in asked:
        began = cpu()
        verdict = replace(judge(claim, effort, root=root), seconds=cpu() - began)
        found.append(verdict)
        tell(verdict)
    return found


def written(folder: Path, verdicts: list[Verdict], effort: Effort) -> int:
    """Write the page and its data; the exit code says whether all claims hold."""
    folder.mkdir(parents=True, exist_ok=True)
    which = version("shuffledp")
    found = document(verdicts, effort, which)
    (folder / "evidence.json").write_text(json.dumps(found, indent=2, allow_nan=False) + "\n", "utf-8")
    (folder / "index.html").write_text(page(verdicts, effort, which), "utf-8")
    return 0 if found["holds"] else REFUTED


def _tell(verdict: Verdict) -> None:
    word = {True: "holds", False: "FAILS", None: "left out"}[verdict.holds]
    measured = "" if verdict.measured is None else f" (measured {verdict.measured.value:.4g})"
    why = "" if verdict.holds else f": {verdict.why}"
    print(f"{verdict.seconds:6.1f} s  {word:<8}  {verdict.claim.name}{measured}{why}", flush=True)


def main(words: list[str] | None = None) -> int:
    """Measure, print a line a claim, write the page."""
    parser = argparse.ArgumentParser(prog="python -m evidence", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two minutes on 2 quiet cores: fewer runs of everything")
    parser.add_argument("--seed", type=int, help="of all that is drawn; a new one unless given")
    parser.add_argument("--only", default="", help="claims or chapters with these words in their name")
    parser.add_argument("--list", action="store_true", help="name all claims, and measure nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "evidence", help="the folder of the page")
    given = parser.parse_args(words)
    wanted = [each for each in claims() if given.only.lower() in f"{each.chapter}: {each.name}".lower()]
    if not wanted:
        parser.error(f"--only must be words of a claim or chapter, got {given.only!r}: --list names them all")
    if given.list:
        print("\n".join(f"{each.chapter}: {each.name}" for each in wanted))
        return 0
    # Whoever repeats a run names its seed; else the machine's own randomness chooses it.
    effort = Effort(given.quick, int.from_bytes(os.urandom(3)) if given.seed is None else given.seed)
    began = time.perf_counter()
    verdicts = judged(wanted, effort, tell=_tell)
    code = written(given.out, verdicts, effort)
    bare = [] if given.only else uncovered(claims())
    for number in bare:
        print(f"no claim covers {number}: measure it, or name it in evidence/covered.py as none")
    failed = sum(verdict.holds is False for verdict in verdicts)
    spent, took = sum(verdict.seconds for verdict in verdicts), time.perf_counter() - began
    left = sum(verdict.holds is None for verdict in verdicts)
    told = f"{len(verdicts)} claims: {failed} fail, {left} left out"
    print(f"{told}; {spent:.0f} s of CPU, {took:.0f} s; seed {effort.seed}")
    print(f"the page: {given.out / 'index.html'}")
    return REFUTED if bare else code


if __name__ == "__main__":
    sys.exit(main())
