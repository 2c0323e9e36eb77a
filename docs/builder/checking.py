"""What a built site must be: every link and anchor leads somewhere, and no page asks another host for anything."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself. A link is followed by people only, and may lead anywhere.
_FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data"}
_FETCHED_RELATIONS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch"}
_IN_STYLE = re.compile(r"""(?:@import\s+|url\()\s*["']?((?:https?:)?//[^"')\s]+)""")


class Page(HTMLParser):
    """One page: its anchors, its links, and what a browser fetches for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take down what an element names, leads to and fetches."""
        given = {name: value for name, value in attrs if value is not None}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and "href" in given and set(given.get("rel", "").split()) & _FETCHED_RELATIONS:
            self.fetched.append(given["href"])
        if tag in _FETCHED and _FETCHED[tag] in given:
            self.fetched.append(given[_FETCHED[tag]])
        self.fetched += _IN_STYLE.findall(given.get("style", ""))


@dataclass(frozen=True)
class Findings:
    """What is wrong with a site, and how much was looked at.

    Attributes:
        pages: how many pages there are.
        links: how many links inside the site were followed.
        broken: links and files that lead nowhere, each with its page.
        foreign: what pages and styles would fetch from other hosts, each with its file.
    """

    pages: int
    links: int
    broken: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


def looked_at(site: Path) -> Findings:
    """Look at every page and style of a built site.

    Args:
        site: the folder of its pages.
    """
    site = site.resolve()
    pages = {file: Page(file.read_text("utf-8")) for file in sorted(site.rglob("*.html"))}
    links = [(file, link) for file, page in pages.items() for link in page.links if _is_inside(link)]
    broken = [f"{file.relative_to(site)}: {link}" for file, link in links if not _leads(file, link, pages)]
    for file, page in pages.items():
        inside = [each for each in page.fetched if _is_inside(each)]
        broken += [f"{file.relative_to(site)}: {each}" for each in inside if not _target(file, each).exists()]
    return Findings(len(pages), len(links), broken, sorted(_foreign(site, pages)))


def _is_inside(link: str) -> bool:
    parts = urlsplit(link)
    return not parts.scheme and not parts.netloc


def _target(file: Path, link: str) -> Path:
    path = unquote(urlsplit(link).path)
    target = (file.parent / path).resolve() if path else file
    return target / "index.html" if target.is_dir() else target


def _leads(file: Path, link: str, pages: dict[Path, Page]) -> bool:
    """Whether a link's file exists, and has its anchor."""
    target, anchor = _target(file, link), unquote(urlsplit(link).fragment)
    page = pages.get(target)
    return target.exists() and (not anchor or page is None or anchor in page.anchors)


def _foreign(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    for file, page in pages.items():
        for each in page.fetched:
            if urlsplit(each).netloc:
                yield f"{file.relative_to(site)}: {each}"
    for style in site.rglob("*.css"):
        for each in _IN_STYLE.findall(style.read_text("utf-8")):
            yield f"{style.relative_to(site)}: {each}"
