"""`shuffledp test-uniform`: whether a column follows a claimed distribution, and how many users that takes."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.output import facts, next_steps, print_json, show
from shuffledp.cli.typed import target_options
from shuffledp.errors import ParameterError

FalseAlarm = Annotated[float, typer.Option(help="The probability to reject a true claim, at most.", metavar="P")]
UsersNeeded = Annotated[bool, typer.Option("--users-needed", help="Only say how many users it takes; no file.")]


@options.takes_plan(
    "distribution-test",
    domain=("domain", "categories", "other", "distance", "against", "public_seed"),
    without=("users", "noise", "plan_file", "max_messages", "constants"),
)
def uniformity(
    asked: Asked,
    file: options.OptionalFile = None,
    column: options.Column = None,
    false_alarm: FalseAlarm = 0.05,
    miss: Annotated[
        float, typer.Option(help="The probability to miss a distant one that users needed are for.", metavar="P")
    ] = 1 / 3,
    users_needed: UsersNeeded = False,
    seed: options.Seed = None,
    as_json: options.AsJson = False,
) -> None:
    """Test whether people's categories are uniform, or follow a given distribution, with errors declared beforehand."""
    from shuffledp.simulation.run import simulate

    if users_needed == (file is not None):
        way_out = "name a file, or ask for the users"
        raise ParameterError("file", file, "or --users-needed must be given, one of them", way_out)
    for name, value in (("column", column), ("seed", seed), *asked.said_of_files):
        if users_needed and value is not None:
            raise ParameterError(name, value, "is for a file's data", "leave it out, or --users-needed")
    asked = replace(asked, typed={**asked.typed, "false_alarm": false_alarm})
    _, privacy = asked.target(users=1)
    family: Any = asked.family
    if file is not None:
        plan, codes, _ = asked.with_file(file, column)
    limits = {"method": asked.method, "honest_fraction": asked.request["honest_fraction"]}
    needed = family.users_needed(privacy=privacy, miss=miss, **limits, **asked.domain)
    if file is None:
        _tell_needed(asked.plan(users=needed, certificate="proved"), miss, as_json=as_json)
        return
    verdict = simulate(plan, codes, bits=options.bits_of(seed))
    presented = plan.present(verdict)
    if as_json:
        print_json({**plan.document(), **presented.figures, "users_needed": needed})
        return
    enough = f"{needed:,} are enough for a miss of {miss:.3g} by inequalities alone"
    rows = [
        *presented.facts,
        ("users", f"{plan.users:,}; {enough}"),
        ("dropped", f"{verdict.dropped:,} malformed messages" if verdict.dropped else None),
        ("a simulation", "seeded bits protect nobody" if verdict.simulated else None),
    ]
    show(facts(f"Is it {verdict.claim}?", rows + _costs(plan)))
    next_steps([("how many users it takes", f"test-uniform {asked.values} {target_options(privacy)} --users-needed")])


def _tell_needed(plan: Any, miss: float, *, as_json: bool) -> None:
    if as_json:
        print_json({**plan.document(), "users_needed": plan.users, "miss_allowed": miss})
        return
    rows = [("users needed", f"{plan.users:,}"), ("for a false alarm of", f"{plan.declared_false_alarm:.3g} at most")]
    rows += [(f"and a miss at distance {plan.distance:g} of", f"{plan.declared_miss:.3g} at most, both proved")]
    show(facts("Users that the test needs", rows + _costs(plan)))


def _costs(plan: Any) -> list[tuple[str, str]]:
    privacy = plan.privacy
    return [
        ("method", f"{plan.method}, over {plan.bins:,} bins"),
        ("privacy", f"epsilon {privacy.epsilon:g}, delta {privacy.delta:g}"),
        ("messages a user", f"{plan.messages_per_user_mean:.3g}, at most {plan.messages_per_user_max}"),
    ]
