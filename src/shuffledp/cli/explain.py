"""`shuffledp explain`: why a plan is private, and against whom."""

from typing import TYPE_CHECKING, Annotated

import typer

from shuffledp.cli import options
from shuffledp.cli.counter import load_counter
from shuffledp.cli.output import facts, print_json, show

if TYPE_CHECKING:
    from shuffledp.continual.plan import CounterPlan
    from shuffledp.protocols.plan import Plan

Protocol = Annotated[
    str | None, typer.Argument(help="What to compute, if there is no --plan.", metavar="[PROTOCOL]", show_default=False)
]


def explain(
    protocol: Protocol = None,
    plan_file: options.PlanFile = None,
    users: options.Users = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    method: options.Method = "auto",
    honest_fraction: options.HonestFraction = 1.0,
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
    as_json: options.AsJson = False,
) -> None:
    """Why a plan is private: the pair of distributions, every term of delta, what each collusion reveals."""
    counter = None if plan_file is None else load_counter(plan_file)
    plan: Plan | CounterPlan
    if counter is not None:
        options.refuse_both(
            plan_file,
            protocol=protocol,
            users=users,
            epsilon=epsilon,
            delta=delta,
            max_messages=max_messages,
            method=None if method == "auto" else method,
            honest_fraction=None if honest_fraction == 1 else honest_fraction,
            constants=None if constants is options.ConstantsChoice.exact else constants.value,
            low=low,
            high=high,
            dimension=dimension,
            radius=radius,
            rotation=rotation,
            domain=domain,
            categories=categories,
            other=other,
        )
        plan = counter
    else:
        plan = options.planned(
            plan_file,
            protocol=protocol,
            users=users,
            epsilon=epsilon,
            delta=delta,
            method=method,
            honest_fraction=honest_fraction,
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
    guarantee = plan.guarantee()
    collusions = plan.collusions()
    if as_json:
        print_json(
            {
                "schema": 1,
                "protocol": plan.protocol,
                "method": plan.method,
                "users": plan.users,
                "epsilon": plan.privacy.epsilon,
                "delta": plan.privacy.delta,
                "honest_fraction": plan.honest_fraction,
                "pair": guarantee.pair.describe(),
                "dominates_because": guarantee.dominates_because,
                "theory_page": guarantee.theory_page,
                "delta_terms": [{"name": t.name, "value": t.value, "why": t.why} for t in guarantee.terms],
                "delta_proved": guarantee.delta,
                "collusions": [
                    {
                        "parties": c.parties,
                        "epsilon": c.epsilon,
                        "delta": c.delta,
                        "in_words": c.in_words,
                        "paper_epsilon": c.paper_epsilon,
                    }
                    for c in collusions
                ],
                "lying_client": plan.lying_client,
                "fingerprint": plan.fingerprint,
            }
        )
        return
    from rich import box
    from rich.table import Table

    terms = Table(title="Every term of delta", title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    terms.add_column("term", no_wrap=True)
    terms.add_column("delta", justify="right", no_wrap=True)
    terms.add_column("where it comes from", style="dim")
    for term in guarantee.terms:
        terms.add_row(term.name, f"{term.value:.3g}", term.why)
    terms.add_section()
    terms.add_row("proved", f"{guarantee.delta:.3g}", f"at most the {plan.privacy.delta:g} claimed")

    who = Table(title="What each collusion reveals", title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    who.add_column("who", no_wrap=True)
    who.add_column("epsilon", justify="right", no_wrap=True)
    who.add_column("in words", style="dim")
    for collusion in collusions:
        epsilon_left = "unbounded" if collusion.epsilon is None else f"{collusion.epsilon:.4g}"
        claimed = "" if collusion.paper_epsilon is None else f" (the paper's rule: {collusion.paper_epsilon:.4g})"
        who.add_row(collusion.parties, epsilon_left, collusion.in_words + claimed)

    claim = (
        f"Whatever one of the {plan.users:,} users' values is replaced by, no event becomes more than "
        f"e^{plan.privacy.epsilon:g} times likelier, but for {plan.privacy.delta:g}."
    )
    show(
        facts(
            f"Why {plan.protocol} by {plan.method} is private",
            [
                ("claim", claim),
                ("pair", guarantee.pair.describe()),
                ("why it dominates", guarantee.dominates_because),
                ("proof", guarantee.theory_page),
            ],
        ),
        terms,
        who,
        f"One lying client {plan.lying_client}.",
    )
