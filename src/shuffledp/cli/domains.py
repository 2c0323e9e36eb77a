"""Which categories there are, as written on the command line."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shuffledp.protocols.histogram.categories import Categories


def parse_domain(text: str) -> "Categories":
    """The domain meant: a,b,c are names; LOW:HIGH whole numbers or days; else a file with a name on each line.

    >>> parse_domain("red,green").size, parse_domain("18:99").size, parse_domain("2026-01-01:2026-01-31").size
    (2, 82, 31)
    """
    from pathlib import Path

    from shuffledp.errors import ParameterError
    from shuffledp.protocols.histogram.categories import Dates, Integers, Names

    if Path(text).is_file():
        try:
            lines = Path(text).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            raise ParameterError("domain", text, "must be a text file", "write a name on each line, in UTF-8") from None
        return Names(tuple(line.strip() for line in lines if line.strip()))
    if "," in text:
        return Names(tuple(name.strip() for name in text.split(",")))
    low, colon, high = text.partition(":")
    if colon:
        try:
            return Integers(int(low), int(high))
        except ValueError:
            return Dates(low, high)
    raise ParameterError("domain", text, "must be names as a,b,c, a range as LOW:HIGH, or a file", "0:9 for the digits")
