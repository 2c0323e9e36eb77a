"""`shuffledp papers compare`: all tables on one page that needs nothing else, every row as data, and the contract."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import pytest

from shuffledp import cli
from shuffledp.experiments.survey import table5
from shuffledp.experiments.survey.comparison import TABLES
from shuffledp.experiments.survey.results import Model
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.histogram import Histogram
from shuffledp.protocols.ranges import Ranges

VOID = {"meta", "img"}


def _run(capsys, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["papers", "compare", *words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> tuple[dict, str]:
    """All six tables, quickly: measured once for this module."""
    from contextlib import redirect_stdout
    from io import StringIO

    target, said = tmp_path_factory.mktemp("page") / "all.html", StringIO()
    with redirect_stdout(said), pytest.raises(SystemExit) as ended:
        cli.main(["papers", "compare", "--quick", "--json", "-o", str(target)])
    assert not ended.value.code, said.getvalue()
    return json.loads(said.getvalue()), target.read_text()


def _no_constant(name: str) -> None:
    raise AssertionError(name)


def test_every_table_and_every_row(everything) -> None:
    document, _ = everything
    json.loads(json.dumps(document), parse_constant=_no_constant)
    assert document["schema"] == 1 and [table["number"] for table in document["tables"]] == [1, 2, 3, 4, 5, 6]
    rows = {table["number"]: [row["name"] for row in table["rows"]] for table in document["tables"]}
    assert len(rows[1]) == 4 and len(rows[3]) == 3 and len(rows[4]) == 5
    assert rows[2] == [*BinarySum.methods, "Cheu-Yan"]
    assert rows[5][:-2] == list(Histogram.methods) and rows[6][2:-2] == list(Ranges.methods)
    assert all(len(TABLES[number].ROWS) in (len(names), len(names) - 1) for number, names in rows.items())


def test_rows_hold_measurements(everything) -> None:
    document, _ = everything
    for table in document["tables"]:
        assert table["sees"] and table["how"]
        for row in table["rows"]:
            assert row["cells"] or row["lines"] or row["notes"], row["name"]
            for line in row["lines"]:
                assert line["model"] in get_args(Model) and len(line["x"]) == len(line["points"]) >= 3
                assert all(point["low"] <= point["value"] <= point["high"] for point in line["points"])
                assert all(point["runs"] >= 2 for point in line["points"])


def test_the_survey_separates_the_models(everything) -> None:
    """In every row of Tables 1 and 3 but pointer chasing, small as it is here, local ends above shuffle."""
    document, _ = everything
    checked = 0
    for table in document["tables"][0], document["tables"][2]:
        for row in table["rows"]:
            last = {}
            for line in row["lines"]:
                last[line["model"], line["against"]] = line["points"][-1]["value"]
            for (model, against), value in last.items():
                if model == "local" and not row["name"].startswith("(2"):
                    assert value > last["shuffle", against], row["name"]
                    checked += 1
    assert checked >= 4


def test_claims_are_kept(everything) -> None:
    document, _ = everything
    for row in document["tables"][1]["rows"][:-1]:
        cells = row["cells"]
        # A method that keeps zero claims nothing for sums that it cannot tell from it.
        if cells and not BinarySum.methods[row["name"]].keeps_zero:
            # Three times the width of a 95% interval: left once in 3e8.
            error = cells["error"]
            assert abs(error["value"] - cells["claimed error"]) <= 3 * (error["high"] - error["value"]), row["name"]


class _Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag, attrs) -> None:
        named = dict(attrs)
        self.ids |= {named["id"]} if "id" in named else set()
        self.links |= {named["href"]} if "href" in named else set()
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(everything) -> None:
    _, text = everything
    parser = _Balanced()
    parser.feed(text)
    assert parser.open == [] and {link.removeprefix("#") for link in parser.links} == parser.ids
    assert text.count("data:image/png;base64,iVBOR") == 6
    assert not re.search(r"(src|href)=.?(https?:|//|/)", text) and "<script" not in text and "url(" not in text
    for said in ("Ω(√n / ε)", "exponent fitted", "What the survey says", "seed 1"):
        assert said in text


def test_one_table_for_a_person(capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(table5, "ROWS", (table5.ROWS[0], *table5.ROWS[-2:]))
    target = tmp_path / "five.html"
    code, out, _ = _run(capsys, "--quick", "--table", "5", "-o", str(target))
    assert code == 0 and "Table 5" in out and "Next:" in out and str(target) in out
    assert "Table 5" in target.read_text() and list(tmp_path.iterdir()) == [target]


def test_refusals_leave_no_file(capsys, tmp_path: Path) -> None:
    target = str(tmp_path / "page.html")
    for words, parameter in (
        (["--quick", "--full", "-o", target], "quick"),
        (["--quick", "--table", "9", "-o", target], "table"),
        (["--quick", "--epsilon", "-1", "-o", target], "epsilon"),
        (["--quick", "--seed", "-1", "-o", target], "seed"),
        (["--quick", "-o", str(tmp_path / "none" / "page.html")], "out"),
    ):
        code, out, err = _run(capsys, *words, "--json")
        assert code == 2 and err == "" and json.loads(out)["error"]["parameter"] == parameter
    assert list(tmp_path.iterdir()) == []
