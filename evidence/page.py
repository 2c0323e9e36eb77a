"""The evidence as one web page that needs no other host, and as JSON."""

import math
import platform
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from evidence.claims import FALSE_ALARM, Effort, Measured, Says, Verdict
from evidence.printed import Number, Printed
from evidence.register import CHAPTERS

_STYLE = """
:root { --back: #fff; --raised: #f4f6f9; --text: #1b1f24; --dim: #4f5b66; --line: #c9d1d9; --accent: #1f5fa8;
  --good: #1a6e34; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --back: #12161b; --raised: #1b2129; --text: #e6eaee; --dim: #a9b4bf;
  --line: #39424d; --accent: #7db4f0; --good: #7ccf95; --bad: #ffb4ab; } }
* { box-sizing: border-box; }
html { color-scheme: light dark; }
body { margin: 0 auto; max-width: 66rem; padding: 1rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.25rem; margin: 2rem 0 .25rem; }
p { max-width: 46rem; } .dim { color: var(--dim); } nav a { margin-right: 1rem; } a { color: var(--accent); }
.total { display: inline-block; padding: .4rem .9rem; border-radius: .5rem; border: 2px solid currentcolor;
  font-size: 1.2rem; font-weight: 700; }
.holds { color: var(--good); } .fails { color: var(--bad); } .left { color: var(--dim); }
details { border-bottom: 1px solid var(--line); }
summary, .line { display: grid; grid-template-columns: 5.2rem 1fr 9rem 9rem 170px; gap: .25rem .75rem;
  padding: .5rem .25rem; cursor: pointer; align-items: center; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary:hover { background: var(--raised); }
summary:focus-visible { outline: 3px solid var(--accent); outline-offset: -2px; }
.verdict { font-weight: 700; } .numbers { font-variant-numeric: tabular-nums; }
.numbers small { display: block; color: var(--dim); }
.head { color: var(--dim); font-size: .85rem; cursor: default; border-bottom: 1px solid var(--line); }
dl { display: grid; grid-template-columns: 8rem 1fr; gap: .2rem 1rem; margin: 0 0 .9rem 6rem; }
dt { color: var(--dim); } dd { margin: 0; } code { font-size: .9em; }
svg { display: block; max-width: 100%; }
@media (max-width: 52rem) {
  summary { grid-template-columns: 4.6rem 1fr 1fr; } .line { display: none; }
  summary .numbers::before { content: attr(data-said); display: block; color: var(--dim); font-size: .8rem; }
  summary .claim { grid-column: 2 / -1; } summary .numbers:nth-of-type(3) { grid-column: 2; }
  summary .numbers:nth-of-type(4) { grid-column: 3; } summary .drawn { grid-column: 2 / -1; }
  dl { margin-left: .25rem; grid-template-columns: 1fr; } dd { margin-bottom: .4rem; }
}
"""
_WORDS = {True: ("holds", "✓ holds"), False: ("fails", "✗ fails"), None: ("left", "– left out")}


def document(verdicts: Sequence[Verdict], effort: Effort, version: str) -> dict[str, Any]:
    """All claims as JSON: one object each."""
    return {
        "schema": 1,
        "version": version,
        "quick": effort.quick,
        "seed": effort.seed,
        "false_alarm": FALSE_ALARM,
        "machine": {"system": platform.system(), "machine": platform.machine(), "python": platform.python_version()},
        "holds": not any(verdict.holds is False for verdict in verdicts),
        "claims": [_claim(verdict) for verdict in verdicts],
    }


def _claim(verdict: Verdict) -> dict[str, Any]:
    claim, measured = verdict.claim, verdict.measured
    return {
        "name": claim.name,
        "chapter": claim.chapter,
        "says": claim.says.value,
        "printed": [
            {"file": place.file, "line": number.line, "value": number.value, "half": number.half, "error": number.error}
            for place, number in verdict.numbers
        ],
        "how": claim.how,
        "because": claim.because,
        "slack": claim.slack,
        "measured": None
        if measured is None
        else {"value": measured.value, "low": measured.low, "high": measured.high, "note": measured.note},
        "holds": verdict.holds,
        "why": verdict.why,
        "cpu_seconds": round(verdict.seconds, 3),
    }


def page(verdicts: Sequence[Verdict], effort: Effort, version: str) -> str:
    """The whole page."""
    counts = {kind: sum(verdict.holds is kind for verdict in verdicts) for kind in _WORDS}
    failed = counts[False]
    told = f"{failed} of {len(verdicts)} claims fail" if failed else f"all {counts[True]} measured claims hold"
    left = f" {counts[None]} could not be measured here." if counts[None] else ""
    seconds = sum(verdict.seconds for verdict in verdicts)
    links = "".join(f'<a href="#{_anchor(name)}">{escape(name)}</a>' for name in CHAPTERS)
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>ShuffleDP: {escape(told)}</title><style>{_STYLE}</style></head><body><main>",
            "<h1>What ShuffleDP claims, measured again on this machine</h1>",
            f'<p class="total {"fails" if failed else "holds"}">{"✗" if failed else "✓"} {escape(told)}.</p>',
            "<p>Every number here was read from the file that prints it and compared with a measurement of a moment "
            f"ago.{left} A claim fails if what is printed lies outside what was measured: an interval that misses the "
            f"truth once in {1 / FALSE_ALARM:,.0f} times, or an exact computation. Open a line to see how it was "
            "measured, and why it has the tolerance that it has.</p>",
            f'<p class="dim">Version {escape(version)}; {"quick" if effort.quick else "whole"} run, seed '
            f"{effort.seed}, "
            f"{seconds:.0f} s of CPU; {escape(platform.system())} {escape(platform.machine())}, "
            f"Python {platform.python_version()}. The same with this seed: <code>make evidence "
            f"{'QUICK=1 ' if effort.quick else ''}SEED={effort.seed}</code>.</p>",
            f"<nav>{links}</nav>",
            *(_chapter(name, about, verdicts) for name, (about, _) in CHAPTERS.items()),
            "</main></body></html>\n",
        )
    )


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _chapter(name: str, about: str, verdicts: Iterable[Verdict]) -> str:
    rows = "".join(_row(verdict) for verdict in verdicts if verdict.claim.chapter == name)
    head = "".join(f'<span class="{kind}">{word}</span>' for kind, word in _HEAD)
    return (
        f'<section id="{_anchor(name)}"><h2>{escape(name)}</h2><p class="dim">{escape(about)}</p>'
        f'<div class="line head" aria-hidden="true">{head}</div>{rows}</section>'
        if rows
        else ""
    )


_HEAD = (("verdict", ""), ("claim", "claim"), ("numbers", "printed"), ("numbers", "measured"), ("drawn", ""))


def _row(verdict: Verdict) -> str:
    claim, measured = verdict.claim, verdict.measured
    kind, word = _WORDS[verdict.holds]
    relation = "" if claim.says is Says.EQUALS else f"<small>{claim.says.value}</small>"
    printed = _figure(verdict.numbers[0][1].value) if verdict.numbers else "?"
    found = "–" if measured is None else _figure(measured.value) + _spread(measured)
    return (
        f"<details{' open' if verdict.holds is False else ''}><summary>"
        f'<span class="verdict {kind}">{word}</span><span class="claim">{escape(claim.name)}</span>'
        f'<span class="numbers" data-said="printed">{printed}{relation}</span>'
        f'<span class="numbers" data-said="measured">{found}</span>'
        f'<span class="drawn">{_drawn(verdict)}</span></summary><dl>{_told(verdict)}</dl></details>'
    )


def _told(verdict: Verdict) -> str:
    claim = verdict.claim
    facts = [
        ("printed in", "; ".join(_place(place, number) for place, number in verdict.numbers)),
        ("measured by", escape(claim.how)),
        ("tolerance", escape(claim.because) + (f" Slack: {claim.slack:.0%}." if claim.slack else "")),
        ("found", "" if verdict.measured is None else escape(verdict.measured.note)),
        ("why", escape(verdict.why)),
    ]
    return "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts if text)


def _place(place: Printed, number: Number) -> str:
    said = "in words: " if place.means is not None else ""
    error = f" ± {_figure(number.error)}" if number.error else ""
    return f"<code>{escape(place.file)}:{number.line}</code> ({said}{_figure(number.value)}{error})"


def _figure(value: float) -> str:
    """A number with the digits that one reads."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _spread(measured: Measured) -> str:
    if measured.low == measured.high:
        return ""
    return f"<small>{_figure(measured.low)} to {_figure(measured.high)}</small>"


def _drawn(verdict: Verdict) -> str:
    """What is printed, as a tick, on the interval that was measured."""
    measured = verdict.measured
    if measured is None or not verdict.numbers or not math.isfinite(measured.value):
        return ""
    number = verdict.numbers[0][1]
    ends = [measured.low, measured.high, number.value - number.half, number.value + number.half]
    width = max(ends) - min(ends)
    if width <= 0:
        return ""
    first, scale = min(ends) - 0.1 * width, 150 / (1.2 * width)
    at = [10 + scale * (value - first) for value in (measured.low, measured.high, measured.value, number.value)]
    said = f"printed {_figure(number.value)}, measured {_figure(measured.value)}"
    return (
        f'<svg viewBox="0 0 170 22" width="170" height="22" role="img" aria-label="{said}">'
        f'<line x1="10" x2="160" y1="11" y2="11" stroke="var(--line)"/>'
        f'<line x1="{at[0]:.1f}" x2="{at[1]:.1f}" y1="11" y2="11" stroke="var(--accent)" stroke-width="6" '
        f'stroke-linecap="round"/><circle cx="{at[2]:.1f}" cy="11" r="4.5" fill="var(--accent)"/>'
        f'<line x1="{at[3]:.1f}" x2="{at[3]:.1f}" y1="1" y2="21" stroke="var(--text)" stroke-width="2"/></svg>'
    )
