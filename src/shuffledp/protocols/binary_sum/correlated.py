"""Binary sum by correlated noise: plus and minus ones that cancel in the sum and flood the view."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from shuffledp.accounting.correlated import CorrelatedPair
from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.guarantee import DeltaTerm, delta_of_distance
from shuffledp.accounting.laws import DiscreteLaplace, IntegerLaw
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Reports
from shuffledp.protocols.binary_sum.base import CountedBits, check_delta, smallest_cap
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.fields import forwarded, noise
from shuffledp.protocols.polya import polya_law, pure_ratio, ratio_with
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import negative_binomial, sample_polya_difference

# The part of epsilon that goes to the flood; the rest is the error's.
_FLOOD_PART = 0.1
# The flood's ratio is exp(-0.6 flood epsilon): about the fewest messages; the paper takes 0.2.
_FLOOD_DECAY, _PAPER_DECAY = 0.6, 0.2
_CUT_PART = 1e-3
# Below, tables of the flood have millions of entries.
_SMALLEST_EPSILON = 0.005


_pair = lru_cache(maxsize=64)(CorrelatedPair)


def _negative_binomial_tail(shape: float, p: float, k: int) -> float:
    """P[NB(shape, p) > k]."""
    return float(special.betainc(k + 1, shape, p))


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlated(CountedBits):
    """Each user sends its bit as a plus one, Polya shares of two geometric noises, and cancelling pairs.

    The adversary sees the numbers of plus ones and of minus ones. Their difference is the count plus
    discrete Laplace noise; the cancelling pairs hide everything else. Hardly more than one message a
    user when there are many.

    Reference: Ghazi, Kumar, Manurangsi, Pagh 2020; [004] Table 2, fourth row.

    >>> from shuffledp import Privacy
    >>> plan = Correlated.plan(users=10_000, privacy=Privacy(1, 1e-6))
    >>> round(plan.standard_error, 2), round(plan.messages_per_user_mean, 2)
    (1.52, 1.06)
    """

    method: ClassVar[str] = "correlated"
    sends_own: ClassVar[bool] = False
    theory_page: ClassVar[str] = "docs/theory/correlated-noise.md"
    law: ClassVar[str] = "discrete-laplace"

    ratio: float = noise("(0, 1)")
    flood_shape: float = noise("(0, inf)")
    flood_ratio: float = noise("(0, 1)")
    most_noise: int = noise("[0, inf)")
    most_flood: int = noise("[0, inf)")

    @classmethod
    def for_request(cls, request: Request) -> Self:
        """A tenth of epsilon for the flood, which is then as small as the exact curve allows."""
        privacy, honest = request.privacy, request.honest
        check_delta(privacy)
        if privacy.epsilon < _SMALLEST_EPSILON:
            problem = f"must be >= {_SMALLEST_EPSILON:g} for correlated noise, whose flood grows with its inverse"
            raise InfeasibleError("epsilon", privacy.epsilon, problem, "take shares or coins")
        ratio = pure_ratio((1 - _FLOOD_PART) * privacy.epsilon)
        flood_epsilon = min(1.0, _FLOOD_PART * privacy.epsilon)
        if request.constants == "paper":
            flood_ratio = math.exp(-_PAPER_DECAY * flood_epsilon)
            flood_shape = 3 * (1 + math.log(1 / privacy.delta))
        else:
            flood_ratio = math.exp(-_FLOOD_DECAY * flood_epsilon)
            target = privacy.delta * (1 - 2 * _CUT_PART)
            flood_shape = smallest_meeting(
                lambda r: CorrelatedPair(ratio, r, flood_ratio).delta(privacy.epsilon),
                target,
                0.0,
                1.0,
                relative=1e-9 if privacy.epsilon >= 0.05 else 1e-4,  # wide tables take long
            )
        limit = _CUT_PART * privacy.delta / (delta_of_distance(math.exp(privacy.epsilon), 1.0) * 3 * request.users)
        return cls(
            **request.common,
            ratio=ratio,
            flood_shape=flood_shape,
            flood_ratio=flood_ratio,
            most_noise=smallest_cap(lambda k: _negative_binomial_tail(1 / honest, ratio, k), limit),
            most_flood=smallest_cap(lambda k: _negative_binomial_tail(flood_shape / honest, flood_ratio, k), limit),
        )

    @classmethod
    def least_error(cls, request: Request, **domain: Any) -> float:
        # The noise in the count is the same whatever the flood is; more users than are counted on add more.
        variance = DiscreteLaplace(pure_ratio((1 - _FLOOD_PART) * request.privacy.epsilon)).variance
        return math.sqrt(variance * request.users / request.honest)

    @property
    def added_noise(self) -> IntegerLaw:
        return polya_law(self.users / self.honest_users, self.ratio)

    standard_error = forwarded("added_noise.standard_deviation")

    @property
    def error_bound(self) -> float:
        return float(self.added_noise.deviation_quantile(1 - CONFIDENCE))

    @property
    def flood_mean(self) -> float:
        """Cancelling pairs of the honest users together."""
        return self.flood_shape * self.flood_ratio / (1 - self.flood_ratio)

    @property
    def _noise_messages(self) -> float:
        each = self.ratio / (1 - self.ratio) + self.flood_mean
        return 2 * each / self.honest_users

    @property
    def messages_per_user_mean(self) -> float:
        return 1 + self._noise_messages

    def mean_messages(self, values: ArrayLike) -> float:
        return float(np.mean(self.check_values(values))) + self._noise_messages

    least_mean_messages = forwarded("_noise_messages")

    @property
    def messages_per_user_max(self) -> int:
        return 1 + 2 * self.most_noise + 2 * self.most_flood

    @property
    def influence(self) -> float:
        # Messages are signed: all that are taken from one may be plus ones, or minus ones.
        return 2.0 * self.messages_per_user_max

    @property
    def lying_client(self) -> str:
        return (
            f"moves the count by at most {self.influence:,.0f}: two for each message that is a plus instead of a minus"
        )

    def pair(self, honest: int) -> CorrelatedPair:
        return _pair(self.ratio, self.flood_shape, self.flood_ratio, honest / self.honest_users)

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        factor, shares = math.exp(epsilon), self.honest_users
        cut = self.users * (
            2 * _negative_binomial_tail(1 / shares, self.ratio, self.most_noise)
            + _negative_binomial_tail(self.flood_shape / shares, self.flood_ratio, self.most_flood)
        )
        noise, flood = self._tables
        rounded = self.users * (2 * noise.distance + flood.distance)
        return (
            DeltaTerm("noise", self.pair(honest).delta(epsilon), "the curve of the two counts, the larger direction"),
            DeltaTerm(
                "cut-off", delta_of_distance(factor, cut), f"at most {self.messages_per_user_max} messages a user"
            ),
            DeltaTerm("sampling", delta_of_distance(factor, rounded), "what the noise tables cut off and round"),
        )

    @property
    def _tables(self) -> Any:
        shares = self.honest_users
        return (
            negative_binomial(Fraction(1, shares), self.ratio),
            negative_binomial(Fraction(self.flood_shape) / shares, self.flood_ratio),
        )

    @property
    def dominates_because(self) -> str:
        return (
            "A permuted multiset of plus and minus ones shows how many of each there are; with everybody else's bits "
            "known these are the user's bit and the honest users' noise, whose shares add up exactly."
        )

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        true = self.check_values(values)
        noise, flood = self._tables
        plus = np.minimum(noise.sample(true.size, bits=bits), self.most_noise)
        minus = np.minimum(noise.sample(true.size, bits=bits), self.most_noise)
        pairs = np.minimum(flood.sample(true.size, bits=bits), self.most_flood)
        counts = np.stack((true + plus + pairs, minus + pairs), axis=1)
        signs = np.tile(np.array([1, 0], dtype=np.uint8), true.size)
        return Reports(np.repeat(signs, counts.reshape(-1)), counts.sum(axis=1))

    def _from_counts(self, ones: int, zeros: int) -> float:
        return float(ones - zeros)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"ratio": ratio_with(part * DiscreteLaplace(self.ratio).variance)}

    def _sample(self, total: int, bits: RandomBits) -> float:
        shape = Fraction(self.users, self.honest_users)
        return float(total + int(sample_polya_difference(shape, self.ratio, 1, bits=bits)[0]))
