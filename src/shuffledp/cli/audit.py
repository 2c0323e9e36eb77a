"""`shuffledp audit`: does a plan keep its word? An empirical lower bound on epsilon."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, print_json, show

REFUTED = 3

Protocol = Annotated[
    str | None, typer.Argument(help="What to compute, if there is no --plan.", metavar="[PROTOCOL]", show_default=False)
]
HonestFraction = Annotated[
    float | None, typer.Option("--honest-fraction", help="Only this part of the users reports.", metavar="G")
]
Trials = Annotated[int | None, typer.Option("--trials", help="Runs on each input.", metavar="T")]
Confidence = Annotated[float, typer.Option("--confidence", help="Of the lower bound.", metavar="C")]
Sabotage = Annotated[
    float, typer.Option("--sabotage", help="Run with this part of the noise variance needed.", metavar="F")
]
Seed = Annotated[int | None, typer.Option("--seed", help="A repeatable audit.", metavar="S")]


def audit(
    protocol: Protocol = None,
    plan_file: options.PlanFile = None,
    users: options.Users = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    method: options.Method = "auto",
    honest_fraction: HonestFraction = None,
    max_messages: options.MaxMessages = None,
    constants: options.Constants = options.ConstantsChoice.exact,
    low: options.Low = None,
    high: options.High = None,
    dimension: options.Dimension = None,
    radius: options.Radius = None,
    rotation: options.Rotation = None,
    domain: options.Domain = None,
    categories: options.Count = None,
    other: options.Other = None,
    trials: Trials = None,
    confidence: Confidence = 0.999,
    sabotage: Sabotage = 1.0,
    seed: Seed = None,
    as_json: options.AsJson = False,
) -> None:
    """Run a plan's randomizer on two neighbouring inputs and try to tell them apart better than it claims."""
    from shuffledp.audit.trials import audit_plan
    from shuffledp.randomness import RandomBits

    plan = options.planned(
        plan_file,
        protocol=protocol,
        users=users,
        epsilon=epsilon,
        delta=delta,
        method=method,
        # Beside a plan's file it says who reports in the audit, not what the plan is.
        honest_fraction=1.0 if honest_fraction is None or plan_file is not None else honest_fraction,
        max_messages=max_messages,
        constants=constants,
        low=low,
        high=high,
        dimension=dimension,
        radius=radius,
        rotation=rotation,
        domain=domain,
        categories=categories,
        other=other,
    )
    bits = RandomBits.secure() if seed is None else RandomBits.seeded(seed)
    with _progress(shown=not as_json) as progress:
        result = audit_plan(
            plan,
            bits=bits,
            trials=trials,
            confidence=confidence,
            sabotage=sabotage,
            honest_fraction=honest_fraction,
            progress=progress,
        )
    if as_json:
        print_json(
            {
                "schema": 1,
                "protocol": plan.protocol,
                "method": plan.method,
                "users": plan.users,
                "verdict": result.verdict,
                "epsilon_claimed": result.epsilon_claimed,
                "epsilon_lower_bound": result.epsilon_lower_bound,
                "epsilon_exact": result.epsilon_exact,
                "delta": result.delta,
                "trials": result.trials,
                "confidence": result.confidence,
                "sabotage": sabotage,
                "honest_fraction": plan.honest_fraction if honest_fraction is None else honest_fraction,
                "event_probabilities": [result.finding.event_probability, result.finding.other_probability],
                "fingerprint": plan.fingerprint,
            }
        )
    else:
        finding = result.finding
        if result.verdict == "refuted":
            meaning = f"the claim is false: epsilon is at least {result.epsilon_lower_bound:.3f}"
        else:
            meaning = "nothing was found that the claim does not allow; that is no proof (`shuffledp explain` has it)"
        show(
            facts(
                f"Audit of {plan.protocol} by {plan.method}: {result.verdict}",
                [
                    ("claimed", f"epsilon {result.epsilon_claimed:g} at delta {result.delta:g}"),
                    ("exact", f"epsilon {result.epsilon_exact:.4g}, by the accountant, for the plan as it is"),
                    ("found", f"epsilon >= {result.epsilon_lower_bound:.4g}, with {result.confidence:.4g} confidence"),
                    (
                        "by the event",
                        f"seen in {finding.event_probability:.3g} of the runs on one input, "
                        f"in {finding.other_probability:.3g} on the other",
                    ),
                    ("runs", f"{result.trials:,} on each input, half to choose the event, half to test it"),
                    ("verdict", meaning),
                ],
            )
        )
    if result.verdict == "refuted":
        raise typer.Exit(REFUTED)


@contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[int, int], None] | None]:
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("running the randomizer"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
