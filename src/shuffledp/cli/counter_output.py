"""What a person sees of a running count or sum: facts, references, tables and pictures."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.cli.counter_values import Kind, Words, estimate_columns, words_for

if TYPE_CHECKING:
    from shuffledp.continual.plan import CounterPlan
    from shuffledp.estimates import AnyEstimate


def plan_facts(plan: "CounterPlan") -> list[tuple[str, str]]:
    """The plan in a person's words."""
    privacy, words = plan.privacy, words_for(plan.domain)
    smallest, largest = plan.slot_users, max(sizes[0] for sizes in plan.batch_sizes.values())
    used = "" if plan.shufflers_used == plan.shufflers else f" of {plan.shufflers}: more would only split epsilon"
    return [
        (
            "asked",
            f"a {words.running.removesuffix(' of vectors')} of {plan.users:,} {words.of}, epsilon {privacy.epsilon:g}, "
            f"delta {privacy.delta:g}",
        ),
        ("shufflers used", f"{plan.shufflers_used}{used}"),
        ("batches", f"of {smallest:,} to {largest:,} users; an estimate is the sum of at most {plan.budget}"),
        *(
            [("second opinions", "where two batches close together, the noisier one has the smaller weight")]
            if plan.estimator == "combined"
            else []
        ),
        *([("rounded", f"at random, once, to steps of {plan.domain.step:.4g}")] if plan.domain.rounds else []),
        (
            "noise of a batch",
            f"{plan.batch_noise.law(plan.surplus)}{' steps' if plan.domain.rounds else ''}{words.each}",
        ),
        (
            "each user sends",
            f"{plan.messages_per_user_mean:.3g} messages on average, at most {plan.messages_per_user_max}, "
            f"of up to {plan.bits_per_message} bits",
        ),
        (
            "error",
            f"at most {plan.error_bound:g}{words.each} at all times, with {plan.confidence:.0%} confidence "
            f"({'proved' if plan.certified_noise_bound is None else 'certified by 10,000 runs of the noise'})",
        ),
    ]


def plan_comparison(plan: "CounterPlan", reference: dict[str, float | None]) -> Any:
    """The bound beside others'."""
    from rich import box
    from rich.table import Table

    rows = [
        ("trusted curator, the strongest known", reference["central_error_bound"]),
        (f"this plan, {plan.shufflers_used} shufflers", plan.error_bound),
        ("the best uniform tree, exact accounting", reference["uniform_tree_error_bound"]),
        ("one shuffler", reference["sequential_error_bound"]),
        ("the paper's algorithm and constants", reference["paper_error_bound"]),
        ("local model, no shuffler", reference["local_error_bound"]),
    ]
    table = Table(
        title=f"Largest error over all {plan.users:,} times, {plan.confidence:.0%}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        title_style="bold",
        caption=None if plan.domain.coordinates == 1 else "Others are not computed for several numbers at once.",
        caption_justify="left",
    )
    table.add_column("who")
    table.add_column("bound", justify="right")
    table.add_column("beside this plan", justify="right")
    for name, bound in rows:
        if bound is None and plan.domain.coordinates > 1:
            continue
        ratio = "" if bound is None or bound == plan.error_bound else f"{bound / plan.error_bound:,.3g}x"
        table.add_row(name, "-" if bound is None else f"{bound:,.4g}", ratio)
    return table


def draw_plan(plan: "CounterPlan", picture: Path) -> None:
    """Draw which shuffler holds which users when."""
    import numpy as np

    from shuffledp.pictures.running import draw_schedule

    schedule, slot = plan.schedule, plan.slot_users
    batches = {}
    for level, ends in enumerate(schedule.ends_by_level, 1):
        firsts = schedule.parents[ends]
        if level == 1 and plan.estimator == "combined":
            ends = np.arange(1, schedule.slots)
            firsts = ends - 1
        batches[level] = list(zip((firsts * slot).tolist(), (ends * slot).tolist(), strict=True))
    title = f"{plan.users:,} users, {plan.shufflers_used} shufflers, at most {plan.budget} batches an estimate"
    draw_schedule(picture, batches, title)


def draw_estimates(
    plan: "CounterPlan", estimates: Any, closing: Any, truth: Any, names: list[str], picture: Path
) -> None:
    """Draw the estimates when slots closed, and the truth if there is one."""
    from shuffledp.pictures.running import MOST_LINES, draw_running_count
    from shuffledp.simulation.running_truth import estimates_at

    words, several = words_for(plan.domain), plan.domain.coordinates > 1
    ends = plan.schedule.ends_by_level[-1] * plan.slot_users
    title = f"A private {words.running}: {plan.shufflers_used} shufflers, epsilon {plan.privacy.epsilon:g}"
    if plan.domain.coordinates > MOST_LINES:
        title += f" (the {MOST_LINES} largest of {plan.domain.coordinates:,})"
    draw_running_count(
        picture,
        times=closing,
        estimates=estimates_at(estimates, closing),
        bound=estimates.bound,
        confidence=estimates.confidence,
        title=title,
        truth=truth,
        boundaries=ends[ends <= estimates.users],
        what="users" if plan.domain.kind == Kind.categories else words.total,
        names=names if several else ("estimate",),
    )


def table_columns(plan: "CounterPlan", times: Any, estimates: Any) -> dict[str, Any]:
    """Columns of the table: a band for one number, one bound for several."""
    import numpy as np

    names, bound = estimate_columns(plan.domain), plan.error_bound
    if len(names) == 1:
        return {"time": times, names[0]: estimates, "lower": estimates - bound, "upper": estimates + bound}
    columns = {name: estimates[:, place] for place, name in enumerate(names)}
    return {"time": times, **columns, "bound": np.full(times.size, bound)}


def truth_in_words(truth: Any, words: Words) -> str:
    """The true sum at the end and the largest error before it."""
    import numpy as np

    end = truth.at_the_end
    if np.ndim(end) == 0:
        shown = f"{end:,}" if end.dtype.kind == "i" else f"{end:,.1f}"
    else:
        shown = np.array2string(end, precision=1, threshold=8, edgeitems=3, floatmode="fixed", suppress_small=True)
    where = " at any time" + words.each.replace(" in every", ", in any")
    return f"{shown}  (the largest error{where} was {truth.largest_error:,.1f})"


def in_words(estimate: "AnyEstimate") -> str:
    """The estimate as text, a vector's large numbers with all their digits."""
    import numpy as np

    with np.printoptions(suppress=True):
        return str(estimate)
