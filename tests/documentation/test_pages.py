"""The documentation site as it is written: its configuration, its contents, and what is filled in from the code."""

import fnmatch
import json
import re
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from builder import checking, commands, docstrings, generated, shipped
from shuffledp.cli.app import COMMANDS, built

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def conf() -> ModuleType:
    spec = spec_from_file_location("site_conf", DOCS / "conf.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pages() -> set[Path]:
    return {page for page in DOCS.rglob("*.md") if page != DOCS / "README.md"}


def listed(page: Path) -> set[Path]:
    """The pages in the tables of contents of a page."""
    found = set()
    for tree in _TOCTREE.findall(page.read_text("utf-8")):
        for line in (line for line in tree.splitlines() if line.strip() and not line.startswith(":")):
            hits = {each for each in pages() if fnmatch.fnmatch(str(each.with_suffix("")), str(page.parent / line))}
            assert hits, f"{page.relative_to(ROOT)}: there is no page {line}"
            found |= hits - {page}
    return found


def test_every_page_is_in_one_table_of_contents() -> None:
    reached: list[Path] = [DOCS / "index.md"]
    for page in reached:
        reached += sorted(listed(page))
    assert len(reached) == len(set(reached)), "a page is listed twice"
    assert set(reached) == pages()


def test_what_the_site_is_made_with(conf: ModuleType) -> None:
    assert conf.html_theme == "furo" and {"myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"} <= set(
        conf.extensions
    )
    assert "dollarmath" in conf.myst_enable_extensions and not conf.smartquotes
    # Formulas come from the site itself, fonts, too.
    assert (
        not re.match(r"\w+:|//", conf.mathjax_path)
        and conf.mathjax4_config["loader"]["paths"]["fonts"] == "[mathjax]/fonts"
    )
    build = (DOCS / "builder" / "build.py").read_text("utf-8")
    assert '"-W"' in build and "builder.build" in (ROOT / "Makefile").read_text("utf-8")


def test_what_it_needs_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pinned = {line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()}
    needed = {re.split(r"[>=<]", each)[0] for each in project["optional-dependencies"]["docs"]}
    assert needed == {"sphinx", "furo", "myst-parser"} and needed <= pinned
    assert "docs" in re.split(r"[\[\],]", project["optional-dependencies"]["dev"][0])


def test_what_npm_fetches_is_pinned_and_names_no_host() -> None:
    folder = DOCS / "builder"
    asked = json.loads((folder / "package.json").read_text("utf-8"))["dependencies"]
    lock = json.loads((folder / "package-lock.json").read_text("utf-8"))["packages"]
    for name, version in asked.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version) and lock[f"node_modules/{name}"]["version"] == version
    assert all(each.get("integrity") and "resolved" not in each for place, each in lock.items() if place)
    assert {part.partition("/dist")[0] for part in shipped.PARTS} >= {"@mermaid-js/tiny", "mathjax/tex-chtml.js"}


def test_every_command_and_every_option_is_in_the_reference() -> None:
    told = ""
    for panel in COMMANDS:
        page = DOCS / "reference" / "commands" / f"{commands.page_of(panel)}.md"
        assert f"```{{commands}} {panel}\n```" in page.read_text("utf-8")
        told += generated.filled(page.read_text("utf-8"))
    table = generated.filled((DOCS / "reference" / "command-line.md").read_text("utf-8"))

    def look(command: object, words: str) -> int:
        assert re.search(rf"^#+ {re.escape(words)}$", told, re.M), words
        assert f"`{words}`" in table or words.startswith("shuffledp plan "), words
        section = re.split(r"^#+ shuffledp", told.partition(f" {words}\n")[2], maxsplit=1, flags=re.M)[0]
        for option in (option for each in command.params for option in each.opts if option.startswith("--")):
            assert option in section or option == "--help", f"{words} {option}"
        inner = getattr(command, "commands", {})
        return 1 + sum(look(each, f"{words} {name}") for name, each in inner.items() if not each.hidden)

    program = built()
    found = sum(look(each, f"shuffledp {name}") for name, each in program.commands.items() if not each.hidden)
    assert found > 60 and len(list(commands.every_command())) >= found


def test_a_table_cell_and_an_option_stay_what_they_are() -> None:
    assert commands.prose("[bold]a[/bold] *b* `x*y` <C|D>") == r"a \*b\* `x*y` \<C|D\>"
    assert commands.prose("by --low and `x --high`, --top") == "by `--low` and `x --high`, `--top`"
    text = ["A | b, *rows and `c|d`.", "", "Args:", "    **more: what | is.", "", ">>> a | b", "1 | 2"]
    assert docstrings.as_written(text) == [r"A \| b, \*rows and `c|d`.", *text[1:]]


def test_signatures_are_lines_and_no_lists() -> None:
    whole = '<dt>\n<dl>\n<dd><em class="sig-param">a</em>,</dd>\n<dd><em class="sig-param">b</em>,</dd>\n</dl>\n</dt>'
    line = '<span class="sig-line"><em class="sig-param">{}</em>,</span>\n'
    assert docstrings.in_lines(whole) == f"<dt>\n{line.format('a')}{line.format('b')}\n</dt>"
    assert docstrings.in_lines("<dl>\n<dd><p>told</p></dd>\n</dl>") == "<dl>\n<dd><p>told</p></dd>\n</dl>"


def test_the_glossary_leads_to_names_and_proofs() -> None:
    rows = re.findall(r"^\| (?!symbol)[^-].*$", (DOCS / "glossary.md").read_text("utf-8"), re.M)
    assert len(rows) > 35
    for row in rows:
        name, proof = re.search(r"\]\((reference/api/[\w-]+\.md)#", row), re.search(r"\]\((theory/[\w-]+\.md)", row)
        assert name and proof, row
        assert (DOCS / name[1]).is_file() and (DOCS / proof[1]).is_file(), row
    for paper in ("[000]", "[001]", "[002]", "[003]", "[004]"):
        assert any(paper in row for row in rows), paper


def test_the_theory_writes_formulas_as_formulas() -> None:
    """No displayed formula is left as a block of code: those begin with what is typed."""
    for page in (DOCS / "theory").glob("*.md"):
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
        for block in re.findall(r"(?:^ {4}.*\n)+", text, re.M):
            assert block.lstrip().startswith((">>>", "shuffledp ", "python ", "$$")), (page.name, block)


def test_links_that_lead_nowhere_and_things_from_elsewhere_are_found(tmp_path: Path) -> None:
    """Wrong twins of the site."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "style.css").write_text("@import 'https://fonts.example/x.css'; a { background: url(local.png) }")
    (tmp_path / "folder" / "index.html").write_text('<h1 id="here"></h1><a href="../index.html#there">x</a>')
    (tmp_path / "index.html").write_text(
        '<a id="top" href="folder/#here"></a><a href="#top"></a><a href="#nowhere"></a><a href="gone.html"></a>'
        '<a href="folder/index.html#not"></a><a href="https://example.org/">may lead anywhere</a>'
        '<script src="//cdn.example/x.js"></script><link rel="stylesheet" href="style.css"><img src="gone.png">'
    )
    found = checking.looked_at(tmp_path)
    assert found.pages == 2 and found.links == 6
    assert found.broken == [
        "folder/index.html: ../index.html#there",
        "index.html: #nowhere",
        "index.html: gone.html",
        "index.html: folder/index.html#not",
        "index.html: gone.png",
    ]
    assert found.foreign == ["index.html: //cdn.example/x.js", "style.css: https://fonts.example/x.css"]


def test_pages_of_the_projects_folder_are_linked_as_pages_of_the_site() -> None:
    text = generated.filled("```{file} CONTRIBUTING.md\n```\n\n[x](../../SECURITY.md) [y](docs/compare.md)")
    assert "# Contributing" in text and "[x](/security.md) [y](/compare.md)" in text
    drawn = generated.filled("```mermaid\na <b>\n```")
    assert "```{raw} html" in drawn and "a &lt;b&gt;" in drawn
