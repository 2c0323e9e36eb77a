"""LinUCB on shuffled batches: the running sum of joint vectors is a private counter's."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.continual.counter import Counter, CounterState
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.confidence import OFFSETS, ReleaseNoise
from shuffledp.learn.bandits.linear.guarantee import LinearGuarantee
from shuffledp.learn.bandits.linear.paper import paper_batch_deviation
from shuffledp.learn.bandits.linear.policy import Floats, LinearPolicy, LinearState
from shuffledp.learn.bandits.linear.setting import LinearSetting, check_visits
from shuffledp.learn.bandits.linear.visits import Visits, gaussian_offset
from shuffledp.learn.spec import check_declared, check_privacy, declared
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import Vectors
from shuffledp.protocols.learner import OpenBatch
from shuffledp.protocols.sums.noise import SkellamNoise
from shuffledp.randomness import RandomBits

# Rounding may add this part to the norm of a noise matrix; noise of a larger deviation, in steps, is slow to draw.
_ROUNDING_COST, _WIDEST_NOISE, _COARSEST = 0.02, 15_000, 16
# Noises at a time.
_DRAWN_TOGETHER = 1 << 17


@dataclass(frozen=True, kw_only=True)
class CountedPolicy(LinearPolicy):
    """A user's joint vector goes to at most `plan.shufflers_used` shuffled batches, each with the whole noise.

    The adversary sees the permuted messages of every batch; models are computed from them.
    """

    is_counted: ClassVar[bool] = True

    privacy: Privacy = declared(check_privacy)
    plan: CounterPlan
    visits: int = declared(check_visits, default=1)

    def __post_init__(self) -> None:
        check_declared(self)
        if not hasattr(self.plan, "batch_noise"):
            raise ParameterError("plan", repr(self.plan), "must be a CounterPlan", "let the policy plan it")
        joint, domain = self.setting.joint, self.plan.domain
        if (domain.columns, domain.diameter) != (joint.length, joint.apart):
            wanted = f"must be of {joint.length} coordinates, {joint.apart:g} apart"
            raise ParameterError("plan", domain.document(), wanted, "let the policy plan it")
        if self.plan.users < self.setting.users:
            limits = f"must be for at least {self.setting.users} users"
            raise ParameterError("plan", self.plan.users, limits, "let the policy plan it")
        for name, value, only in (
            ("noise", self.plan.batch_noise.family, SkellamNoise.family),
            ("estimator", self.plan.estimator, "completed"),
            ("honest_fraction", self.plan.honest_fraction, 1.0),
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
    def counter(self) -> Counter:
        """Of joint vectors."""
        return Counter(self.plan)

    @property
    def step(self) -> float:
        return self.plan.domain.step

    def to_steps(self, vectors: Floats, *, bits: RandomBits) -> NDArray[np.int64]:
        return np.asarray(self.plan.domain.to_steps(vectors, bits=bits))

    @property
    def shufflers(self) -> int:
        return self.plan.shufflers_used

    @cached_property
    def release_noise(self) -> ReleaseNoise:
        """Sums of Skellam noises, each as far from Gaussian as `gaussian_offset` says; and rounding, by Hoeffding."""
        plan, noise, releases = self.plan, self.plan.batch_noise, self.releases
        depths = plan.schedule.depths[: releases + 1]
        times = np.arange(releases + 1) * self.slot_users
        # Every release has one new batch, so there are as many draws of noise a coordinate; half the offsets' failure
        # is for them, half for rounding.
        draws = self.setting.joint.length * max(1, releases)
        each = OFFSETS * self.setting.failure / 2 / draws
        log_cost = math.log(2 / each)
        rounding = np.sqrt(times * log_cost / 2) + times * 2.0**-32
        offsets = self.step * (depths * gaussian_offset(noise, each) + rounding)
        return ReleaseNoise(self.step * noise.law().standard_deviation * np.sqrt(depths), offsets)

    def sample_noise(
        self, shape: tuple[int, int], *, bits: RandomBits, generator: Any = None
    ) -> Iterator[NDArray[np.int64]]:
        """The noise of each release in turn: that of the batches that make it, each drawn once."""
        parents = self.plan.schedule.parents[: self.releases + 1].tolist()
        last_child = {parent: release for release, parent in enumerate(parents)}
        prefixes = {0: np.zeros(shape, dtype=np.int64)}
        together = max(1, _DRAWN_TOGETHER // (shape[0] * shape[1]))
        for first in range(1, self.releases + 1, together):
            count = min(together, self.releases + 1 - first)
            drawn = self.plan.batch_noise.sample(Fraction(1), count * shape[0] * shape[1], bits=bits)
            for release, noise in enumerate(drawn.reshape(count, *shape), first):
                prefixes[release] = prefixes[parents[release]] + noise
                yield prefixes[release]
                for done in [kept for kept in prefixes if last_child.get(kept, kept) <= release]:
                    del prefixes[done]

    def guarantee(self) -> LinearGuarantee:
        levels = self.plan.shufflers_used
        again = "" if self.visits == 1 else f" Of a user's {self.visits} visits no two are in one slot."
        return LinearGuarantee(
            model="shuffle",
            privacy=self.privacy,
            visits=self.visits,
            terms=Visits(self.visits, levels).delta_terms(self.plan, self.privacy),
            trusted="shufflers permute and do not collude with the analyzer; users of a batch add their noise",
            because=(
                f"Each visit is a vector in at most {levels} batches, all of which carry the whole noise; two users' "
                f"vectors are at most {self.setting.joint.apart:.6g} apart; models are computed from the batches."
                f"{again}"
            ),
        )

    def _decides(self) -> dict[str, Any]:
        return {"plan": self.plan.fingerprint, "visits": self.visits}

    def start(self) -> LinearState:
        return LinearState(self.fingerprint, 0, (0.0,) * self.setting.joint.length, self.counter.start())

    def _batches(self, state: LinearState) -> tuple[OpenBatch, ...]:
        return self.counter.ask(_counter(state)).batches

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

    def _released(self, counter: CounterState) -> tuple[float, ...]:
        """The sum that the counter released last."""
        prefix = counter.prefixes[counter.users // self.slot_users]
        steps = np.atleast_1d(np.asarray(prefix, dtype=np.float64))
        return tuple((steps * self.step).tolist())

    @classmethod
    def with_layout(cls, setting: LinearSetting, privacy: Privacy, visits: int, **layout: Any) -> Self:
        """The policy with the least noise for its schedule, or the papers', on a grid fine enough.

        Args:
            setting: users, features, rewards and confidence.
            privacy: what every user is promised in all visits together.
            visits: how often one user may come.
            **layout: the schedule, as `CounterPlan` takes it: users, shufflers, shufflers_used and budget.
        """
        kind = Visits(visits, layout["shufflers_used"])
        domain = _fitted(setting, lambda domain: kind.noise(domain, privacy).law().standard_deviation)
        noise = kind.noise(domain, privacy)
        if setting.constants == "paper":
            steps = paper_batch_deviation(setting.dimension, privacy, kind.levels) / domain.step
            noise = SkellamNoise(max(noise.law().variance, steps**2))
        confidence = setting.confidence
        plan = CounterPlan(
            privacy=kind.each(privacy), batch_noise=noise, confidence=confidence, domain=domain, **layout
        )
        return cls(setting=setting, privacy=privacy, plan=plan, visits=visits)


def _counter(state: LinearState) -> CounterState:
    if state.counter is None:
        raise ParameterError("state", "none", "must hold its counter", "restore a copy")
    return state.counter


def _fitted(setting: LinearSetting, deviation: Callable[[Vectors], float]) -> Vectors:
    """On the coarsest grid whose rounding adds little to the noise, or the finest that is quick to draw."""
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
