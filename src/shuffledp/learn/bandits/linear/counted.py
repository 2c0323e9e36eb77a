"""LinUCB on shuffled batches: the running sum of joint vectors is that of a plan of running sums, whichever it is."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.running import RunningPlan
from shuffledp.continual.visits import Visits
from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.confidence import OFFSETS, ReleaseNoise
from shuffledp.learn.bandits.linear.guarantee import LinearGuarantee
from shuffledp.learn.bandits.linear.paper import paper_batch_deviation
from shuffledp.learn.bandits.linear.policy import Floats, LinearPolicy, LinearState
from shuffledp.learn.bandits.linear.setting import LinearSetting, check_visits
from shuffledp.learn.spec import check_declared, check_privacy, declared
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import Vectors
from shuffledp.protocols.learner import BatchMechanism, Cohort, OpenBatch, Round, Seating
from shuffledp.protocols.sums.noise import SkellamNoise
from shuffledp.randomness import RandomBits

# Rounding may add this part to the norm of a noise matrix; noise of a larger deviation, in steps, is slow to draw.
_ROUNDING_COST, _WIDEST_NOISE, _COARSEST = 0.02, 15_000, 16


@dataclass(frozen=True, kw_only=True)
class CountedPolicy(LinearPolicy):
    """A user's joint vector goes to at most `plan.shufflers_used` shuffled batches, by a plan of running sums.

    The adversary sees the permuted messages of every batch; models are computed from them.

    Attributes:
        privacy: what holds for all of a user's visits together.
        plan: the running sums of joint vectors.
        visits: how often one user may come.
    """

    is_counted: ClassVar[bool] = True
    kind: ClassVar[str]
    """How its schedule was planned, in documents."""

    privacy: Privacy = declared(check_privacy)
    plan: RunningPlan
    visits: int = declared(check_visits, default=1)

    def __post_init__(self) -> None:
        check_declared(self)
        if not hasattr(self.plan, "is_near_gaussian"):
            raise ParameterError("plan", repr(self.plan), "must be one of running sums", "let the policy plan it")
        joint, domain = self.setting.joint, self.plan.domain
        if (domain.columns, domain.diameter) != (joint.length, joint.apart):
            wanted = f"must be of {joint.length} coordinates, {joint.apart:g} apart"
            raise ParameterError("plan", domain.document(), wanted, "let the policy plan it")
        if self.plan.users < self.setting.users:
            limits = f"must be for at least {self.setting.users} users"
            raise ParameterError("plan", self.plan.users, limits, "let the policy plan it")
        if not self.plan.is_near_gaussian:
            noises = "must have noise skellam of completed batches, or carried"
            raise ParameterError("plan", self.plan.method, noises, "let the policy plan it")
        first_slot = int(self.plan.schedule.users_by(1))
        for name, value, only in (
            ("honest_fraction", self.plan.honest_fraction, 1.0),
            ("slot_users", first_slot, self.plan.slot_users),
        ):
            if value != only:
                raise ParameterError(name, value, f"must be {only} in a bandit's plan", "let the policy plan it")
        guarantee = self.guarantee()
        if not guarantee.holds:
            limits = f"must be at most {self.privacy.delta:g}"
            raise ParameterError("delta", f"{guarantee.delta:.3g}", limits, "let the policy plan its noise")

    @property
    def slot_users(self) -> int:
        return self.plan.slot_users

    @cached_property
    def counter(self) -> Any:
        """The running sums of joint vectors, as a learner."""
        return self.plan.learner()

    @property
    def step(self) -> float:
        return self.plan.domain.step

    def to_steps(self, vectors: Floats, *, bits: RandomBits) -> NDArray[np.int64]:
        return np.asarray(self.plan.domain.to_steps(vectors, bits=bits))

    def prepare(self, vectors: Floats, first: int, *, bits: RandomBits) -> NDArray[np.int64]:
        """What consecutive users' batches get of their joint vectors, rounded once for all; `first` came before."""
        return np.asarray(self.plan.prepare(vectors, bits=bits, positions=np.arange(first, first + len(vectors))))

    @property
    def shufflers(self) -> int:
        return self.plan.shufflers_used

    @cached_property
    def release_noise(self) -> ReleaseNoise:
        """As far from Gaussian as the plan says; and rounding, by Hoeffding."""
        releases = self.releases
        times = np.arange(releases + 1) * self.slot_users
        # Half the offsets' failure is for noise, half for rounding every coordinate of every release.
        half = OFFSETS * self.setting.failure / 2
        deviations, apart = self.plan.gaussian_noise(releases, half)
        log_cost = math.log(2 * self.setting.joint.length * max(1, releases) / half)
        rounding = np.sqrt(times * log_cost / 2) + times * 2.0**-32
        return ReleaseNoise(self.step * deviations, self.step * (apart + rounding))

    def sample_noise(
        self, shape: tuple[int, int], *, bits: RandomBits, generator: Any = None
    ) -> Iterator[NDArray[Any]]:
        """The noise of each release in turn, by the plan's law."""
        return self.plan.sample_slot_noise(self.releases, shape, bits=bits)

    def guarantee(self) -> LinearGuarantee:
        again = "" if self.visits == 1 else f" Of a user's {self.visits} visits no two are in one slot."
        # The distance rests on it, and no device can check it: it knows its own features only.
        promised = "; no two users' features have a negative product" if self.setting.joint.nonnegative else ""
        return LinearGuarantee(
            model="shuffle",
            privacy=self.privacy,
            visits=self.visits,
            terms=self.plan.visit_terms(self.visits, self.privacy.epsilon),
            trusted=f"shufflers permute and do not collude with the analyzer; {self.plan.users_must}{promised}",
            because=(
                f"{self.plan.dominates_because} Two users' vectors are at most {self.setting.joint.apart:.6g} apart; "
                f"models are computed from the batches.{again}"
            ),
        )

    def _decides(self) -> dict[str, Any]:
        return {"plan": self.plan.fingerprint, "visits": self.visits}

    def start(self) -> LinearState:
        return LinearState(self.fingerprint, 0, (0.0,) * self.setting.joint.length, self.counter.start())

    @property
    def seatings(self) -> tuple[Seating, ...]:
        return (Seating(self.plan, self.visits, in_all=self.visits),)

    def round_of(self, state: LinearState, cohort: Cohort) -> Round | None:
        return Round(0, 0, state.users)

    def told_document(self, told: Any) -> Any:
        return self.counter.told_document(told)

    def told_from(self, document: Any, mechanism: BatchMechanism) -> Any:
        return self.counter.told_from(document, mechanism)

    def stand_in(self, mechanism: BatchMechanism) -> Any:
        return self.counter.stand_in(mechanism)

    def _batches(self, state: LinearState) -> tuple[OpenBatch, ...]:
        cohort: Cohort | None = self.counter.ask(_counter(state))
        return () if cohort is None else cohort.batches

    def _check_state(self, state: LinearState) -> None:
        LinearPolicy._check_state(self, state)
        counter = _counter(state)
        if counter.users != state.users:
            raise ParameterError("state", "a counter elsewhere", "must hold its counter", "restore a copy")
        self.counter.ask(counter)
        if state.released != self._released(counter):
            raise ParameterError("state", "other sums", "must hold the sums of its counter", "restore a copy")

    def tell(self, state: LinearState, users: int, closed: Mapping[int, Any]) -> LinearState:
        """The state after so many users, where these levels' batches closed with these noisy sums in steps."""
        time = self._time_after(state, users)
        if not isinstance(closed, Mapping):
            raise ParameterError("closed", type(closed).__name__, "must name levels and their sums", "tell what closed")
        counter = self.counter.tell(_counter(state), int(users), closed)
        return LinearState(state.fingerprint, time, self._released(counter), counter)

    def _released(self, counter: Any) -> tuple[float, ...]:
        """The sum that the counter released last."""
        _, steps = self.counter.closed_sum(counter)
        return tuple((steps * self.step).tolist())

    def _release_of(self, state: LinearState) -> int:
        return int(self.counter.closed_sum(_counter(state))[0])

    @classmethod
    def with_layout(cls, setting: LinearSetting, privacy: Privacy, visits: int, **layout: Any) -> Self:
        """The policy with the least independent noise for its schedule, or the papers', on a grid fine enough.

        Args:
            setting: users, features, rewards and confidence.
            privacy: what every user is promised in all visits together.
            visits: how often one user may come.
            **layout: the schedule, as `CounterPlan` takes it: users, shufflers, shufflers_used and budget.
        """
        kind = Visits(visits, layout["shufflers_used"])
        domain = fitted_grid(setting, lambda domain: kind.noise(domain, privacy).law().standard_deviation)
        noise = kind.noise(domain, privacy)
        if setting.constants == "paper":
            steps = paper_batch_deviation(setting.dimension, privacy, kind.levels) / domain.step
            noise = SkellamNoise(max(noise.law().variance, steps**2))
        confidence = setting.confidence
        plan = CounterPlan(
            privacy=kind.each(privacy), batch_noise=noise, confidence=confidence, domain=domain, **layout
        )
        return cls(setting=setting, privacy=privacy, plan=plan, visits=visits)


def _counter(state: LinearState) -> Any:
    if state.counter is None:
        raise ParameterError("state", "none", "must hold its counter", "restore a copy")
    return state.counter


def fitted_grid(setting: LinearSetting, deviation: Callable[[Vectors], float]) -> Vectors:
    """On the coarsest grid whose rounding adds little to the noise, or the finest that is quick to draw.

    Args:
        setting: whose joint vectors they are.
        deviation: of the noise in a coordinate, in steps, on a grid.
    """
    joint = setting.joint
    coarse = Vectors(joint.length, joint.radius, _COARSEST, joint.apart)
    if setting.constants == "paper":
        # Their noise is wide on any grid.
        return coarse
    likely = coarse.rounding_bound(setting.users, OFFSETS * setting.failure) / coarse.step
    # Noise and rounding, in steps, grow alike with the grid but for the noise's own share of rounding.
    wanted = min(_WIDEST_NOISE, likely / (2 * _ROUNDING_COST))
    grid = max(_COARSEST, math.ceil(_COARSEST * wanted / deviation(coarse)))
    return Vectors(joint.length, joint.radius, min(grid, 1 << 24), joint.apart)
