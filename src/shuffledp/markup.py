"""Tables and small pictures as HTML, for notebooks: texts in, escaped texts out, nothing to install.

Pictures are SVG, drawn in the colour of the text around them, so that they suit light and dark pages. A browser finds
fonts for names in any script.
"""

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

_MOST_BARS = 12
_LONGEST_NAME = 24
_MOST_POINTS = 400
_WIDTH, _LEFT, _RIGHT = 420, 150, 70
_BLUE = "#4c72b0"


def escaped(text: Any) -> str:
    """A text that stands in a page as it is.

    >>> escaped("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return html.escape(str(text))


def section(*parts: str) -> str:
    """Tables and pictures below each other; empty ones are left out."""
    return f'<div class="shuffledp">{"".join(part for part in parts if part)}</div>'


def facts(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    """A table of names and texts below each other; where a text is None there is nothing to say."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escaped(name)}</th><td style="text-align:left">{escaped(text)}</td></tr>'
        for name, text in rows
        if text is not None
    )
    return f"<table>{_caption(title)}<tbody>{cells}</tbody></table>"


def listing(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: Sequence[bool] = (),
    note: str = "",
) -> str:
    """A table with headings, a text a cell.

    Args:
        title: what stands above it.
        headings: a text a column.
        rows: a text a column each.
        left: for each column whether it is set to the left, as words are; only the first if left out.
        note: what stands below it.
    """
    sides = ["left" if is_left else "right" for is_left in (left or [place == 0 for place in range(len(headings))])]
    head = "".join(
        f'<th style="text-align:{side}">{escaped(each)}</th>' for each, side in zip(headings, sides, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="text-align:{side}">{escaped(cell)}</td>' for cell, side in zip(row, sides, strict=True))
        + "</tr>"
        for row in rows
    )
    below = f"<p><small>{escaped(note)}</small></p>" if note else ""
    return f"<table>{_caption(title)}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def bars(
    names: Sequence[str],
    values: ArrayLike,
    bound: float = 0.0,
    *,
    in_order: bool = False,
    intervals: tuple[ArrayLike, ArrayLike] | None = None,
) -> str:
    """A bar a name, the largest first, each with its error bar; of many only some are drawn, and it says how many not.

    Args:
        names: what each bar stands for.
        values: how long it is; below 0 it is drawn as 0.
        bound: how far every value may be off; 0 draws no error bars.
        in_order: whether bars keep the order that they are given in.
        intervals: the lower and the upper ends of every value's own interval, where one bound is not all's.
    """
    array = np.asarray(values, dtype=np.float64)
    order = np.arange(array.size) if in_order else np.argsort(-array, kind="stable")
    shown = order[:_MOST_BARS].tolist()
    if not shown or not math.isfinite(bound) or not np.isfinite(array).all():
        return ""
    given = (array - bound, array + bound) if intervals is None else intervals
    lower, upper = (np.clip(np.asarray(end, dtype=np.float64), 0.0, None) for end in given)
    most = max(float(np.maximum(array, upper).max()), 1e-300)
    scale = (_WIDTH - _LEFT - _RIGHT) / most
    parts = []
    for place, code in enumerate(shown):
        value, middle = float(array[code]), 18 * place + 11
        parts.append(_text(_LEFT - 6, middle + 4, _short(str(names[code])), "end"))
        parts.append(_bar(_LEFT, middle - 6, scale * max(0.0, value), 12))
        if bound:
            ends = [_LEFT + scale * float(end[code]) for end in (lower, upper)]
            parts.append(_line(ends[0], middle, ends[1], middle))
            parts += [_line(end, middle - 3, end, middle + 3) for end in ends]
        parts.append(_text(_LEFT + scale * max(value, float(upper[code])) + 6, middle + 4, f"{value:,.4g}", "start"))
    left_out = array.size - len(shown)
    note = f"<p><small>{left_out:,} more are not drawn</small></p>" if left_out else ""
    return _svg(_WIDTH, 18 * len(shown) + 6, parts) + note


def interval(value: float, lower: float, upper: float) -> str:
    """One number as a point between the ends of its interval, which are written below."""
    if not all(map(math.isfinite, (value, lower, upper))) or lower >= upper:
        return ""
    left, right = 60.0, _WIDTH - 60.0
    at = left + (right - left) * (value - lower) / (upper - lower)
    parts = [
        _line(left, 12, right, 12),
        _line(left, 7, left, 17),
        _line(right, 7, right, 17),
        f'<circle cx="{at:.1f}" cy="12" r="4" fill="{_BLUE}"/>',
        *(_text(x, 32, f"{number:,.6g}", "middle") for x, number in ((left, lower), (at, value), (right, upper))),
    ]
    return _svg(_WIDTH, 38, parts)


def curve(
    x: ArrayLike,
    y: ArrayLike,
    bound: float,
    *,
    against: str,
    measures: str,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> str:
    """A line with a band, and the ends of both axes in numbers.

    Args:
        x: where; rising numbers, or days in ISO form.
        y: how high.
        bound: half of the band's width.
        against: what x is.
        measures: what y is.
        within: what y can be; the band ends there.
    """
    named, height = np.asarray(x), np.asarray(y, dtype=np.float64)
    across = (named.astype("datetime64[D]") if named.dtype.kind == "U" else named).astype(np.float64)
    first, last = (str(end) if named.dtype.kind == "U" else f"{end:,.6g}" for end in (named[0], named[-1]))
    some = np.unique(np.linspace(0, across.size - 1, min(across.size, _MOST_POINTS)).round().astype(int))
    across, height = across[some], height[some]
    below, above = np.clip(height - bound, *within), np.clip(height + bound, *within)
    low, high = float(below.min()), float(above.max())
    if across.size < 2 or not (math.isfinite(low) and math.isfinite(high) and low < high):
        return ""
    left, right, top, bottom = 70.0, _WIDTH - 20.0, 12.0, 130.0
    sideways = left + (right - left) * (across - across[0]) / (across[-1] - across[0])

    def places(level: Any) -> list[str]:
        down = bottom - (bottom - top) * (level - low) / (high - low)
        return [f"{a:.1f},{b:.1f}" for a, b in zip(sideways.tolist(), down.tolist(), strict=True)]

    band = " ".join(places(below) + places(above)[::-1])
    parts = [
        f'<polygon points="{band}" fill="{_BLUE}" fill-opacity="0.25"/>',
        f'<polyline points="{" ".join(places(height))}" fill="none" stroke="{_BLUE}" stroke-width="1.5"/>',
        _line(left, bottom, right, bottom),
        _line(left, top, left, bottom),
        _text(left - 6, bottom, f"{low:,.4g}", "end"),
        _text(left - 6, top + 8, f"{high:,.4g}", "end"),
        _text(left, bottom + 16, first, "start"),
        _text(right, bottom + 16, last, "end"),
        _text((left + right) / 2, bottom + 16, against, "middle"),
        _text(left + 8, top + 8, measures, "start"),
    ]
    return _svg(_WIDTH, 154, parts)


def _caption(title: str) -> str:
    return f'<caption style="text-align:left"><b>{escaped(title)}</b></caption>' if title else ""


def _short(name: str) -> str:
    words = " ".join(name.split())
    return words if len(words) <= _LONGEST_NAME else f"{words[: _LONGEST_NAME - 9]}…{words[-8:]}"


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{"".join(parts)}</svg>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    look = f'font-size="12" fill="currentColor" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{escaped(text)}</text>'


def _bar(x: float, y: float, width: float, height: float) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{_BLUE}"/>'


def _line(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="currentColor"/>'
