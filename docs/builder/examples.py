"""Which pages show a public name at work: their examples run in the test suite."""

import re
from functools import cache
from pathlib import Path

DOCS = Path(__file__).parents[1]
_FOLDERS = ("tutorial", "howto", "reference", "theory")
_IMPORT = re.compile(r"^ *>>> from (shuffledp[\w.]*) import (.+)$", re.M)
_EXAMPLE = re.compile(r"^ *>>>.*(?:\n(?! *$).*)*", re.M)


@cache
def imported() -> dict[tuple[str, str], list[Path]]:
    """The pages whose examples import each name, by the module that they have it from and the name."""
    found: dict[tuple[str, str], list[Path]] = {}
    for folder in _FOLDERS:
        for page in sorted((DOCS / folder).glob("*.md")):
            for module, names in _IMPORT.findall(page.read_text("utf-8")):
                for name in re.split(r",\s*", names.partition("#")[0].strip()):
                    found.setdefault((module, name.partition(" as ")[0]), []).append(page)
    return found


def pages_with(name: str) -> list[Path]:
    """The pages whose examples import a public name, each once.

    Args:
        name: in full, as on a page of the API.
    """
    module, _, last = name.rpartition(".")
    return list(dict.fromkeys(imported().get((module, last), [])))


def shows(page: str, name: str) -> bool:
    """Whether an example of a page names something, in what is typed or in what is answered.

    Args:
        page: the page's text.
        name: the last part of a public name.
    """
    return any(re.search(rf"\b{re.escape(name)}\b", example) for example in _EXAMPLE.findall(page))


def title_of(page: Path) -> str:
    """The heading of a page."""
    return page.read_text("utf-8").partition("\n")[0].removeprefix("# ")
