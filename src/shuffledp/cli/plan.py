"""`shuffledp plan`: the noise, the messages and the error, before any data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import domains, options
from shuffledp.cli.output import asked, comparison, facts, next_steps, plan_options, print_json, show, what_a_user_sends
from shuffledp.cli.progress import working

if TYPE_CHECKING:
    from shuffledp.protocols.family import Choice
    from shuffledp.protocols.plan import Plan

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


@plan_app.command("histogram")
def plan_histogram(
    domain: options.Domain = None,
    categories: options.Count = None,
    other: options.Other = None,
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
    """How many users have each category of a public list, --domain or --categories."""
    given = {"domain": domain, "categories": categories, "other": other}
    _plan("histogram", users, epsilon, delta, method, honest_fraction, max_messages, constants, out, as_json, **given)


@plan_app.command("distinct-elements")
def plan_distinct_elements(
    domain: options.Domain = None,
    categories: options.Count = None,
    other: options.Other = None,
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
    """How many of the categories anybody has at all: noise, messages and error."""
    given = {"domain": domain, "categories": categories, "other": other}
    _plan(
        "distinct-elements",
        users,
        epsilon,
        delta,
        method,
        honest_fraction,
        max_messages,
        constants,
        out,
        as_json,
        **given,
    )


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
    if method == "gaussian" and protocol in ("bounded-sum", "vector-sum"):
        _only_privacy(honest_fraction, max_messages, constants)
        _compare(protocol, users, epsilon, delta, domain, out, as_json)
        return
    typed = given.get("domain")
    if out is not None and typed is not None and domains.is_same_file(out, Path(typed)):
        from shuffledp.errors import ParameterError

        raise ParameterError("out", str(out), "must not be the domain's own file", "name another")
    with working("comparing the methods", shown=not as_json and protocol == "histogram"):
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
        side_by_side = _side_by_side(choice, max_messages)
    plan = choice.plan
    if out is not None:
        import json

        from shuffledp.tables.whole import write_text_whole

        write_text_whole(out, json.dumps(plan.document(), indent=2) + "\n")
    if as_json:
        print_json(plan.document() | {"why": choice.why} | side_by_side)
        return
    rows = [
        ("asked", asked(plan)),
        ("protected against", _against(plan.honest_fraction)),
        # A histogram's methods have a table of their own below.
        ("method", choice.why if not side_by_side else choice.why.partition("; ")[0]),
        ("each user sends", what_a_user_sends(plan)),
        *_errors(plan),
        ("noise", ", ".join(f"{name} {value}" for name, value in plan.noise.items() if value is not None)),
        ("one lying client", plan.lying_client),
    ]
    if out is not None:
        rows.append(("written to", str(out)))
    compared = _methods(plan, side_by_side) if side_by_side else comparison(plan)
    show(facts(f"{plan.title}: {plan.protocol} by {plan.method}", rows), compared)
    named = str(out) if out is not None else "plan.json"
    keep = (
        []
        if out is not None
        else [
            ("keep the plan", f"plan {protocol} {plan_options(plan, max_messages, given.get('domain'))} -o plan.json")
        ]
    )
    next_steps(
        [
            *keep,
            ("run it on made-up data", f"simulate --plan {named} --synthetic"),
            ("why it is private", f"explain --plan {named}"),
        ]
    )


def _side_by_side(choice: "Choice[Plan]", max_messages: int | None) -> dict[str, Any]:
    """A histogram's other methods, and the best without a shuffler; nothing for sums, which `protocols` compares."""
    from shuffledp.protocols.histogram.base import HistogramPlan

    plan = choice.plan
    if not isinstance(plan, HistogramPlan):
        return {}
    from shuffledp.cli.histogram_methods import local_method, method_rows

    return {"local_method": local_method(plan), "methods": method_rows(plan, choice.considered, max_messages)}


def _methods(plan: Any, side_by_side: dict[str, Any]) -> Any:
    from shuffledp.cli.histogram_methods import method_table

    return method_table(plan, side_by_side["methods"])


def _errors(plan: "Plan") -> list[tuple[str, str]]:
    """How far off the answer is, in the words of its kind."""
    from shuffledp.protocols.histogram.base import HistogramPlan

    unit = {"binary-sum": " users", "vector-sum": " in every coordinate", "histogram": " users in every category"}
    rows = [("standard error", f"{plan.standard_error:.4g}{unit.get(plan.protocol, '')}")]
    if isinstance(plan, HistogramPlan):
        worst = f"no category is off by more than {plan.error_bound:,.4g} users, with 95% confidence"
        rows = [("worst category", worst), *rows]
    return rows


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
    family = PROTOCOLS[protocol]
    document = family.comparisons["gaussian"](users=people, privacy=privacy, **family.read_domain(domain))
    domain.pop("rotation", None)
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
