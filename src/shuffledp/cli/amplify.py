"""`shuffledp amplify`: what shuffling would add to a local randomizer, every bound side by side."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from shuffledp.cli import options
from shuffledp.cli.output import print_json, show, table
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.accounting.amplification import ClonePair
    from shuffledp.accounting.curves import Curve

NOTE = "exploration: privacy belongs to a run"

LocalEpsilon = Annotated[
    float, typer.Option("--local-epsilon", help="What one report alone satisfies; smaller is safer.", metavar="E0")
]
Users = Annotated[int, typer.Option("--users", help="How many people report, each once a round.", metavar="N")]
Delta = Annotated[float, typer.Option("--delta", help="The probability left over, well below 1/N.", metavar="D")]
LocalDelta = Annotated[
    float, typer.Option("--local-delta", help="The probability one report alone leaves over.", metavar="D0")
]
Symbols = Annotated[
    int | None, typer.Option("--symbols", help="Show K-randomized response's own bounds too.", metavar="K")
]
Rounds = Annotated[int, typer.Option("--rounds", help="How often the same people report.", metavar="R")]


@dataclass(frozen=True, slots=True)
class Bound:
    """One row; epsilon is None where the bound does not apply."""

    name: str
    epsilon: float | None
    kind: Literal["upper bound", "lower bound"]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What is asked, and how each kind of curve answers it."""

    local_epsilon: float
    local_delta: float
    users: int
    delta: float
    rounds: int

    def __post_init__(self) -> None:
        from shuffledp.accounting.amplification import check_run

        check_run(self.local_epsilon, self.users)
        if not 0 < self.delta < 1:
            raise ParameterError("delta", self.delta, "must lie strictly between 0 and 1", "1e-6 is a common choice")
        if self.rounds < 1:
            raise ParameterError("rounds", self.rounds, "must be >= 1", "1 is a single run")

    def added_up(self, curve: "Curve", distance: float) -> float | None:
        """Simple composition: each round has an equal share of delta."""
        from shuffledp.accounting.amplification import LocalDeltaCurve
        from shuffledp.accounting.curves import epsilon_at

        epsilon = epsilon_at(LocalDeltaCurve(curve, distance) if distance else curve, self.delta / self.rounds)
        return epsilon * self.rounds if math.isfinite(epsilon) else None

    def composed(self, pair: "ClonePair", distance: float) -> float | None:
        """Exact composition of the rounds' pairs."""
        from shuffledp.accounting.amplification import LocalDeltaCurve
        from shuffledp.accounting.composition import Composition
        from shuffledp.accounting.curves import epsilon_at

        if self.rounds == 1:
            return self.added_up(pair, distance)
        curve = Composition([(pair, self.rounds)])
        if distance == 0:
            epsilon = curve.epsilon(self.delta)
        else:
            epsilon = epsilon_at(LocalDeltaCurve(curve, self.rounds * distance), self.delta)
        return epsilon if math.isfinite(epsilon) else None


def _general(question: _Question) -> Iterator[Bound]:
    """Bounds for every randomizer that is (local_epsilon, local_delta)-private."""
    from shuffledp.accounting import amplification as known

    run = question.local_epsilon, question.users
    both = question.local_epsilon, question.local_delta, question.users
    proved = known.local_delta_distance(*both)
    # Either holds for the clones of 2021, so the smaller does.
    distance_2021 = min(proved, known.local_delta_distance_2021(*both))
    sums = "; rounds add up" if question.rounds > 1 else ""
    composes = "; rounds composed numerically" if question.rounds > 1 else ""
    for name, form, distance in (
        ("2021 closed form", known.closed_form_2021(*run), distance_2021),
        ("2023 closed form", known.closed_form_2023(*run), proved),
    ):
        epsilon = question.added_up(form, distance)
        range_of_it = f"its range ends at delta {form.smallest_delta:.3g}"
        why = (
            f"not applicable: {range_of_it}, a local delta raises that" if epsilon is None else f"formula, cited{sums}"
        )
        yield Bound(name, epsilon, "upper bound", why)
    for name, pair, distance, why in (
        (
            "2021 clones",
            known.clones(*run),
            distance_2021,
            "proved: others are clones with probability e^-local_epsilon",
        ),
        (
            "2023 stronger clones",
            known.stronger_clones(*run),
            proved,
            "proved for one shared randomizer: with 2/(e^local_epsilon + 1)",
        ),
    ):
        epsilon = question.composed(pair, distance)
        too_large = "not applicable: the local delta of all users together exceeds delta"
        yield Bound(name, epsilon, "upper bound", too_large if epsilon is None else why + composes)


def _response(question: _Question, symbols: int) -> Iterator[Bound]:
    """Bounds of K-randomized response itself."""
    from shuffledp.accounting.randomized_response import OthersHoldAThird, shuffled_response, smallest_provable

    blanket = shuffled_response(question.local_epsilon, question.users, symbols)
    pure = question.local_delta == 0
    yield Bound(
        f"{symbols}-randomized response, blanket",
        question.added_up(blanket, 0.0) if pure else None,
        "upper bound",
        ("proved, for this randomizer only" + ("; rounds add up" if question.rounds > 1 else ""))
        if pure
        else "not applicable: randomized response has no local delta",
    )
    if symbols >= 3:
        third = OthersHoldAThird(question.local_epsilon, question.users, symbols)
        yield Bound(
            f"{symbols}-randomized response, others all a third symbol",
            smallest_provable(third, question.delta),
            "lower bound",
            "one data set of this randomizer, one round, two symbols counted",
        )


def _lowest(question: _Question) -> Bound:
    from shuffledp.accounting.randomized_response import OthersAllZero, smallest_provable

    return Bound(
        "shuffled binary randomized response, others all 0",
        smallest_provable(OthersAllZero(question.local_epsilon, question.users), question.delta),
        "lower bound",
        "one data set, one round: no bound for all randomizers is below",
    )


def amplify(
    local_epsilon: LocalEpsilon,
    users: Users,
    delta: Delta,
    local_delta: LocalDelta = 0.0,
    symbols: Symbols = None,
    rounds: Rounds = 1,
    as_json: options.AsJson = False,
) -> None:
    """What shuffling N reports would add to a local randomizer: every known bound on epsilon side by side."""
    question = _Question(local_epsilon=local_epsilon, local_delta=local_delta, users=users, delta=delta, rounds=rounds)
    bounds = [*_general(question), *(() if symbols is None else _response(question, symbols)), _lowest(question)]
    if as_json:
        print_json(
            {
                "schema": 1,
                "note": NOTE,
                "local_epsilon": local_epsilon,
                "local_delta": local_delta,
                "users": users,
                "delta": delta,
                "rounds": rounds,
                "symbols": symbols,
                "bounds": [asdict(bound) for bound in bounds],
            }
        )
        return
    rows = ((b.name, "none" if b.epsilon is None else f"{b.epsilon:.6g}", b.kind, b.why) for b in bounds)
    title, headings = (
        f"{users:,} reports of local epsilon {local_epsilon:g}, shuffled",
        ("bound", f"epsilon at {delta:g}"),
    )
    show(
        table(title, (*headings, "kind", "why"), rows, words=("why",), left=("kind",), folded=("bound",), caption=NOTE)
    )
