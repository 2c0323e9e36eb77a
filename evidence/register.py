"""All claims, chapter by chapter."""

from dataclasses import replace

from evidence import accuracy, audits, faults, learning, running, speed
from evidence.claims import Claim

CHAPTERS: dict[str, tuple[str, list[Claim]]] = {
    "Accuracy": (
        "Errors of counts, histograms, means and sums, beside a curator, the local model and the papers' constants.",
        accuracy.CLAIMS,
    ),
    "Counting as people come": ("Answers after every person, all of them at once.", running.CLAIMS),
    "Learning": ("Recommenders and a network, beside a curator's and without privacy.", learning.CLAIMS),
    "Audits": ("What is honest stands; a twin with half of the noise is caught.", audits.CLAIMS),
    "Faults survived": (
        "Servers are killed and answers get lost; no report does, and none counts twice.",
        faults.CLAIMS,
    ),
    "Speed": ("Ratios of CPU time in one run; no seconds, which another machine has others of.", speed.CLAIMS),
}
"""A heading, what it is about, and its claims, in the order of the page."""


def claims() -> list[Claim]:
    """Every claim, with its chapter's name; speed first, before caches and disks are busy with the others."""
    found = [replace(claim, chapter=chapter) for chapter, (_, each) in CHAPTERS.items() for claim in each]
    return sorted(found, key=lambda claim: claim.chapter != "Speed")
