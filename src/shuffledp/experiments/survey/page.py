"""A comparison as one web page that needs nothing else: pictures are inside."""

import base64
from collections.abc import Sequence
from html import escape

from shuffledp.experiments.survey.comparison import Comparison
from shuffledp.experiments.survey.results import Cell, Line, Measured, Row, Table, figure
from shuffledp.pictures.survey import Bar, BarPanel, LinePanel, PanelLine, survey_png

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
            '<span class="local">Local</span>: nobody is trusted and nobody shuffles. <span '
            'class="shuffle">Shuffle</span>: messages '
            'are permuted before anybody sees them. <span class="central">Central</span>: a curator sees all '
            "data. Noise of shuffle "
            "protocols comes from the accountant's exact curve and is drawn from the protocol's own law; "
            "brackets are 95% "
            "intervals; exponents are least squares on logarithms with Student's 95% interval. Dotted lines "
            "in pictures have the "
            f"survey's exponent. Effort {setting.effort.value}, seed {setting.seed}: the same seed gives the "
            "same numbers.</p>",
            f"<ul>{links}</ul>",
            *(_section(table) for table in comparison.tables),
            "</body></html>\n",
        )
    )


def _section(table: Table) -> str:
    picture = base64.b64encode(survey_png(panels(table), f"Table {table.number}: {table.title}")).decode()
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
    heads = "".join(f"<th>{escape(name)}</th>" for name in head)
    rows = []
    for place, cells in enumerate(body):
        kind = f' class="{classes[place]}"' if classes else ""
        texts = "".join(f"<td{' class=number' if _is_number(cell) else ''}>{escape(cell)}</td>" for cell in cells)
        rows.append(f"<tr{kind}>{texts}</tr>")
    return (
        f'<div class="wide"><table><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text[:1] == "-"


def _survey(table: Table) -> str:
    columns = list(dict.fromkeys(name for row in table.rows for name in row.survey))
    rows = [row for row in table.rows if any(row.survey.values())]
    body = [[row.name, *(row.survey.get(name, "") for name in columns), row.source] for row in rows]
    return _html_table("What the survey says", ["", *columns, "source"], body)


def _cells(table: Table) -> str:
    names = list(dict.fromkeys(name for row in table.rows for name in row.cells))
    if not names:
        return ""
    body = [[row.name, *(_text(row.cells.get(name)) for name in names)] for row in table.rows if row.cells]
    return _html_table("Measured here", ["", *names], body)


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return figure(cell)
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _lines(table: Table) -> str:
    body, classes = [], []
    for row in table.rows:
        for line in row.lines:
            chosen = _some(len(line.x))
            points = "; ".join(f"{line.x[i]:,g}: {line.points[i]}" for i in chosen)
            fit = line.exponent
            said = "–" if fit is None or fit.claimed is None else f"{fit.claimed:.2f}"
            body.append(
                [
                    row.name,
                    line.model,
                    line.name,
                    line.measures,
                    line.against,
                    points,
                    "–" if fit is None else str(fit),
                    said,
                ]
            )
            classes.append(line.model)
    if not body:
        return ""
    head = [
        "problem",
        "model",
        "protocol",
        "measured",
        "against",
        "at: value (95%)",
        "exponent fitted",
        "survey's exponent",
    ]
    return _html_table("Lines measured here", head, body, classes)


def _some(count: int) -> list[int]:
    if count <= _BETWEEN:
        return list(range(count))
    return sorted({round(place * (count - 1) / (_BETWEEN - 1)) for place in range(_BETWEEN)})


def panels(table: Table) -> list[LinePanel | BarPanel]:
    """What the picture shows: bars of cells, and lines, of all rows together where a row is a method."""
    drawn: list[LinePanel | BarPanel] = [_bar_panel(table, *bars) for bars in table.bars]
    together = any(row.cells for row in table.rows)
    groups: dict[tuple[str, str], list[Line]] = {}
    for row in table.rows:
        for line in row.lines:
            groups.setdefault(("" if together else row.name, line.against), []).append(line)
    for (name, against), lines in groups.items():
        shown = [line for line in lines if all(point.value > 0 for point in line.points)]
        if shown:
            title = name or f"against {against}"
            drawn.append(
                LinePanel(
                    title=title,
                    against=against,
                    measures=shown[0].measures,
                    lines=[_panel_line(line) for line in shown],
                )
            )
    return drawn


def _panel_line(line: Line) -> PanelLine:
    return PanelLine(
        name=line.name,
        model=line.model,
        x=line.x,
        y=[point.value for point in line.points],
        low=[point.low for point in line.points],
        high=[point.high for point in line.points],
        slope=None if line.exponent is None else line.exponent.claimed,
    )


def _bar_panel(table: Table, title: str, measured: str, claimed: str) -> BarPanel:
    return BarPanel(title=title, bars=[_bar(row, measured, claimed) for row in table.rows if row.cells])


def _bar(row: Row, measured: str, claimed: str) -> Bar:
    cell, other = (row.cells.get(name) for name in (measured, claimed))
    model = "local" if row.name.startswith("local") else "central" if row.name.startswith("trusted") else "shuffle"
    return Bar(
        name=row.name.split(":")[0],
        model=model,
        value=cell.value if isinstance(cell, Measured) else cell if isinstance(cell, float) else None,
        low=cell.low if isinstance(cell, Measured) else None,
        high=cell.high if isinstance(cell, Measured) else None,
        claimed=other if isinstance(other, float) else None,
    )
