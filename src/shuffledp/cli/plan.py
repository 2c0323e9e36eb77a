"""`shuffledp plan`: the noise, the messages and the error, before any data."""

from pathlib import Path
from typing import Annotated

import typer

from shuffledp.cli import options
from shuffledp.cli.output import asked, comparison, facts, next_steps, plan_options, print_json, show, what_a_user_sends

plan_app = typer.Typer(help="Plan a protocol: noise, messages and error, before any data.")

Out = Annotated[Path | None, typer.Option("-o", "--out", help="Write the plan to this file.", metavar="FILE")]


@plan_app.callback()
def plan() -> None:
    """Plan a protocol: noise, messages and error, before any data."""


@plan_app.command("binary-sum")
def plan_binary_sum(
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
    """How many users have the value 1."""
    choice = options.chosen(
        protocol="binary-sum",
        users=users,
        epsilon=epsilon,
        delta=delta,
        method=method,
        honest_fraction=honest_fraction,
        max_messages=max_messages,
        constants=constants,
    )
    plan = choice.plan
    if out is not None:
        import json

        from shuffledp.tables.whole import write_text_whole

        write_text_whole(out, json.dumps(plan.document(), indent=2) + "\n")
    if as_json:
        print_json(plan.document() | {"why": choice.why})
        return
    rows = [
        ("asked", asked(plan)),
        ("protected against", _against(plan.honest_fraction)),
        ("method", choice.why),
        ("each user sends", what_a_user_sends(plan)),
        ("standard error", f"{plan.standard_error:.4g} users"),
        ("noise", ", ".join(f"{name} {value}" for name, value in plan.noise.items())),
        ("one lying client", plan.lying_client),
    ]
    if out is not None:
        rows.append(("written to", str(out)))
    show(facts(f"A private count: {plan.protocol} by {plan.method}", rows), comparison(plan))
    named = str(out) if out is not None else "plan.json"
    keep = [] if out is not None else [("keep the plan", f"plan binary-sum {plan_options(plan)} -o plan.json")]
    next_steps(
        [
            *keep,
            ("run it on made-up data", f"simulate --plan {named} --synthetic"),
            ("why it is private", f"explain --plan {named}"),
        ]
    )


def _against(honest_fraction: float) -> str:
    if honest_fraction == 1:
        return "an analyzer that sees every shuffled message"
    return f"an analyzer that sees every shuffled message and colludes with {1 - honest_fraction:.3g} of the users"
