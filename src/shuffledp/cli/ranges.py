"""`shuffledp plan ranges` and `shuffledp quantile`: counts of all ranges, the distribution function, quantiles."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.output import asked, facts, next_steps, print_json, show, what_a_user_sends
from shuffledp.cli.progress import users_reporting

if TYPE_CHECKING:
    from rich.table import Table

    from shuffledp.protocols.domains.axes import Axis
    from shuffledp.protocols.ranges.base import RangesPlan

Domain = Annotated[
    str | None,
    typer.Option("--domain", help="All values there can be, LOW:HIGH; two axes: LOW:HIGHxLOW:HIGH.", metavar="A:B"),
]
Steps = Annotated[int | None, typer.Option("--steps", help="Put reals on a public grid of so many cells.", metavar="N")]
Branching = Annotated[int | None, typer.Option("--branching", help="Children of a node; 2 is dyadic.", metavar="R")]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="Write the plan to this file.", metavar="FILE")]
File = Annotated[Path, typer.Argument(help="CSV, Parquet or .npy.", metavar="FILE", show_default=False)]
Column = Annotated[str | None, typer.Option("--column", help="The file's column of values.", metavar="C")]
Quantiles = Annotated[str, typer.Option("--quantiles", help="Ranks between 0 and 1.", metavar="Q,Q,...")]
Clip = Annotated[bool, typer.Option("--clip", help="Bring values outside the domain to its nearest end.")]
Fast = Annotated[bool, typer.Option("--fast", help="Draw the estimate from its own law, without messages.")]
Seed = Annotated[int | None, typer.Option("--seed", help="A repeatable simulation; protects nobody.", metavar="S")]
WithTruth = Annotated[
    bool, typer.Option("--with-truth", help="Show the true quantiles, too: for trying it out. --seed does the same.")
]
Picture = Annotated[
    Path | None, typer.Option("-o", "--out", help="Draw the distribution function, a PNG or SVG.", metavar="FILE")
]


def plan_ranges(
    domain: Domain = None,
    steps: Steps = None,
    branching: Branching = None,
    users: options.Users = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    method: options.Method = "auto",
    honest_fraction: options.HonestFraction = 1.0,
    max_messages: options.MaxMessages = None,
    constants: options.Constants = options.ConstantsChoice.exact,
    out: Out = None,
    as_json: options.AsJson = False,
) -> None:
    """Counts of all ranges of values, and quantiles: a tree over the values; two axes: all rectangles."""
    from shuffledp.protocols.ranges import Ranges

    people, privacy = options.target(users, epsilon, delta)
    choice = Ranges.choose(
        users=people,
        privacy=privacy,
        domain=parsed_domain(domain, steps),
        branching=branching,
        method=method,
        honest_fraction=honest_fraction,
        max_messages=max_messages,
        constants=constants.value,
    )
    plan = choice.plan
    if out is not None:
        import json

        from shuffledp.tables.whole import write_text_whole

        write_text_whole(out, json.dumps(plan.document(), indent=2) + "\n")
    if as_json:
        print_json(plan.document() | {"why": choice.why, "techniques": techniques(plan)})
        return
    errors = plan.errors
    rows = [
        ("asked", asked(plan)),
        ("method", choice.why),
        ("each user sends", f"{what_a_user_sends(plan)}, {plan.messages_per_user_mean:.3g} on average"),
        ("levels", ", ".join(f"{nodes:,}" for nodes in plan.level_sizes) + " nodes"),
        ("decoys in a node", ", ".join(f"{mean:.3g}" for mean in plan.blanket_means)),
        ("worst prefix", f"standard error {errors.prefix:.4g} users, {errors.prefix / people:.3%} in rank"),
        (
            "all prefixes",
            f"within {errors.prefix_bound:,.4g} users, {errors.prefix_bound / people:.3%}, 95% confidence",
        ),
        ("one lying client", plan.lying_client),
    ]
    if out is not None:
        rows.append(("written to", str(out)))
    show(facts(f"{plan.title}: ranges by {plan.method}", rows), _comparison(plan))
    same = f"{plan.domain_options} --epsilon {privacy.epsilon!r} --delta {privacy.delta!r}"
    same += "" if max_messages is None else f" --max-messages {max_messages}"
    steps_next = [] if out is None else [("why it is private", f"explain --plan {out}")]
    if len(plan.axes) == 1:
        steps_next.insert(0, ("quantiles of your own data", f"quantile YOUR.csv --column C {same}"))
    if out is None:
        steps_next.append(("keep the plan", f"plan ranges --users {people} {same} -o plan.json"))
    next_steps(steps_next)


def quantile(
    file: File,
    column: Column = None,
    domain: Domain = None,
    steps: Steps = None,
    quantiles: Quantiles = "0.25,0.5,0.75",
    branching: Branching = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    method: options.Method = "auto",
    honest_fraction: options.HonestFraction = 1.0,
    max_messages: options.MaxMessages = None,
    clip: Clip = False,
    fast: Fast = False,
    with_truth: WithTruth = False,
    seed: Seed = None,
    out: Picture = None,
    as_json: options.AsJson = False,
) -> None:
    """Private quantiles of a file's column, each with an interval that holds the true one."""
    import shlex

    import numpy as np

    from shuffledp.errors import ParameterError
    from shuffledp.pictures.curves import check_picture_path
    from shuffledp.protocols.ranges import Ranges
    from shuffledp.protocols.ranges.tree import Tree
    from shuffledp.randomness import RandomBits
    from shuffledp.simulation.run import simulate
    from shuffledp.tables.columns import read_column

    axes = parsed_domain(domain, steps)
    if len(axes) != 1:
        raise ParameterError("domain", domain, "must be one axis for quantiles", "give one LOW:HIGH")
    ranks = _ranks(quantiles)
    if out is not None:
        check_picture_path(out)
    column_values = read_column(file, column)
    (axis,) = axes
    values, clipped = axis.clip(column_values) if clip else (column_values, 0)
    codes = axis.encode(values)
    people, privacy = options.target(len(codes), epsilon, delta)
    plan = Ranges.plan(
        users=people,
        privacy=privacy,
        domain=axis,
        branching=branching,
        method=method,
        honest_fraction=honest_fraction,
        max_messages=max_messages,
    )
    if not isinstance(plan, Tree):
        raise ParameterError("method", method, "must be tree or dyadic for quantiles", "leave it out")
    started = time.perf_counter()
    bits = RandomBits.secure() if seed is None else RandomBits.seeded(seed)
    with users_reporting(plan.users, shown=not (fast or as_json)) as progress:
        estimate = simulate(plan, codes, bits=bits, fast=fast, progress=progress)
    ranges = plan.ranges(estimate)
    seconds = time.perf_counter() - started
    # The truth is nobody's to see unless somebody asks for it: without it, what is printed and drawn is private.
    shows_truth = with_truth or seed is not None
    true_shares = np.cumsum(plan.true_value(codes)) / people
    found = [(ranges.quantile(rank), _truth(axis, codes, true_shares, rank)) for rank in ranks]
    rows = []
    for each, true in found:
        code = int(axis.encode(np.array([each.value]))[0])
        rows.append(
            {
                "q": each.q,
                "value": each.value,
                "lower": each.lower,
                "upper": each.upper,
                "truth": true if shows_truth else None,
                "rank_error": _rank_error(true_shares, code, each.q) if shows_truth else None,
            }
        )
    if out is not None:
        from shuffledp.pictures.distribution import draw_distribution

        draw_distribution(
            out,
            values=[axis.end(code) for code in range(axis.size)],
            shares=ranges.cdf(),
            bound=ranges.prefix_bound / people,
            confidence=estimate.confidence,
            title=f"{people:,} users, epsilon {privacy.epsilon:g}, delta {privacy.delta:g}",
            truth=true_shares if shows_truth else None,
            quantiles=[(each.q, each.value, each.lower, each.upper) for each, _ in found],
        )
    if as_json:
        print_json(
            {
                "schema": 1,
                "protocol": plan.protocol,
                "method": plan.method,
                "users": people,
                "epsilon": privacy.epsilon,
                "delta": privacy.delta,
                **plan.domain_document,
                "quantiles": rows,
                "rank_bound": ranges.prefix_bound / people,
                "rank_standard_error": plan.errors.prefix / people,
                "confidence": estimate.confidence,
                "messages_per_user_mean": plan.messages_per_user_mean,
                "messages_per_user_max": plan.messages_per_user_max,
                "clipped": clipped if shows_truth else None,
                "fidelity": "law" if fast else "messages",
                "simulated": estimate.simulated,
                "seconds": seconds,
                "fingerprint": plan.fingerprint,
                "out": None if out is None else str(out),
            }
        )
        return
    shown = [
        ("asked", asked(plan)),
        ("each user sends", f"{what_a_user_sends(plan)}, {plan.messages_per_user_mean:,.4g} on average"),
        ("all ranks within", f"{min(1.0, ranges.prefix_bound / people):.3%} with {estimate.confidence:.0%} confidence"),
        ("ran", f"{'its own law, no messages made' if fast else 'message by message'} in {seconds:.2f} s"),
    ]
    if estimate.simulated:
        shown.append(("protects", "nobody: seeded noise can be repeated; leave --seed out"))
    if clipped and shows_truth:
        shown.append(("clipped", f"{clipped:,} values were brought into the domain"))
    if out is not None:
        shown.append(("picture", str(out)))
    show(facts(f"Private quantiles: ranges by {plan.method}", shown), quantile_table(rows))
    same = f"{plan.domain_options} --epsilon {privacy.epsilon!r} --delta {privacy.delta!r}"
    same += "" if max_messages is None else f" --max-messages {max_messages}"
    data = shlex.quote(str(file)) + ("" if column is None else f" --column {shlex.quote(column)}")
    next_steps(
        [
            *([("see the distribution", f"quantile {data} {same} -o cdf.png")] if out is None else []),
            ("keep the plan", f"plan ranges --users {people} {same} -o plan.json"),
        ]
    )


def parsed_domain(text: str | None, steps: int | None) -> "tuple[Axis, ...]":
    """The axes that --domain and --steps describe; one read from the data is refused."""
    from shuffledp.errors import ParameterError
    from shuffledp.protocols.domains.axes import Axis, as_axes

    if text is None or text == "data":
        raise ParameterError(
            "domain",
            text,
            "must be given: the least and the largest value in the data would be an answer without noise",
            "add --domain LOW:HIGH with limits known beforehand",
        )
    axes = []
    for part in text.split("x"):
        ends = part.split(":")
        try:
            low, high = (int(end) if _is_whole(end) else float(end) for end in ends)
        except ValueError:
            raise ParameterError("domain", text, "must be LOW:HIGH", "two axes are LOW:HIGHxLOW:HIGH") from None
        axes.append(Axis(low, high, steps))
    return as_axes(axes)


def _is_whole(text: str) -> bool:
    return text.strip().lstrip("+-").isdigit()


def _ranks(text: str) -> list[float]:
    from shuffledp.errors import ParameterError

    try:
        ranks = [float(word) for word in text.split(",")]
    except ValueError:
        ranks = []
    if not ranks or not all(0 <= rank <= 1 for rank in ranks):
        raise ParameterError("quantiles", text, "must be numbers between 0 and 1", "write them as 0.25,0.5,0.75")
    return ranks


def _truth(axis: "Axis", codes: Any, shares: Any, rank: float) -> float:
    """The first value, or its cell's middle, that a share of at least this rank has at most."""
    import numpy as np

    # Shares are sums of counts: a rank that is met exactly must not be missed by rounding.
    return axis.middle(int(np.argmax(shares * len(codes) >= rank * len(codes) - 1e-6)))


def _rank_error(shares: Any, code: int, rank: float) -> float:
    """How far the rank asked for is from those that this value has: from below it to at most it."""
    below = float(shares[code - 1]) if code else 0.0
    return max(0.0, below - rank, rank - float(shares[code]))


def techniques(plan: "RangesPlan") -> list[dict[str, Any]]:
    """The survey's Table 6 without its constants, at these parameters: growth, not figures."""
    import math

    size, dimensions = plan.size, len(plan.axes)
    epsilon, delta = plan.privacy.epsilon, plan.privacy.delta
    logarithm = math.log2(size)
    rows = [
        ("count-min", 2 * dimensions + 1.5, 3 * dimensions + 3, math.log(1 / delta)),
        ("hadamard", 2 * dimensions + 0.5, 2 * dimensions, math.log(1 / (epsilon * delta))),
    ]
    return [
        {
            "technique": name,
            "error_order": logarithm**error * last / epsilon,
            "messages_order": logarithm**messages * last / epsilon**2,
        }
        for name, error, messages, last in rows
    ]


def _comparison(plan: "RangesPlan") -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(title="Beside others", title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    table.add_column("who", no_wrap=True)
    table.add_column("one value", justify="right")
    table.add_column("worst prefix", justify="right")
    table.add_column("whom one trusts", style="dim")
    reference = plan.reference()
    rows = [
        ("trusted curator's tree", "central", "one party sees all"),
        ("the paper's constants, dyadic", "paper", "as this plan"),
        ("local model's tree", "local", "no shuffler"),
    ]
    table.add_row(
        f"this plan ({plan.method})", f"{plan.standard_error:,.4g}", f"{plan.errors.prefix:,.4g}", "nobody sees any"
    )
    for name, key, trust in rows:
        value, prefix = reference[f"{key}_standard_error"], reference.get(f"{key}_prefix_standard_error")
        table.add_row(name, f"{value:,.4g}", "-" if prefix is None else f"{prefix:,.4g}", trust)
    for row in techniques(plan):
        table.add_row(
            f"{row['technique']} (Table 6)", "", f"order {row['error_order']:.3g}", "as this plan; constants left out"
        )
    return table


def quantile_table(rows: list[dict[str, Any]]) -> "Table":
    """Quantiles with their intervals, and the truth where it is shown."""
    from rich import box
    from rich.table import Table

    table = Table(title="Quantiles", title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    shows_truth = any(row["truth"] is not None for row in rows)
    for heading in ("rank", "value", "interval", *(("truth", "rank error") if shows_truth else ())):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            f"{row['q']:g}",
            f"{row['value']:,.6g}",
            f"{row['lower']:,.6g} .. {row['upper']:,.6g}",
            *((f"{row['truth']:,.6g}", f"{row['rank_error']:.4%}") if shows_truth else ()),
        )
    return table
