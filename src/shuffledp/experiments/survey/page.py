"""A comparison as one web page that needs nothing else: pictures are inside."""

import base64
from collections.abc import Iterator, Sequence
from html import escape

from shuffledp.experiments.survey.comparison import Comparison
from shuffledp.experiments.survey.picture import survey_png
from shuffledp.experiments.survey.results import Cell, Line, Table, figure

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1180px; padding: 1.5rem;
  color: #1b1f24; background: #fff; }
h1 { line-height: 1.2; } h2 { margin-top: 3rem; border-top: 2px solid #d0d7de; padding-top: 1.2rem; }
table { border-collapse: collapse; font-size: 0.86rem; margin: 0.8rem 0; }
th, td { border-bottom: 1px solid #d8dee4; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }
th { background: #f6f8fa; } td.number { text-align: right; white-space: nowrap; }
caption { text-align: left; font-weight: 600; padding: 0.3rem 0; }
.wide { overflow-x: auto; } img { max-width: 100%; height: auto; }
.local { color: #b03a3f; } .shuffle { color: #355d9c; } .central { color: #444; }
.sees { background: #f0f6ff; border-left: 4px solid #4c72b0; padding: 0.6rem 1rem; }
.notes, .how { color: #57606a; font-size: 0.9rem; }
"""
_BETWEEN = 4
"""So many points of a line are written down, the first and the last among them; the picture has all."""
_LINE = "problem | model | protocol | measured | against | at: value (95%) | exponent fitted | survey's exponent"


def page(comparison: Comparison) -> str:
    """The whole page."""
    setting = comparison.setting
    privacy = setting.privacy
    links = "".join(
        f'<li><a href="#table-{table.number}">Table {table.number}: {escape(table.title)}</a></li>'
        for table in comparison.tables
    )
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>The shuffle model, measured</title><style>{_STYLE}</style></head><body>",
            "<h1>The shuffle model between the local and the central one, measured</h1>",
            "<p>The tables of <em>Cheu 2022, Differential Privacy in the Shuffle Model: A Survey of Separations</em> "
            "say how error and sample size grow, up to constants. Here are the constants: every protocol below was "
            "run, with noise that is proved, and stands beside what the survey says of it.</p>",
            f"<p>ε = {privacy.epsilon:g}, δ = {privacy.delta:g}, replacement neighbours, unless a row says otherwise. "
            '<span class="local">Local</span>: one trusts no other device. <span class="shuffle">Shuffle'
            '</span>: messages are permuted before anybody sees them. <span class="central">Central</span>: a curator '
            "sees all data. Noise of shuffle protocols comes from the accountant's exact curve and is drawn from the "
            "protocol's own law; brackets are 95% intervals; exponents are least squares on logarithms with Student's "
            "95% interval. Dotted lines in pictures have the survey's exponent. "
            f"Effort {setting.effort.value}, seed {setting.seed}: the same seed gives the same numbers.</p>",
            f"<ul>{links}</ul>",
            *(_section(table) for table in comparison.tables),
            "</body></html>\n",
        )
    )


def _section(table: Table) -> str:
    picture = base64.b64encode(survey_png(table)).decode()
    noted = [(row.name, note) for row in table.rows for note in row.notes]
    notes = "".join(f"<li><strong>{escape(name)}:</strong> {escape(note)}</li>" for name, note in noted)
    return "".join(
        (
            f'<section id="table-{table.number}"><h2>Table {table.number}: {escape(table.title)}</h2>',
            f'<p class="how">{escape(table.how)}</p>',
            _survey(table),
            f'<p class="sees">{escape(table.sees)}</p>',
            f'<img alt="Table {table.number}, measured" src="data:image/png;base64,{picture}">',
            _cells(table),
            _lines(table),
            f'<ul class="notes">{notes}</ul>' if notes else "",
            "</section>",
        )
    )


def _html_table(caption: str, head: Sequence[str], body: Sequence[Sequence[str]], classes: Sequence[str] = ()) -> str:
    if not body:
        return ""
    heads = "".join(f"<th>{escape(name)}</th>" for name in head)
    rows = []
    for place, cells in enumerate(body):
        kind = f' class="{classes[place]}"' if classes else ""
        texts = "".join(
            f"<td{' class=number' if cell[:1].isdigit() or cell[:1] == '-' else ''}>{escape(cell)}</td>"
            for cell in cells
        )
        rows.append(f"<tr{kind}>{texts}</tr>")
    return (
        f'<div class="wide"><table><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _survey(table: Table) -> str:
    columns = list(dict.fromkeys(name for row in table.rows for name in row.survey))
    rows = [row for row in table.rows if any(row.survey.values())]
    body = [[row.name, *(row.survey.get(name, "") for name in columns), row.source] for row in rows]
    return _html_table("What the survey says", ["", *columns, "source"], body)


def _cells(table: Table) -> str:
    names = list(dict.fromkeys(name for row in table.rows for name in row.cells))
    body = [[row.name, *(_text(row.cells.get(name)) for name in names)] for row in table.rows if row.cells]
    return _html_table("Measured here", ["", *names], body)


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return figure(cell)
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _lines(table: Table) -> str:
    lines = [(row, line) for row in table.rows for line in row.lines]
    return _html_table(
        "Lines measured here",
        _LINE.split(" | "),
        [[row.name, *_described(line)] for row, line in lines],
        [line.model for _, line in lines],
    )


def _described(line: Line) -> Iterator[str]:
    yield from (line.model, line.name, line.measures, line.against)
    last = len(line.x) - 1
    chosen = sorted({round(place * last / (_BETWEEN - 1)) for place in range(_BETWEEN)})
    yield "; ".join(f"{line.x[i]:,g}: {line.points[i]}" for i in chosen)
    fit = line.exponent
    yield "–" if fit is None else str(fit)
    yield "–" if fit is None or fit.claimed is None else f"{fit.claimed:.2f}"
