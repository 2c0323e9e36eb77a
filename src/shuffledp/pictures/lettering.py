"""Names in any script: a font that has their letters, or an honest stand-in where no font on this machine has.

DejaVu Sans, which comes with matplotlib, has Latin, Greek, Cyrillic, Arabic, Hebrew and more, but no Chinese, Japanese,
Korean or Indian letters and few emoji. Those are looked for in all fonts that matplotlib knows here.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

_FIRST = "DejaVu Sans"
# A picture needs a few fonts; each font that is looked into takes some milliseconds, and there may be thousands.
_MOST_FONTS, _MOST_LOOKED_INTO = 6, 600
# Tried before the others: they have the most letters.
_LIKELY = ("noto", "unicode", "cjk", "pingfang", "yahei", "gothic", "song", "hei", "symbola", "emoji", "unifont")
_GONE = "□"


@dataclass(frozen=True, slots=True)
class Letters:
    """How texts can be written in a picture.

    Attributes:
        fonts: families that together have as many of the letters as can be had.
        missing: letters that none of them has.
        keeps_text: whether the picture's format keeps text as text, so that whoever shows it finds a font.
    """

    fonts: tuple[str, ...]
    missing: frozenset[str]
    keeps_text: bool = False

    def written(self, text: str) -> str:
        """A text in one line, no formula, with a box for each run of letters that no font has."""
        line = " ".join(text.split())
        if not self.keeps_text:
            for letter in self.missing & set(line):
                line = line.replace(letter, _GONE)
            while _GONE * 2 in line:
                line = line.replace(_GONE * 2, _GONE)
        return line.replace("$", r"\$")

    def word(self, text: str | None, otherwise: str = "") -> str:
        """A text that is left out, or that no font has a letter of, is another one."""
        return otherwise if not text or self._is_lost(text) else self.written(text)

    def labels(self, names: Iterable[str], numbers: Iterable[int]) -> list[str]:
        """A label for each name: the name, or, where too little of it can be written to tell it apart, its number.

        Args:
            names: each once.
            numbers: the place of each in the table that the picture goes with, from 1.
        """
        listed = list(zip(names, numbers, strict=True))
        shown = [self.written(name) for name, _ in listed]
        times: dict[str, int] = {}
        for each in shown:
            times[each] = times.get(each, 0) + 1
        return [
            f"no. {number}" if self._is_lost(name) or (each != name and times[each] > 1) else each
            for each, (name, number) in zip(shown, listed, strict=True)
        ]

    def _is_lost(self, name: str) -> bool:
        """Whether no letter or digit of a name is left."""
        if self.keeps_text or not self.missing & set(name):
            return False
        return not any(letter.isalnum() for letter in name if letter not in self.missing)

    def note(self, labels: Iterable[str] = ()) -> str:
        """What a picture says below it about letters that it lacks; empty if it lacks none."""
        if self.keeps_text or not self.missing:
            return ""
        numbered = any(label.startswith("no. ") for label in labels)
        signs = f"{_GONE} and numbers (places in the table) stand" if numbered else f"{_GONE} stands"
        return f"{signs} for letters that no font here has: install one, or draw an .svg, which keeps them"


@contextmanager
def lettering(path: Path, texts: Iterable[str]) -> Iterator[Letters]:
    """Fonts for these texts, in force while a picture is made and written.

    Args:
        path: the picture's file; its ending is its format.
        texts: all that will be written but ASCII words.
    """
    from matplotlib import rc_context

    letters = letters_for(texts, keeps_text=path.suffix.lower() == ".svg")
    look: dict[Any, Any] = {"font.family": list(letters.fonts)}
    if letters.keeps_text and letters.missing:
        look["svg.fonttype"] = "none"
    with rc_context(look):
        yield letters


def letters_for(texts: Iterable[str], *, keeps_text: bool = False) -> Letters:
    """The fonts that have the letters of these texts, and the letters that none has."""
    needed = {letter for text in texts for letter in text if not letter.isspace() and _is_drawn(letter)}
    missing = {letter for letter in needed if ord(letter) not in _letters_of(_first_file())}
    fonts = [_FIRST]
    for family, file in _others() if missing else ():
        found = {letter for letter in missing if ord(letter) in _letters_of(file)}
        if found:
            fonts.append(family)
            missing -= found
        if not missing or len(fonts) == _MOST_FONTS:
            break
    return Letters(tuple(fonts), frozenset(missing), keeps_text)


def _is_drawn(letter: str) -> bool:
    """Whether a letter has a shape of its own: joiners and marks of direction have none."""
    return unicodedata.category(letter) not in ("Cf", "Cc", "Cs") and not 0xFE00 <= ord(letter) <= 0xFE0F


def _first_file() -> str:
    from matplotlib.font_manager import findfont

    return str(findfont(_FIRST))


def _others() -> Iterator[tuple[str, str]]:
    """Other upright fonts of ordinary weight, the likeliest first: families and files."""
    from matplotlib.font_manager import fontManager

    plain = {
        each.name: each.fname
        for each in fontManager.ttflist
        if each.style == "normal" and each.weight in (400, "normal", "regular", "book") and _is_real(each.name)
    }

    def place(family: str) -> tuple[bool, str]:
        return not any(word in family.lower() for word in _LIKELY), family

    for family in sorted(plain, key=place)[:_MOST_LOOKED_INTO]:
        yield family, plain[family]


def _is_real(family: str) -> bool:
    """Whether a font has letters: the last resort has a box for each, and colours cannot be drawn."""
    return "last resort" not in family.lower() and "color" not in family.lower() and family != _FIRST


@lru_cache(maxsize=1024)
def _letters_of(file: str) -> frozenset[int]:
    """The letters that a font's file has; none of a file that cannot be read."""
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(file).get_charmap())
    except (OSError, RuntimeError, ValueError):
        return frozenset()
