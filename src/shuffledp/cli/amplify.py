"""`shuffledp papers amplify`: what shuffling would add to a local randomizer, every bound side by side."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

import typer

from shuffledp.cli import options
from shuffledp.cli.output import print_json, show, table
from shuffledp.cli.progress import working
from shuffledp.errors import ParameterError

NOTE = "exploration: privacy belongs to a run"

LocalEpsilon = Annotated[float, typer.Option(help="What one report alone satisfies; smaller is safer.", metavar="E0")]
LocalDelta = Annotated[float, typer.Option(help="The probability one report alone leaves over.", metavar="D0")]
Symbols = Annotated[int | None, typer.Option(help="Show K-randomized response's own bounds too.", metavar="K")]


@dataclass(frozen=True, slots=True)
class Bound:
    """One row; epsilon is None where the bound does not apply."""

    name: str
    epsilon: float | None
    kind: Literal["upper bound", "lower bound"]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What is asked, and how a curve answers it."""

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

    def epsilon(self, curve: Any, distance: float = 0.0, *, exactly: bool = False) -> float | None:
        """The epsilon of all rounds together; None where there is none.

        Args:
            curve: of one round; a pair, if rounds are composed exactly.
            distance: what the local delta adds in one round.
            exactly: whether rounds are composed; else they add up, each with an equal share of delta.
        """
        from shuffledp.accounting.amplification import LocalDeltaCurve
        from shuffledp.accounting.composition import Composition
        from shuffledp.accounting.curves import epsilon_at

        times = self.rounds
        if exactly and self.rounds > 1:
            curve, distance, times = Composition([(curve, self.rounds)]), self.rounds * distance, 1
            if distance == 0:
                return float(found) if math.isfinite(found := curve.epsilon(self.delta)) else None
        epsilon = epsilon_at(LocalDeltaCurve(curve, distance) if distance else curve, self.delta / times)
        return epsilon * times if math.isfinite(epsilon) else None

    def proved(self, why: str, *, exactly: bool = False) -> str:
        """Why a bound holds, and what becomes of rounds."""
        several = "; rounds composed numerically" if exactly else "; rounds add up"
        return why + (several if self.rounds > 1 else "")


def _general(question: _Question) -> Iterator[Bound]:
    """Bounds for every randomizer that is (local_epsilon, local_delta)-private."""
    from shuffledp.accounting import amplification as known

    run = question.local_epsilon, question.users
    both = question.local_epsilon, question.local_delta, question.users
    proved = known.local_delta_distance(*both)
    # Either holds for the clones of 2021, so the smaller does.
    distance_2021 = min(proved, known.local_delta_distance_2021(*both))
    cited = known.closed_form_2021(*run), known.closed_form_2023(*run)
    ends = [f"its range ends at delta {form.smallest_delta:.3g}, a local delta raises that" for form in cited]
    too_large = "the local delta of all users together exceeds delta"
    clones = "proved: others are clones with probability e^-local_epsilon"
    shared = "proved for one shared randomizer: with 2/(e^local_epsilon + 1)"
    for name, curve, distance, exactly, why, refusal in (
        ("2021 closed form", cited[0], distance_2021, False, "formula, cited", ends[0]),
        ("2023 closed form", cited[1], proved, False, "formula, cited", ends[1]),
        ("2021 clones", known.clones(*run), distance_2021, True, clones, too_large),
        ("2023 stronger clones", known.stronger_clones(*run), proved, True, shared, too_large),
    ):
        epsilon = question.epsilon(curve, distance, exactly=exactly)
        holds = question.proved(why, exactly=exactly)
        yield Bound(name, epsilon, "upper bound", f"not applicable: {refusal}" if epsilon is None else holds)


def _of_responses(question: _Question, symbols: int | None) -> Iterator[Bound]:
    """Bounds of K-randomized response itself, if it is asked for, and what no bound for all randomizers is below."""
    from shuffledp.accounting import randomized_response as known

    run = question.local_epsilon, question.users
    if symbols is not None:
        blanket, pure = known.shuffled_response(*run, symbols), question.local_delta == 0
        why = question.proved("proved, for this randomizer only")
        refused = "not applicable: randomized response has no local delta"
        epsilon = question.epsilon(blanket) if pure else None
        yield Bound(f"{symbols}-randomized response, blanket", epsilon, "upper bound", why if pure else refused)
    if symbols is not None and symbols >= 3:
        name = f"{symbols}-randomized response, others all a third symbol"
        lowest = known.smallest_provable(known.OthersHoldAThird(*run, symbols), question.delta)
        yield Bound(name, lowest, "lower bound", "one data set of this randomizer, one round, two symbols counted")
    lowest = known.smallest_provable(known.OthersAllZero(*run), question.delta)
    why = "one data set, one round: no bound for all randomizers is below"
    yield Bound("shuffled binary randomized response, others all 0", lowest, "lower bound", why)


def amplify(
    local_epsilon: LocalEpsilon,
    users: Annotated[int, typer.Option(help="How many people report, each once a round.", metavar="N")],
    delta: Annotated[float, typer.Option(help="The probability left over, well below 1/N.", metavar="D")],
    local_delta: LocalDelta = 0.0,
    symbols: Symbols = None,
    rounds: Annotated[int, typer.Option(help="How often the same people report.", metavar="R")] = 1,
    as_json: options.AsJson = False,
) -> None:
    """What shuffling N reports would add to a local randomizer: every known bound on epsilon side by side."""
    question = _Question(local_epsilon=local_epsilon, local_delta=local_delta, users=users, delta=delta, rounds=rounds)
    with working("composing every bound", shown=not as_json):
        bounds = [*_general(question), *_of_responses(question, symbols)]
    if as_json:
        listed = [asdict(bound) for bound in bounds]
        print_json({"schema": 1, "note": NOTE, **asdict(question), "symbols": symbols, "bounds": listed})
        return
    rows = ((b.name, "none" if b.epsilon is None else f"{b.epsilon:.6g}", b.kind, b.why) for b in bounds)
    title = f"{users:,} reports of local epsilon {local_epsilon:g}, shuffled"
    headings = ("bound", f"epsilon at {delta:g}", "kind", "why")
    show(table(title, headings, rows, words=("why",), left=("kind",), folded=("bound",), caption=NOTE))
