"""Options that several commands share, and the plan that they describe."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import domains

if TYPE_CHECKING:
    from shuffledp.privacy import Privacy
    from shuffledp.protocols.family import Choice
    from shuffledp.protocols.plan import Plan


class ConstantsChoice(StrEnum):
    """Whose constants set the noise."""

    exact = "exact"
    paper = "paper"


Users = Annotated[int | None, typer.Option("--users", help="How many people report.", metavar="N")]
Epsilon = Annotated[float | None, typer.Option("--epsilon", help="The privacy target; smaller is safer.", metavar="E")]
Delta = Annotated[float | None, typer.Option("--delta", help="The probability left over, well below 1/N.", metavar="D")]
Method = Annotated[str, typer.Option("--method", help="auto, or one of `shuffledp protocols`.", metavar="M")]
HonestFraction = Annotated[
    float, typer.Option("--honest-fraction", help="Users assumed to follow the protocol.", metavar="G")
]
MaxMessages = Annotated[
    int | None, typer.Option("--max-messages", help="Messages a user may send at most.", metavar="K")
]
Constants = Annotated[ConstantsChoice, typer.Option("--constants", help="Exact noise, or the paper's own.")]
Low = Annotated[float | None, typer.Option("--low", help="bounded-sum: the smallest value.", metavar="A")]
High = Annotated[float | None, typer.Option("--high", help="bounded-sum: the largest value.", metavar="B")]
Dimension = Annotated[int | None, typer.Option("--dimension", help="vector-sum: numbers in a vector.", metavar="D")]
Radius = Annotated[float | None, typer.Option("--radius", help="vector-sum: the longest vector.", metavar="R")]
Rotation = Annotated[
    int | None, typer.Option("--rotation", help="vector-sum: rotate by public signs of this seed.", metavar="S")
]
Domain = domains.Domain
Count = domains.Count
Other = domains.Other
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", help="A plan made with `shuffledp plan ... -o`.", metavar="FILE")
]


def domain_of(protocol: str, **given: Any) -> dict[str, Any]:
    """Those options that say which values there are; one of another protocol is refused, not ignored."""
    from shuffledp.errors import ParameterError
    from shuffledp.protocols.catalogue import PROTOCOLS

    if protocol not in PROTOCOLS:
        raise ParameterError("protocol", protocol, f"must be one of {', '.join(PROTOCOLS)}", "choose one of them")
    asked = {name: value for name, value in given.items() if value is not None}
    needed = [parameter.name for parameter in PROTOCOLS[protocol].domain]
    says_categories = ("domain", "categories", "other") if "categories" in needed else ()
    for name, value in asked.items():
        if name not in (*needed, *says_categories):
            raise ParameterError(name, value, f"is not an option of {protocol}", "leave it out, or choose --protocol")
    if not says_categories:
        return asked
    found = domains.asked_categories(asked.pop("domain", None), asked.pop("categories", None), asked.pop("other", None))
    if found is None:
        way_out = "add --domain a,b,c, or LOW:HIGH, or a file with a name a line, or hash:1000"
        raise ParameterError("domain", None, f"must be given for {protocol}", way_out)
    return asked | {"categories": found}


def target(users: int | None, epsilon: float | None, delta: float | None) -> "tuple[int, Privacy]":
    """How many users, and the privacy; each must be given."""
    from shuffledp.errors import ParameterError
    from shuffledp.privacy import Privacy

    missing = [name for name, value in (("users", users), ("epsilon", epsilon), ("delta", delta)) if value is None]
    if missing or users is None or epsilon is None or delta is None:
        raise ParameterError(missing[0], None, "must be given", f"add --{missing[0]}, or --plan with a plan's file")
    return users, Privacy(epsilon, delta)


def chosen(
    *,
    protocol: str,
    users: int | None,
    epsilon: float | None,
    delta: float | None,
    method: str,
    honest_fraction: float,
    max_messages: int | None,
    constants: ConstantsChoice,
    domain: dict[str, Any],
) -> "Choice[Plan]":
    """The plan that the options ask for, and why this one."""
    from shuffledp.protocols.catalogue import PROTOCOLS

    people, privacy = target(users, epsilon, delta)
    choice: Choice[Plan] = PROTOCOLS[protocol].choose(
        users=people,
        privacy=privacy,
        method=method,
        honest_fraction=honest_fraction,
        max_messages=max_messages,
        constants=constants.value,
        **domain,
    )
    return choice


def refuse_both(plan_file: Path | None, **options: object) -> None:
    """A plan decides everything: options beside it would be silently ignored, so they are refused."""
    from shuffledp.errors import ParameterError

    given = {name: value for name, value in options.items() if value is not None}
    if plan_file is not None and given:
        name, value = next(iter(given.items()))
        raise ParameterError(name, value, "is decided by --plan", "leave it out, or make another plan")


def planned(
    plan_file: Path | None,
    *,
    protocol: str | None,
    users: int | None,
    epsilon: float | None,
    delta: float | None,
    method: str,
    honest_fraction: float,
    max_messages: int | None,
    constants: ConstantsChoice,
    **given: Any,
) -> "Plan":
    """The plan from its file, or the one that the options in place ask for; not both."""
    if plan_file is not None:
        refuse_both(
            plan_file,
            protocol=protocol,
            users=users,
            epsilon=epsilon,
            delta=delta,
            max_messages=max_messages,
            method=None if method == "auto" else method,
            honest_fraction=None if honest_fraction == 1 else honest_fraction,
            constants=None if constants is ConstantsChoice.exact else constants.value,
            **given,
        )
        return load(plan_file)
    asked = protocol or "binary-sum"
    return chosen(
        protocol=asked,
        users=users,
        epsilon=epsilon,
        delta=delta,
        method=method,
        honest_fraction=honest_fraction,
        max_messages=max_messages,
        constants=constants,
        domain=domain_of(asked, **given),
    ).plan


def load(plan_file: Path) -> "Plan":
    """The plan from its file."""
    from shuffledp.protocols.catalogue import load_plan

    return load_plan(plan_file)
