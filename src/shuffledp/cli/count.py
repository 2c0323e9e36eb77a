"""`shuffledp count`: a private running count, sum or histogram over a file, with k concurrent shufflers."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.early import EarlyEngine
from shuffledp.cli.engine_options import HERE, EngineAsked, on_engine
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.output import SEEDED, facts, heading, next_steps, print_json, question, show
from shuffledp.cli.people import counted_rows
from shuffledp.cli.progress import working
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
@on_engine
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
    engine: EngineAsked = HERE,
    as_json: options.AsJson = False,
) -> None:
    """A private running count, sum or histogram over a file: estimates, bounds, a table and a picture.

    Known after every person, which costs noise. One count of all people, as `shuffledp.count` has it in Python, is
    `shuffledp sum`; this one is `shuffledp.running_count` there.
    """
    import numpy as np

    from shuffledp.cli.count_runs import SMALL, Wanted, count_at_once, count_in_stretches
    from shuffledp.engines.counting import running_sum

    if asked.file is None:
        asked = replace(asked, typed={"shufflers": _SHUFFLERS, **asked.typed})
    kept = KeptFiles.at(out=out, picture=picture, csv=csv, reads=(file, *asked.reads))
    wanted = Wanted(kept.table, every, kept.picture is not None, with_truth or synthetic)
    bits = options.bits_of(seed)
    plan: Any
    with EarlyEngine(engine, running_sum, SMALL) as early:
        with working("planning batches", shown=not as_json):
            plan, source, unlike = _people(asked, file, column, columns, seed, early, synthetic=synthetic, fast=fast)
        if fast or source.rows <= SMALL:
            ran = count_at_once(plan, source.values, wanted, bits=bits, fast=fast, shown=not as_json)
        else:
            ran = count_in_stretches(plan, source, wanted, engine, seed=seed, shown=not as_json, early=early)
    estimates, truth, seconds = ran.estimates, ran.truth, ran.seconds
    closing = estimates.times
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
        "rows": ran.rows,
        "fidelity": "law" if fast else "messages",
        "simulated": estimates.simulated,
        **({} if ran.engine is None else {"engine": ran.engine}),
        "seconds": seconds,
        "fingerprint": plan.fingerprint,
        **kept.named,
    }
    if kept.picture is not None:
        _draw(plan, estimates, closing, truth and truth.at_closing, columns, kept.picture, column)
    replace(kept, picture=None, table=None).write(document)
    if as_json:
        print_json(document)
        return
    total, unit = plan.domain.total, plan.unit
    how = "every message made, shuffled and read" if ran.engine is None else "every message made and counted in parts"
    how = "from its own law" if fast else how
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


def _people(
    asked: Asked,
    file: Path | None,
    column: str | None,
    columns: str | None,
    seed: int | None,
    early: EarlyEngine,
    **how: bool,
) -> tuple[Any, Any, Any]:
    """The plan, everybody's values, and which of them do not count as they are; few are held, and read whole.

    Args:
        asked: what was asked for.
        file: the file.
        column: the only column that is read.
        columns: several columns, where a person's value has several numbers.
        seed: makes made-up values repeatable.
        early: begins with its processes once it is known that there are many people.
        **how: whether there is no file (`synthetic`), and whether estimates come from their law (`fast`).
    """
    from shuffledp.cli.count_runs import SMALL
    from shuffledp.cli.people import Unlike
    from shuffledp.engines.made_up import MadeUp
    from shuffledp.engines.sources import Held

    if not how["fast"] and not how["synthetic"]:
        found = asked.in_pieces(file, column, columns, clip=False, least=SMALL, early=early)
        if found is not None:
            return *found, Unlike()
    users = asked.loaded.users if asked.loaded is not None else asked.request.get("users") or 0
    # What is said of a file beside made-up data is refused below.
    of_file = (file, column, columns, *asked.whose.values(), *asked.said_of_files)
    if users > SMALL and how["synthetic"] and not how["fast"] and not any(of_file):
        early.begin(users, MadeUp, *asked.family.methods.values())
        plan = asked.plan()
        return plan, MadeUp(plan, _some_seed() if seed is None else seed), Unlike()
    plan, values, unlike = asked.with_data(file, column, columns, seed, synthetic=how["synthetic"], clip=False)
    return plan, Held(values), unlike


def _some_seed() -> int:
    """A seed that nobody chose."""
    from shuffledp.randomness import RandomBits

    return int(RandomBits.secure().words(1)[0])


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
