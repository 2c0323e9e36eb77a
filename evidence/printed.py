"""Numbers as they are printed in a file: found by the words around them, and known to half of their last digit."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


class NotPrintedError(LookupError):
    """A claim's words are not in its file any more: the file was changed, and the claim was not."""


@cache
def text_of(root: Path, file: str) -> str:
    """What a file of the project says."""
    return (root / file).read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Number:
    """A number that was printed.

    Attributes:
        value: the number.
        half: half a unit of its last digit that counts; zeros at the end of a whole number do not count.
        error: the standard error that is printed with it, 0 where there is none.
        line: where it stands, from 1.
    """

    value: float
    half: float
    error: float
    line: int


@dataclass(frozen=True, slots=True)
class Printed:
    """A place of the documentation that says a number.

    Args:
        file: its path from the project's folder.
        words: a regular expression that is found there once; its first group is the number, a second one its error.
        means: the number, where a sentence says it without digits: "no lost report" means 0.
        percent: whether the number is printed in percent, and measured as a part of 1.
    """

    file: str
    words: str
    means: float | None = None
    percent: bool = False

    def read(self, root: Path = ROOT) -> Number:
        r"""The number as it is printed now.

        Raises:
            NotPrintedError: if the words are not there, or at several places.

        >>> Printed("README.md", r"(Apache)-2\.0", means=2.0).read().value
        2.0
        """
        text = text_of(root, self.file)
        found = list(re.finditer(self.words, text))
        if len(found) != 1:
            where = "nowhere" if not found else f"{len(found)} times"
            raise NotPrintedError(f"{self.file} says {self.words!r} {where}: change the claim with what is printed")
        match = found[0]
        line = text.count("\n", 0, match.start(1 if match.re.groups else 0)) + 1
        if self.means is not None:
            return Number(self.means, 0.0, 0.0, line)
        error = match.group(2) if match.re.groups > 1 else None
        scale = 0.01 if self.percent else 1.0
        value, half = number(match.group(1))
        return Number(scale * value, scale * half, scale * number(error)[0] if error else 0.0, line)


def number(text: str) -> tuple[float, float]:
    """A number and half a unit of its last digit that counts.

    >>> number("1.36"), number("70"), number("99"), number("1,036")
    ((1.36, 0.005), (70.0, 5.0), (99.0, 0.5), (1036.0, 0.5))
    """
    plain = text.replace(",", "").replace("−", "-")
    digits = plain.lstrip("+-")
    if "." in digits:
        return float(plain), 0.5 * 10.0 ** -len(digits.partition(".")[2])
    zeros = len(digits) - len(digits.rstrip("0")) if digits.strip("0") else 0
    return float(plain), 0.5 * 10.0**zeros
