"""`shuffledp test-uniform`: whether a column follows a claimed distribution, and how many users that takes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, next_steps, print_json, show

if TYPE_CHECKING:
    from shuffledp.protocols.distribution_test import DistributionTest, TestedClaim

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
    typer.Option("--against", help="A file of probabilities, one a category; uniform if left out.", metavar="FILE"),
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
    from shuffledp.cli.domains import parse_domain, read_codes, refuse_data
    from shuffledp.errors import ParameterError
    from shuffledp.protocols.distribution_test import UniformityTest
    from shuffledp.randomness import RandomBits
    from shuffledp.simulation.distribution_tests import simulate_test

    if users_needed == (file is not None):
        raise ParameterError(
            "file", file, "or --users-needed must be given, one of them", "name a file, or ask for the users"
        )
    if file is not None:
        refuse_data(domain, file)
    categories = parse_domain(domain)
    _, privacy = options.target(1, epsilon, delta)
    asked: dict[str, Any] = {
        "privacy": privacy,
        "categories": categories,
        "distance": distance,
        "against": None if against is None else _probabilities(against),
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
    verdict = simulate_test(plan, codes, bits=bits)
    if as_json:
        print_json({**plan.document(), **_document(verdict), "users_needed": needed})
        return
    _tell(plan, verdict, needed, miss)
    same = f"test-uniform --domain {domain} --distance {distance} --epsilon {epsilon} --delta {delta}"
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


def _probabilities(file: Path) -> list[float]:
    """A column of numbers, with or without a name above it."""
    from shuffledp.errors import DataError, ParameterError

    try:
        lines = file.read_text(encoding="utf-8").split()
    except (FileNotFoundError, IsADirectoryError):
        raise ParameterError("against", file, "must be a file that exists", "write a probability a line") from None
    except UnicodeDecodeError:
        raise DataError("against", file, "must be a text file", "write a probability a line") from None
    numbers: list[float] = []
    for place, line in enumerate(lines):
        try:
            numbers.append(float(line.rstrip(",")))
        except ValueError:
            if place > 0:
                problem = "must be a probability"
                raise DataError("against", f"{line} in line {place + 1}", problem, "one a line, no words") from None
    return numbers
