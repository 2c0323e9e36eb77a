"""Whether every number that the README prints is a claim, or is named here as none, with the reason."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from evidence.claims import Claim
from evidence.printed import ROOT, text_of

README = "README.md"
_NUMBER = re.compile(
    r"(?<![\w/.#-])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|hundred|thousand|million|half|twice|once|no lost|none)\b",
    re.IGNORECASE,
)
NO_CLAIM = {
    r"two or three shufflers stand": "how a cascade may be built",
    r"--epsilon 1 --delta 1e-6": "what is asked for",
    r"epsilon=1, delta=1e-6, seed=1": "what is asked for",
    r"Privacy\(1, 1e-6\)": "what is asked for",
    r"\(epsilon 1, delta 1e-6\)": "what is asked for",
    r"\[1\] \* 3_000 \+ \[0\] \* 7_000": "the example's data",
    r"users=10_000": "the example's data",
    r"round\(on_devices\.standard_error, 2\)": "digits that are shown",
    r"a count of 10,000 people": "whose count it is",
    r"shuffler, analyzer, 2,000 encrypted reports": "what the demo shows",
    r"histogram of 2,000 people's cities": "the example's data",
    r"▶ 3,004": "one answer in a drawing; how far it may be off is a claim",
    r"2,998\.0": "one answer, drawn from a seed: the suite runs it as a doctest",
    r"\*\*one device that lies voids such a count": "a warning",
    r"of a million people": "whose count it is",
    r"by four shufflers": "what is asked for",
    r"by several shufflers at once": "how it is done",
    r"who each send a few messages once": "how it is done",
    r"A column of a hundred million people": "takes too long here: benchmarks/streaming.py measures it",
    r"a five-minute tutorial": "how long a reader takes",
    r"rfc9458": "a standard's number",
}
"""Words of the README that hold a number and claim nothing, and why."""


def uncovered(claims: Iterable[Claim], *, root: Path = ROOT, no_claim: Iterable[str] = tuple(NO_CLAIM)) -> list[str]:
    """Numbers of the README that are no claim's and are not named as none, each with its line."""
    text = text_of(root, README)
    spans = [
        match.span()
        for words in (*(each.words for claim in claims for each in claim.printed if each.file == README), *no_claim)
        for match in re.finditer(words, text)
    ]
    return [
        f"{README}:{text.count(chr(10), 0, number.start()) + 1}: {number.group()}"
        for number in _NUMBER.finditer(text)
        if not any(first <= number.start() and number.end() <= last for first, last in spans)
    ]


def stale(*, root: Path = ROOT) -> Iterator[str]:
    """Words that are named as no claim and that the README does not say any more."""
    text = text_of(root, README)
    return (words for words in NO_CLAIM if not re.search(words, text))
