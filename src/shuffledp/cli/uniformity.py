"""`shuffledp test-uniform`: whether a column follows a claimed distribution, and how many users that takes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, next_steps, print_json, show

if TYPE_CHECKING:
    from shuffledp.protocols.distribution_test import DistributionTest, TestedClaim
    from shuffledp.protocols.domains.domain import Categories

File = Annotated[Path | None, typer.Argument(help="CSV, Parquet or .npy.", metavar="[FILE]", show_default=False)]
Column = Annotated[str | None, typer.Option("--column", help="The file's column of categories.", metavar="C")]
Domain = Annotated[
    str, typer.Option("--domain", help="All categories: a,b,c or LOW:HIGH or a file of names.", metavar="D")
]
Distance = Annotated[
    float, typer.Option("--distance", help="The total variation distance that must be seen.", metavar="A")
]
Against = Annotated[
    Path | None,
    typer.Option(
        "--against", help="A file of probabilities, one a category or NAME,P; uniform if left out.", metavar="FILE"
    ),
]
Method = Annotated[str, typer.Option("--method", help="auto, decoys, compressed or rows.", metavar="M")]
FalseAlarm = Annotated[
    float, typer.Option("--false-alarm", help="The probability to reject a true claim, at most.", metavar="P")
]
Miss = Annotated[
    float, typer.Option("--miss", help="The probability to miss a distant one that users needed are for.", metavar="P")
]
Seed = Annotated[int | None, typer.Option("--seed", help="A repeatable simulation; protects nobody.", metavar="S")]
PublicSeed = Annotated[
    int, typer.Option("--public-seed", help="compressed: the groups' public coins, drawn before the data.", metavar="S")
]
UsersNeeded = Annotated[bool, typer.Option("--users-needed", help="Only say how many users it takes; no file.")]


def uniformity(
    domain: Domain,
    distance: Distance,
    file: File = None,
    column: Column = None,
    other: options.Other = None,
    against: Against = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    method: Method = "auto",
    false_alarm: FalseAlarm = 0.05,
    miss: Miss = 1 / 3,
    honest_fraction: options.HonestFraction = 1.0,
    users_needed: UsersNeeded = False,
    seed: Seed = None,
    public_seed: PublicSeed = 1,
    as_json: options.AsJson = False,
) -> None:
    """Test whether people's categories are uniform, or follow a given distribution, with errors declared beforehand."""
    import shlex

    from shuffledp.cli.domains import domain_options, parse_domain, read_codes, refuse_data
    from shuffledp.errors import ParameterError
    from shuffledp.protocols.distribution_test import UniformityTest
    from shuffledp.randomness import RandomBits
    from shuffledp.simulation.run import simulate

    if users_needed == (file is not None):
        raise ParameterError(
            "file", file, "or --users-needed must be given, one of them", "name a file, or ask for the users"
        )
    for name, value in (("column", column), ("seed", seed)):
        if users_needed and value is not None:
            raise ParameterError(name, value, "is for a file's data", "leave it out, or --users-needed")
    if file is not None:
        refuse_data(domain, file)
    categories = parse_domain(domain, other)
    _, privacy = options.target(1, epsilon, delta)
    asked: dict[str, Any] = {
        "privacy": privacy,
        "categories": categories,
        "distance": distance,
        "against": None if against is None else _probabilities(against, categories),
        "method": method,
        "false_alarm": false_alarm,
        "honest_fraction": honest_fraction,
    }
    needed = UniformityTest.users_needed(miss=miss, **asked)
    if file is None:
        plan = UniformityTest.plan(users=needed, certificate="proved", public_seed=public_seed, **asked)
        _tell_needed(plan, miss, as_json=as_json)
        return
    codes = read_codes(file, column, categories)
    plan = UniformityTest.plan(users=int(codes.size), public_seed=public_seed, **asked)
    bits = RandomBits.secure() if seed is None else RandomBits.seeded(seed)
    verdict = simulate(plan, codes, bits=bits)
    if as_json:
        print_json({**plan.document(), **_document(verdict), "users_needed": needed})
        return
    _tell(plan, verdict, needed, miss)
    same = (
        f"test-uniform {domain_options(categories, domain)} --distance {distance} --epsilon {epsilon} --delta {delta}"
    )
    same += "" if against is None else f" --against {shlex.quote(str(against))}"
    next_steps([("how many users it takes", f"{same} --users-needed")])


def _document(verdict: "TestedClaim") -> dict[str, Any]:
    return {
        "claim": verdict.claim,
        "rejected": verdict.rejected,
        "verdict": verdict.words,
        "p_value": verdict.p_value,
        "statistic": verdict.statistic,
        "score": verdict.score,
        "dropped": verdict.dropped,
        "simulated": verdict.simulated,
    }


def _tell_needed(plan: "DistributionTest", miss: float, *, as_json: bool) -> None:
    if as_json:
        print_json({**plan.document(), "users_needed": plan.users, "miss_allowed": miss})
        return
    rows = [("users needed", f"{plan.users:,}"), ("for a false alarm of", f"{plan.declared_false_alarm:.3g} at most")]
    rows += [(f"and a miss at distance {plan.distance:g} of", f"{plan.declared_miss:.3g} at most, both proved")]
    show(facts("Users that the test needs", rows + _costs(plan)))


def _tell(plan: "DistributionTest", verdict: "TestedClaim", needed: int, miss: float) -> None:
    rows = [
        ("verdict", verdict.words),
        ("p-value", f"{verdict.p_value:.3g}"),
        ("score", f"{verdict.score:.3f}, rejected above {verdict.threshold:.3f}"),
        ("chi-square distance", f"about {max(0.0, verdict.statistic):.3g}"),
        ("declared false alarm", f"{verdict.false_alarm:.3g} at most"),
        ("declared miss", f"{verdict.miss:.3g} at most, at total variation {plan.distance:g} or more"),
        ("users", f"{plan.users:,}; {needed:,} are enough for a miss of {miss:.3g} by inequalities alone"),
    ]
    if verdict.dropped:
        rows.append(("dropped", f"{verdict.dropped:,} malformed messages"))
    if verdict.simulated:
        rows.append(("a simulation", "seeded bits protect nobody"))
    show(facts(f"Is it {plan.claim}?", rows + _costs(plan)))


def _costs(plan: "DistributionTest") -> list[tuple[str, str]]:
    privacy = plan.privacy
    return [
        ("method", f"{plan.method}, over {plan.bins:,} bins"),
        ("privacy", f"epsilon {privacy.epsilon:g}, delta {privacy.delta:g}"),
        ("messages a user", f"{plan.messages_per_user_mean:.3g}, at most {plan.messages_per_user_max}"),
    ]


def _probabilities(file: Path, categories: "Categories") -> list[float]:
    """A column of numbers in the domain's order, or of names and numbers in any; with or without names above."""
    import csv

    from shuffledp.errors import DataError, ParameterError

    way_out = "write a probability a line, or a name, a comma and its probability"
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError:
        raise ParameterError("against", file, "must be a file that exists and can be read", way_out) from None
    except UnicodeDecodeError:
        raise DataError("against", file, "must be a text file", way_out) from None
    plain: list[float] = []
    named: dict[str, float] = {}
    for place, row in enumerate(csv.reader(text.splitlines()), 1):
        cells = [cell.strip() for cell in row if cell.strip()]
        if not cells:
            continue
        try:
            number = float(cells[-1])
        except ValueError:
            if plain or named or place > 1:
                raise DataError("against", f"{cells[-1]} in line {place}", "must be a probability", way_out) from None
            continue
        if len(cells) > 2 or (plain and named) or (len(cells) == 1 and named) or (len(cells) == 2 and plain):
            problem = "must have a probability, or a name and one, in every line"
            raise DataError("against", f"{len(cells)} cells in line {place}", problem, way_out)
        if len(cells) == 1:
            plain.append(number)
        elif cells[0] in named:
            raise DataError("against", f"{cells[0]} twice", "must name every category once", "remove one of them")
        else:
            named[cells[0]] = number
    if not named:
        return plain
    names = categories.names()
    if strange := [name for name in named if name not in set(names)]:
        raise DataError("against", strange[0], "must name categories of the domain", "add it to --domain, or remove it")
    return [named.get(name, 0.0) for name in names]
