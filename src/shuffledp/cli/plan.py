"""`shuffledp plan`: the noise, the messages and the error, before any data."""

from pathlib import Path
from typing import Annotated, Any

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
    _plan("binary-sum", users, epsilon, delta, method, honest_fraction, max_messages, constants, out, as_json)


@plan_app.command("bounded-sum")
def plan_bounded_sum(
    low: options.Low = None,
    high: options.High = None,
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
    """The sum of everybody's number, each between --low and --high."""
    given = {"low": low, "high": high}
    _plan("bounded-sum", users, epsilon, delta, method, honest_fraction, max_messages, constants, out, as_json, **given)


@plan_app.command("vector-sum")
def plan_vector_sum(
    dimension: options.Dimension = None,
    radius: options.Radius = None,
    rotation: options.Rotation = None,
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
    """The sum of everybody's vector, each of length at most --radius."""
    given = {"dimension": dimension, "radius": radius, "rotation": rotation}
    _plan("vector-sum", users, epsilon, delta, method, honest_fraction, max_messages, constants, out, as_json, **given)


def _plan(
    protocol: str,
    users: int | None,
    epsilon: float | None,
    delta: float | None,
    method: str,
    honest_fraction: float,
    max_messages: int | None,
    constants: options.ConstantsChoice,
    out: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    domain = options.domain_of(protocol, **given)
    if method == "gaussian" and protocol != "binary-sum":
        _only_privacy(honest_fraction, max_messages, constants)
        _compare(protocol, users, epsilon, delta, domain, out, as_json)
        return
    choice = options.chosen(
        protocol=protocol,
        users=users,
        epsilon=epsilon,
        delta=delta,
        method=method,
        honest_fraction=honest_fraction,
        max_messages=max_messages,
        constants=constants,
        domain=domain,
    )
    plan = choice.plan
    if out is not None:
        import json

        from shuffledp.tables.whole import write_text_whole

        write_text_whole(out, json.dumps(plan.document(), indent=2) + "\n")
    if as_json:
        print_json(plan.document() | {"why": choice.why})
        return
    unit = {"binary-sum": " users", "vector-sum": " in every coordinate"}.get(protocol, "")
    rows = [
        ("asked", asked(plan)),
        ("protected against", _against(plan.honest_fraction)),
        ("method", choice.why),
        ("each user sends", what_a_user_sends(plan)),
        ("standard error", f"{plan.standard_error:.4g}{unit}"),
        ("noise", ", ".join(f"{name} {value}" for name, value in plan.noise.items() if value is not None)),
        ("one lying client", plan.lying_client),
    ]
    if out is not None:
        rows.append(("written to", str(out)))
    show(facts(f"{plan.title}: {plan.protocol} by {plan.method}", rows), comparison(plan))
    named = str(out) if out is not None else "plan.json"
    keep = (
        []
        if out is not None
        else [("keep the plan", f"plan {protocol} {plan_options(plan, max_messages)} -o plan.json")]
    )
    next_steps(
        [
            *keep,
            ("run it on made-up data", f"simulate --plan {named} --synthetic"),
            ("why it is private", f"explain --plan {named}"),
        ]
    )


def _only_privacy(honest_fraction: float, max_messages: int | None, constants: options.ConstantsChoice) -> None:
    """The method gaussian has one set of numbers: other options would be silently ignored."""
    from shuffledp.errors import ParameterError

    given = {
        "honest_fraction": None if honest_fraction == 1 else honest_fraction,
        "max_messages": max_messages,
        "constants": None if constants is options.ConstantsChoice.exact else constants.value,
    }
    for name, value in given.items():
        if value is not None:
            raise ParameterError(name, value, "is not an option of the comparison with gaussian", "leave it out")


def _compare(
    protocol: str,
    users: int | None,
    epsilon: float | None,
    delta: float | None,
    domain: dict[str, Any],
    out: Path | None,
    as_json: bool,
) -> None:
    """The method gaussian: numbers to compare with, no plan."""
    from shuffledp.errors import ParameterError
    from shuffledp.protocols.catalogue import PROTOCOLS

    if out is not None:
        raise ParameterError("out", out, "needs a method that can be run; gaussian is for comparison", "leave it out")
    people, privacy = options.target(users, epsilon, delta)
    missing = [name for name in PROTOCOLS[protocol].asks_for[:2] if name not in domain]
    if missing:
        raise ParameterError(missing[0], None, "must be given", f"add --{missing[0]}")
    domain.pop("rotation", None)
    document = PROTOCOLS[protocol].comparison(users=people, privacy=privacy, **domain)
    if as_json:
        print_json(document)
        return
    noise = document["noise"]["standard_deviation"]
    show(
        facts(
            f"For comparison only: {protocol} by gaussian (P_Amp)",
            [
                ("what it is", "every user adds Gaussian noise for itself, and shuffling amplifies that"),
                ("a user's noise", f"standard deviation {noise:.4g} in every number, made of floats"),
                ("alone it is", f"epsilon {document['local_epsilon']:.3g}, delta {document['local_delta']:.3g}"),
                ("standard error", f"{document['standard_error']:.4g}"),
            ],
        )
    )
    asked_again = " ".join(f"--{name} {value!r}" for name, value in domain.items())
    target = f"--users {people} --epsilon {privacy.epsilon!r} --delta {privacy.delta!r} {asked_again}"
    next_steps([("what can be run instead", f"plan {protocol} {target}")])


def _against(honest_fraction: float) -> str:
    if honest_fraction == 1:
        return "an analyzer that sees every shuffled message"
    return f"an analyzer that sees every shuffled message and colludes with {1 - honest_fraction:.3g} of the users"
