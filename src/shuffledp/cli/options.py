"""Options that several commands share, and the plan that they describe."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shuffledp.protocols.base import Plan
    from shuffledp.protocols.binary_sum import Choice


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
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", help="A plan made with `shuffledp plan ... -o`.", metavar="FILE")
]
Protocol = Annotated[str, typer.Option("--protocol", help="What to compute, if there is no --plan.", metavar="NAME")]


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
) -> "Choice":
    """The plan that the options ask for, and why this one."""
    from shuffledp.errors import ParameterError
    from shuffledp.privacy import Privacy
    from shuffledp.protocols.catalogue import PROTOCOLS

    if protocol not in PROTOCOLS:
        raise ParameterError("protocol", protocol, f"must be one of {', '.join(PROTOCOLS)}", "choose one of them")
    missing = [name for name, value in (("users", users), ("epsilon", epsilon), ("delta", delta)) if value is None]
    if missing or users is None or epsilon is None or delta is None:
        raise ParameterError(missing[0], None, "must be given", f"add --{missing[0]}, or --plan with a plan's file")
    return PROTOCOLS[protocol].choose(
        users=users,
        privacy=Privacy(epsilon, delta),
        method=method,
        honest_fraction=honest_fraction,
        max_messages=max_messages,
        constants=constants.value,
    )


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
    protocol: str,
    users: int | None,
    epsilon: float | None,
    delta: float | None,
    method: str,
    honest_fraction: float,
    max_messages: int | None,
    constants: ConstantsChoice,
) -> "Plan":
    """The plan from its file, or the one that the options in place ask for; not both."""
    if plan_file is not None:
        named = None if method == "auto" else method
        refuse_both(plan_file, users=users, epsilon=epsilon, delta=delta, max_messages=max_messages, method=named)
        return load(plan_file)
    return chosen(
        protocol=protocol,
        users=users,
        epsilon=epsilon,
        delta=delta,
        method=method,
        honest_fraction=honest_fraction,
        max_messages=max_messages,
        constants=constants,
    ).plan


def load(plan_file: Path) -> "Plan":
    """The plan from its file."""
    from shuffledp.protocols.catalogue import load_plan

    return load_plan(plan_file)
