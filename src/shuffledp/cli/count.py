"""`shuffledp count`: a private running count, sum or histogram over a file, with k concurrent shufflers."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.output import SEEDED, facts, heading, next_steps, print_json, question, show
from shuffledp.cli.people import counted_rows
from shuffledp.cli.progress import users_reporting, working
from shuffledp.cli.said import YOUR_FILE

_MOST_NAMED = 10
# As many as in Python.
_SHUFFLERS = 4
_COUNTER = (
    *("values", "dimension", "radius", "categories", "domain", "other", "at_most"),
    *("shufflers", "confidence", "estimator", "silent_slots", "bound"),
)

Every = Annotated[bool, typer.Option("--every", help="A row for every user, not only where a batch closed.")]


@options.takes_plan("counter", domain=_COUNTER, without=("method", "max_messages", "constants"))
def count(
    asked: Asked,
    file: options.OptionalFile = None,
    column: options.Column = None,
    columns: options.Columns = None,
    synthetic: options.Synthetic = False,
    out: options.Out = None,
    picture: options.Picture = None,
    csv: options.Csv = None,
    every: Every = False,
    with_truth: options.WithTruth = False,
    fast: options.Fast = False,
    seed: options.Seed = None,
    as_json: options.AsJson = False,
) -> None:
    """A private running count, sum or histogram over a file: estimates, bounds, a table and a picture.

    Known after every person, which costs noise. One count of all people, as `shuffledp.count` has it in Python, is
    `shuffledp sum`; this one is `shuffledp.running_count` there.
    """
    import numpy as np

    from shuffledp.protocols.presentation import Presentation
    from shuffledp.simulation.running_truth import RunningTruth, estimates_at

    if asked.file is None:
        asked = replace(asked, typed={"shufflers": _SHUFFLERS, **asked.typed})
    kept = KeptFiles.at(out=out, picture=picture, csv=csv, reads=(file, *asked.reads))
    bits = options.bits_of(seed)
    plan: Any
    with working("planning batches", shown=not as_json):
        plan, values, unlike = asked.with_data(file, column, columns, seed, synthetic=synthetic, clip=False)
    started = time.perf_counter()
    with users_reporting(len(values), shown=not (fast or as_json)) as progress:
        estimates = plan.learner().run(values, bits=bits, fast=fast, progress=progress)
    seconds = time.perf_counter() - started
    closing = estimates.times
    times = np.arange(1, estimates.users + 1) if every else closing
    truth = RunningTruth.of(estimates, values) if with_truth or synthetic else None
    last, batches = estimates.at(estimates.users), estimates.batches
    document = {
        **heading(plan, "method"),
        "values": plan.domain.kind,
        "users": estimates.users,
        "shufflers": plan.shufflers,
        "shufflers_used": plan.shufflers_used,
        "estimate": last.value,
        "bound": estimates.bound,
        "confidence": estimates.confidence,
        "batches": batches,
        "uncounted": estimates.uncounted,
        "truth": truth and truth.at_the_end,
        "largest_error": truth and truth.largest_error,
        "rows": int(times.size) if kept.table is not None else 0,
        "fidelity": "law" if fast else "messages",
        "simulated": estimates.simulated,
        "seconds": seconds,
        "fingerprint": plan.fingerprint,
        **kept.named,
    }
    if kept.picture is not None:
        _draw(plan, estimates, closing, truth and truth.at_closing, columns, kept.picture, column)
    rows_of_table = _columns(plan, times, estimates_at(estimates, times)) if kept.table is not None else {}
    replace(kept, picture=None).write(document, Presentation((), columns=rows_of_table))
    if as_json:
        print_json(document)
        return
    total, unit = plan.domain.total, plan.unit
    how = "from its own law" if fast else "every message made, shuffled and read"
    with np.printoptions(suppress=True):
        at_the_end = str(last)
    rows = [
        (
            "what happened",
            "people came one by one; each device sent noisy messages to every shuffler that held an open batch; a full "
            f"batch was mixed and read, and the {total} went on",
        ),
        ("asked", question(plan)),
        ("rows that count", counted_rows(plan, unlike, file=file, shows_truth=truth is not None)),
        *plan.facts(),
        (f"{total} at the end", at_the_end),
        ("not counted", _not_counted(estimates)),
        *_by_name(plan, last),
        ("at every time", f"off by at most {estimates.bound:g}{unit}, all {estimates.users:,} times at once"),
        (f"true {total}", truth and _truth_in_words(truth, unit)),
        ("trusted", plan.trusted),
        ("ran", f"{batches:,} batches closed, {how}, in {seconds:.1f} s"),
        ("protects", SEEDED if estimates.simulated else None),
        *kept.facts,
    ]
    show(facts(plan.title, rows))
    next_steps(
        [
            ("how good is that", asked.said.other("plan counter", plan)),
            ("why it is private", asked.said.other("explain", plan)),
            (
                "your own data",
                asked.said.other("count", plan, "--csv estimates.csv", file=YOUR_FILE) if synthetic else None,
            ),
        ]
    )


def _not_counted(estimates: Any) -> str | None:
    """Who is in no batch that filled, where the plan does not say so itself: fewer may have come than it is for."""
    if estimates.uncounted == estimates.plan.uncounted:
        return None
    return f"{estimates.uncounted:,} users since the last full batch, who count by the rate before them"


def _by_name(plan: Any, last: Any) -> list[tuple[str, str]]:
    """The largest categories at the end, where they have names."""
    import numpy as np

    named = plan.domain.named
    if named is None:
        return []
    largest = np.argsort(-last.value, kind="stable")[:_MOST_NAMED]
    said = ", ".join(f"{named.name(int(code))} {last.value[code]:,.0f}" for code in largest)
    more = f" and {named.size - _MOST_NAMED:,} more" if named.size > _MOST_NAMED else ""
    return [("the largest" if more else "by name", said + more)]


def _columns(plan: Any, times: Any, estimates: Any) -> dict[str, Any]:
    """Columns of the table: a band for one number, one bound for several."""
    import numpy as np

    bound = plan.error_bound
    if plan.domain.coordinates == 1:
        # So many people cannot have less or more than this together.
        domain = plan.domain
        least, most = ((domain.origin + end * domain.step) * times for end in (domain.lowest, domain.highest))
        lower, upper = (np.clip(ends, least, most) for ends in (estimates - bound, estimates + bound))
        return {"time": times, "estimate": estimates, "lower": lower, "upper": upper}
    names = plan.domain.coordinate_names()
    columns = {f"estimate_{name}": estimates[:, place] for place, name in enumerate(names)}
    return {"time": times, **columns, "bound": np.full(times.size, bound)}


def _draw(
    plan: Any, estimates: Any, closing: Any, truth: Any, columns: str | None, picture: Path, column: str | None
) -> None:
    """The estimates when slots closed, and the truth if there is one."""
    from shuffledp.pictures.running import MOST_LINES, draw_running_count
    from shuffledp.simulation.running_truth import estimates_at

    domain = plan.domain
    ends = plan.schedule.users_by(plan.schedule.large_ends)
    title = f"{plan.title}: {plan.shufflers_used} shufflers, epsilon {plan.privacy.epsilon:g}"
    title = plan.cautioned(title)
    if domain.coordinates > MOST_LINES:
        title += f" (the {MOST_LINES} largest of {domain.coordinates:,})"
    names: list[str] = ["estimate"]
    if columns is not None:
        names = [name.strip() for name in columns.split(",")]
    elif domain.coordinates > 1:
        word = "" if domain.named is not None else "coordinate " if domain.is_row else "category "
        names = [f"{word}{name}" for name in domain.coordinate_names()]
    draw_running_count(
        picture,
        times=closing,
        estimates=estimates_at(estimates, closing),
        bound=estimates.bound,
        confidence=estimates.confidence,
        title=title,
        truth=truth,
        boundaries=ends[ends <= estimates.users],
        what="users" if domain.coordinates > 1 and not domain.is_row else domain.total,
        names=names,
        column=column,
    )


def _truth_in_words(truth: Any, unit: str) -> str:
    """The true sum at the end and the largest error before it."""
    import numpy as np

    end = truth.at_the_end
    if np.ndim(end) == 0:
        shown = f"{end:,}" if np.issubdtype(end.dtype, np.integer) else f"{end:,.1f}"
    else:
        shown = np.array2string(end, precision=1, threshold=8, edgeitems=3, floatmode="fixed", suppress_small=True)
    where = " at any time" + unit.replace(" in every", ", in any")
    return f"{shown}  (the largest error{where} was {truth.largest_error:,.1f})"
