"""Private gradient rounds for any differentiable loss: everything is proved about privacy, nothing about the error."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.accounting.dropouts import check_honest_fraction, honest_users
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import ParameterError
from shuffledp.learn.optimize.guarantee import OptimizationGuarantee
from shuffledp.learn.optimize.repeated_sums import RepeatedSum, plan_repeated
from shuffledp.learn.optimize.solver import GradientCohort
from shuffledp.learn.optimize.step_rules import AdamSteps, Floats, StepRule
from shuffledp.learn.optimize.told_sums import check_holds, check_told, checked_total
from shuffledp.learn.spec import as_floats, check_kind, check_positive, check_privacy, check_whole
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.ball import LARGEST_DIMENSION
from shuffledp.protocols.learner import Cohort, DeviceStep, Round, Seating
from shuffledp.protocols.request import check_users
from shuffledp.protocols.rounds import RoundsLearner
from shuffledp.protocols.states import RESTORE, SCHEMA, State, fingerprint_of, vector, whole
from shuffledp.protocols.vector_sum.base import VectorSumPlan


@dataclass(frozen=True, slots=True, eq=False)
class RoundsState(State):
    """Rounds done, the point, what the step rule keeps (flattened), and rounds that were lost.

    Attributes:
        round: how many rounds are done.
        point: the model so far.
        kept: what the step rule keeps between rounds, flattened.
        lost: how many rounds were lost.
    """

    round: int = whole("a whole round")
    point: Floats = vector("a finite point")
    kept: Floats = vector("finite memories")
    lost: int = whole("whole rounds lost", default=0)


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientRounds(RoundsLearner[RoundsState]):
    """Rounds in which people send clipped gradients of any loss at the point so far; made by `plan`.

    People are dealt out into disjoint cohorts, the same for the whole run, who are asked in turn: nobody is in more
    rounds than `visits`. The adversary sees every round's noisy sum, and so every point. Which loss it is, what it does
    and whether it is differentiable decides what is learned, not who is protected: see `CustomLoss`.

    Attributes:
        users: how many people there are.
        dimension: numbers of a point.
        privacy: what every person is promised over all rounds; None where nothing is private.
        rounds: how many rounds there are.
        clip: longer gradients are shortened to this length.
        cohorts: into how many cohorts people are dealt out.
        rule: what becomes of a noisy gradient.
        initial: where to begin: it must not depend on people's data.
        honest_fraction: the people of every cohort who are counted on to add their noise.
        sums: the plan of one round's sum; None where nothing is private.
        loss: the loss as JSON, for devices that know it by name.

    >>> rounds = GradientRounds.plan(users=3000, dimension=4, privacy=Privacy(1, 1e-6), rounds=6, visits=3, clip=1.0)
    >>> rounds.cohorts, rounds.visits, rounds.sums.users, rounds.guarantee().holds
    (2, 3, 1500, True)
    >>> state = rounds.start()
    >>> cohort = rounds.ask(state)
    >>> cohort.first, cohort.users, cohort.clip
    (0, 1500, 1.0)
    >>> state = rounds.tell(state, cohort.users, {1: [100.0, 0.0, 0.0, 0.0]})
    >>> rounds.ask(state).first, rounds.estimate(state).round(6).tolist()
    (1500, [-0.1, 0.0, 0.0, 0.0])
    """

    states = RoundsState

    users: int
    dimension: int
    privacy: Privacy | None
    rounds: int
    clip: float
    cohorts: int
    rule: StepRule
    initial: Floats
    honest_fraction: float
    sums: VectorSumPlan | None
    loss: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if (self.sums is None) != (self.privacy is None):
            raise ParameterError("sums", self.sums, "must be there where anything is private", "plan it again")
        if self.sums is not None and (self.sums.users, self.sums.radius) != (self.people, self.clip):
            raise ParameterError("sums", self.sums.users, f"must be of cohorts of {self.people}", "plan it again")
        check_holds(self.guarantee(), "let plan find the noise")

    @classmethod
    def plan(
        cls,
        *,
        users: int,
        dimension: int,
        privacy: Privacy | None,
        rounds: int,
        clip: float,
        visits: int | None = None,
        rule: StepRule | None = None,
        initial: ArrayLike | None = None,
        honest_fraction: float = 1.0,
        method: str = "auto",
        max_messages: int | None = None,
        loss: Mapping[str, Any] | None = None,
    ) -> Self:
        """Rounds with the least noise that satisfies `privacy` for everybody over all of them.

        Args:
            users: how many people there are.
            dimension: numbers of a point.
            privacy: what every person is promised over all rounds; None where nothing is private.
            rounds: how many rounds there are.
            clip: longer gradients are shortened to this length.
            visits: in how many rounds one person may be; None is in all, 1 is every person once.
            rule: what becomes of a noisy gradient; Adam's steps if left out.
            initial: where to begin; at 0 if left out. It must not depend on people's data.
            honest_fraction: the people of every cohort who are counted on to add their noise.
            method: the method of the vector sums; "auto" takes the best.
            max_messages: how many messages a person may send in one round.
            loss: the loss as JSON (`loss.document()`), for devices that know it by name.

        Raises:
            ParameterError: a value outside its range.
            InfeasibleError: no noise satisfies this privacy over so many rounds.
        """
        check_users(users)
        check_honest_fraction(honest_fraction)
        dimension = check_whole("dimension", dimension, 1, LARGEST_DIMENSION, "count the model's parameters")
        rounds = check_whole("rounds", rounds, 1, 1 << 20, "100 suits many")
        most = rounds if visits is None else check_whole("visits", visits, 1, 1 << 20, "1 asks everybody once")
        clip = float(check_positive("clip", clip, "say how long a gradient may be"))
        rule = AdamSteps() if rule is None else check_kind("rule", rule, StepRule, "take AdamSteps or MomentumSteps")
        cohorts = math.ceil(rounds / min(most, rounds))
        if users < cohorts:
            raise ParameterError("users", users, f"must be at least the {cohorts} cohorts", "allow more visits")
        sums = None
        if privacy is not None:
            check_privacy("privacy", privacy)
            limits: dict[str, Any] = {
                "method": method,
                "max_messages": max_messages,
                "honest_fraction": honest_fraction,
            }
            asked = math.ceil(rounds / cohorts)
            sums = plan_repeated(users // cohorts, privacy, dimension, clip, asked, **limits)
        return cls(
            users=users,
            dimension=dimension,
            privacy=privacy,
            rounds=rounds,
            clip=clip,
            cohorts=cohorts,
            rule=rule,
            initial=_beginning(initial, dimension),
            honest_fraction=honest_fraction,
            sums=sums,
            loss=loss,
        )

    @property
    def people(self) -> int:
        """People of a cohort; what is left over after dealing out is never asked."""
        return self.users // self.cohorts

    @property
    def visits(self) -> int:
        """Rounds that one person is in at most: cohorts are asked in turn."""
        return math.ceil(self.rounds / self.cohorts)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what decides the rounds."""
        return fingerprint_of(self._decides())

    def _decides(self) -> dict[str, Any]:
        names = ("users", "dimension", "rounds", "clip", "cohorts", "honest_fraction")
        return {
            "schema": SCHEMA,
            "kind": "gradient-rounds",
            **{name: getattr(self, name) for name in names},
            "epsilon": None if self.privacy is None else self.privacy.epsilon,
            "delta": None if self.privacy is None else self.privacy.delta,
            "rule": self.rule.document(),
            "initial": fingerprint_of(self.initial.tolist()),
            "sums": None if self.sums is None else self.sums.fingerprint,
            "loss": self.loss,
        }

    def document(self) -> dict[str, Any]:
        """The rounds as JSON."""
        return {**self._decides(), "fingerprint": self.fingerprint, "guarantee": self.guarantee().document()}

    def guarantee(self, honest_fraction: float | None = None) -> OptimizationGuarantee:
        """What holds for every person over all rounds.

        Args:
            honest_fraction: the people of every cohort who follow the protocol; as planned if left out.
        """
        fraction = self.honest_fraction if honest_fraction is None else honest_fraction
        terms: tuple[DeltaTerm, ...] = ()
        pair: DominatingPair | None = None
        if self.sums is not None and self.privacy is not None:
            honest, repeated = honest_users(self.sums.users, fraction), RepeatedSum(self.sums, self.visits)
            terms, pair = repeated.delta_terms(self.privacy.epsilon, honest), repeated.pair(honest)
        return OptimizationGuarantee(
            model="none" if self.privacy is None else "shuffle",
            privacy=self.privacy,
            honest_fraction=fraction,
            rounds=self.rounds,
            rounds_per_user=self.visits,
            users_per_round=self.people,
            messages_per_user=0 if self.sums is None else self.visits * self.sums.messages_per_user_max,
            pair=pair,
            terms=terms,
            trusted=_TRUSTED if self.privacy else "everybody",
            because=_BECAUSE.format(self.visits) if self.privacy else "Nobody is protected.",
        )

    @property
    def seatings(self) -> tuple[Seating, ...]:
        return () if self.sums is None else (Seating(self.sums, self.visits, in_all=self.visits),)

    @property
    def most_rounds(self) -> int:
        return self.rounds

    def round_of(self, state: RoundsState, cohort: Cohort) -> Round | None:
        return Round(state.round, 0, 0)

    def start(self) -> RoundsState:
        """At the beginning, nobody asked."""
        return RoundsState(self.fingerprint, 0, self.initial.copy(), np.zeros(self.rule.memories * self.dimension))

    def ask(self, state: RoundsState) -> GradientCohort | None:
        """The next cohort and where it takes gradients; None when all rounds are done.

        The guarantee counts one answer of a cohort to one question: asked again, people would have to send the very
        bytes that they sent before, or not at all.
        """
        self._check_state(state)
        if state.round == self.rounds:
            return None
        asked = {"loss": self.loss, "point": state.point.tolist(), "clip": self.clip, "smoothing": None}
        return GradientCohort(
            users=self.people,
            batches=() if self.sums is None else self.sums.batches,
            step=DeviceStep("gradient", asked),
            stage=0,
            first=state.round % self.cohorts * self.people,
            plan=self.sums,
        )

    def tell(self, state: RoundsState, users: int, closed: Mapping[int, Any]) -> RoundsState:
        """The state after a cohort, whose gradients add up to this.

        Args:
            state: where the rounds stood when they asked.
            users: how many people came: the whole cohort.
            closed: at level 1 the estimate of the cohort's SUM of gradients; None where its batch was void, which loses
                the round: asking the same people again would cost their privacy again.

        Raises:
            ParameterError: no round is left, or fewer people came.
            DataError: the sum is not one finite number for each of the point's.
        """
        self._check_state(state)
        check_told(state.round, self.rounds, users, self.people, closed)
        point, kept, estimate = state.point, state.kept, closed[1]
        if estimate is not None:
            total = checked_total(estimate, self.dimension)
            memories = kept.reshape(self.rule.memories, self.dimension)
            time = state.round + 1 - state.lost
            point, memories = self.rule.step(time, point, memories, total / self.people)
            kept = memories.ravel()
        return RoundsState(state.fingerprint, state.round + 1, point, kept, state.lost + (estimate is None))

    def estimate(self, state: RoundsState, *, simulated: bool = False) -> Floats:
        """The point so far."""
        self._check_state(state)
        return state.point.copy()

    def _check_state(self, state: RoundsState) -> None:
        state.belongs_to(self.fingerprint, "plan")
        sizes = state.point.size, state.kept.size
        if not 0 <= state.round <= self.rounds or sizes != (self.dimension, self.rule.memories * self.dimension):
            raise ParameterError("state", state.round, f"must be of rounds 0..{self.rounds}", RESTORE)


def _beginning(initial: ArrayLike | None, dimension: int) -> Floats:
    if initial is None:
        return np.zeros(dimension)
    point = as_floats("initial", initial)
    if point.shape != (dimension,) or not np.isfinite(point).all():
        wanted = f"must be {dimension} finite numbers"
        raise ParameterError("initial", f"shape {point.shape}", wanted, "leave it out to begin at 0")
    return point


_TRUSTED = "shufflers permute and do not collude with the analyzer; users of a cohort add their noise"
_BECAUSE = (
    "Every person is in one cohort, which is asked in at most {0:,} rounds: their Gaussian pairs compose to one with "
    "sqrt({0:,}) times the shift, whatever points were chosen on the way and whatever the loss is."
)
