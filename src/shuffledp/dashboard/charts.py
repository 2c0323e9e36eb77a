"""Pictures of answers as data, which the page's script draws: a line with a band, or a bar a name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shuffledp.files import plain
from shuffledp.protocols.presentation import Presentation

MOST_POINTS = 2000
"""Points of a line that are sent at once: more than a screen has columns."""
MOST_BARS = 40

Drawn = dict[str, Any]


def line_of(releases: Sequence[Mapping[str, Any]]) -> Drawn | None:
    """The running estimate with its band, as a line; None where estimates are no single numbers.

    Args:
        releases: as JSON, oldest first; of many, some are left out, never the first or the last.
    """
    if not releases or not isinstance(releases[-1]["estimate"], int | float):
        return None
    kept = np.unique(np.linspace(0, len(releases) - 1, min(len(releases), MOST_POINTS)).round().astype(int))
    shown = [releases[place] for place in kept.tolist()]
    bounds = [each["bound"] or 0.0 for each in shown]
    confidence = releases[-1]["confidence"]
    return {
        "kind": "line",
        "x": [each["time"] for each in shown],
        "y": [each["estimate"] for each in shown],
        "low": [each["estimate"] - bound for each, bound in zip(shown, bounds, strict=True)],
        "high": [each["estimate"] + bound for each, bound in zip(shown, bounds, strict=True)],
        "across": "people counted",
        "band": "" if confidence is None else f"band: {confidence:.0%} confidence",
    }


def chart_of(presentation: Presentation) -> Drawn | None:
    """The chart of an answer, as the plan presents it; None for a single number, or a chart that is not drawn here."""
    chart = presentation.chart
    if chart is not None:
        return _DRAWN[chart.kind](chart.data) if chart.kind in _DRAWN else None
    columns = presentation.columns
    if "name" not in columns or len(columns["name"]) < 2:
        return None
    names = [str(name) for name in columns["name"]]
    return _bars(names, *(columns[each] for each in ("estimate", "lower", "upper")), note="", in_order=True)


def _bars(names: Sequence[str], value: Any, low: Any, high: Any, *, note: str, in_order: bool) -> Drawn:
    """A bar a name, the largest first; of many only the largest, and it says how many not."""
    array = np.asarray(value, dtype=np.float64)
    order = np.argsort(-array, kind="stable")[:MOST_BARS]
    if in_order:
        order = np.sort(order)
    left_out = array.size - order.size
    more = [f"{left_out:,} smaller ones are not drawn"] if left_out else []
    return {
        "kind": "bars",
        "names": [str(names[code]) for code in order.tolist()],
        "note": "; ".join([*([note] if note else []), *more]),
        **{
            name: plain(np.asarray(each, dtype=np.float64)[order])
            for name, each in (("y", array), ("low", low), ("high", high))
        },
    }


def _bar_chart(data: Mapping[str, Any]) -> Drawn:
    value = np.asarray(data["estimates"], dtype=np.float64)
    low, high = data.get("intervals") or (np.maximum(value - data["bound"], 0.0), value + data["bound"])
    note = f"error bars: {data['confidence']:.0%} confidence for all at once"
    return _bars(data["names"], value, low, high, note=note, in_order=bool(data["in_order"]))


def _distribution(data: Mapping[str, Any]) -> Drawn:
    share, bound = np.asarray(data["shares"], dtype=np.float64), float(data["bound"])
    values = np.asarray(data["values"])
    across = (values.astype("datetime64[D]") if values.dtype.kind == "U" else values).astype(np.float64)
    kept = np.unique(np.linspace(0, share.size - 1, min(share.size, MOST_POINTS)).round().astype(int))
    return {
        "kind": "line",
        "x": plain(across[kept]),
        "y": plain(share[kept]),
        "low": plain(np.clip(share[kept] - bound, 0.0, 1.0)),
        "high": plain(np.clip(share[kept] + bound, 0.0, 1.0)),
        "across": "days since 1970" if values.dtype.kind == "U" else "value",
        "band": "share of people at or below a value, with its band",
    }


_DRAWN: dict[str, Callable[[Mapping[str, Any]], Drawn]] = {"bars": _bar_chart, "distribution": _distribution}
