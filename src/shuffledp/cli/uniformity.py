"""`shuffledp test-uniform`: whether a column follows a claimed distribution, and how many users that takes."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.output import SEEDED, facts, next_steps, print_json, show
from shuffledp.cli.progress import simulated, working
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
    out: options.Out = None,
    with_truth: options.WithTruth = False,
    seed: options.Seed = None,
    as_json: options.AsJson = False,
) -> None:
    """Test whether people's categories are uniform, or follow a given distribution, with errors declared beforehand."""
    if users_needed == (file is not None):
        way_out = "name a file, or ask for the users"
        raise ParameterError("file", file, "or --users-needed must be given, one of them", way_out)
    said = (("column", column), ("seed", seed), ("with_truth", with_truth or None), *asked.said_of_files)
    for name, value in said:
        if users_needed and value is not None:
            raise ParameterError(name, value, "is for a file's data", "leave it out, or --users-needed")
    drawn = "cannot be drawn: the answer is a verdict"
    kept = KeptFiles.at(out=out, reads=(file, *asked.reads), no_picture=drawn, no_table="has no table: it is a verdict")
    asked = replace(asked, typed={**asked.typed, "false_alarm": false_alarm})
    _, privacy = asked.target(users=1)
    family: Any = asked.family
    limits = {"method": asked.method, "honest_fraction": asked.request["honest_fraction"]}
    with working("planning the test", shown=not as_json):
        if file is not None:
            plan, codes, _ = asked.with_file(file, column)
        needed = family.users_needed(privacy=privacy, miss=miss, **limits, **asked.domain)
    if file is None:
        _tell_needed(asked.plan(users=needed, certificate="proved"), miss, kept, as_json=as_json)
        return
    verdict, seconds = simulated(plan, codes, bits=options.bits_of(seed), fast=False, shown=not as_json)
    presented = plan.present(verdict, plan.true_value(codes) if with_truth else None)
    document = {**plan.document(), **presented.figures, "users_needed": needed, **kept.named}
    if with_truth:
        document["truth"] = plan.true_value(codes)
    kept.write(document)
    if as_json:
        print_json(document)
        return
    enough = f"{needed:,} are enough for a miss of {miss:.3g} by inequalities alone"
    rows = [
        *presented.facts,
        ("users", f"{plan.users:,}; {enough}"),
        ("dropped", f"{verdict.dropped:,} malformed messages" if verdict.dropped else None),
        *_costs(plan),
        ("trusted", plan.trusted),
        ("ran", f"every message made, shuffled and read in {seconds:.2f} s"),
        ("protects", SEEDED if verdict.simulated else None),
        *kept.facts,
    ]
    show(facts(f"Is it {verdict.claim}?", rows))
    without = ("file", "column", "seed", "out", "with_truth")
    next_steps(
        [
            ("how many users it takes", asked.said.again("--users-needed", without=without)),
            ("why it is private", asked.said.other("explain", plan)),
        ]
    )


def _tell_needed(plan: Any, miss: float, kept: KeptFiles, *, as_json: bool) -> None:
    document = {**plan.document(), "users_needed": plan.users, "miss_allowed": miss, **kept.named}
    kept.write(document)
    if as_json:
        print_json(document)
        return
    rows = [("users needed", f"{plan.users:,}"), ("for a false alarm of", f"{plan.declared_false_alarm:.3g} at most")]
    rows += [(f"and a miss at distance {plan.distance:g} of", f"{plan.declared_miss:.3g} at most, both proved")]
    show(facts("Users that the test needs", [*rows, *_costs(plan), *kept.facts]))


def _costs(plan: Any) -> list[tuple[str, str]]:
    privacy = plan.privacy
    return [
        ("method", f"{plan.method}, over {plan.bins:,} bins"),
        ("privacy", f"epsilon {privacy.epsilon:g}, delta {privacy.delta:g}"),
        ("messages a user", f"{plan.messages_per_user_mean:.3g}, at most {plan.messages_per_user_max}"),
    ]
