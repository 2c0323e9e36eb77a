"""One round of a sum, whatever is added up: a domain's steps, a noise, and the transport that carries them."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.laws import DiscreteLaplace, IntegerLaw
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Reports
from shuffledp.protocols.domains.summed import SummedDomain
from shuffledp.protocols.error_bounds import CONFIDENCE, noise_and_rounding_bound, with_errors
from shuffledp.protocols.fields import check_fields, forwarded, noise
from shuffledp.protocols.plan import changed
from shuffledp.protocols.polya import polya_law, ratio_with
from shuffledp.protocols.request import Request, once
from shuffledp.protocols.rounds import RoundPlan
from shuffledp.protocols.splitting import FALSE_ALARM, Splitting, modulus_bits_for
from shuffledp.protocols.streaming import LawOfSums, summed
from shuffledp.protocols.sums.batches import CoinBatch, ShareBatch, SumBatch
from shuffledp.protocols.sums.noise import TRANSPORT_PART, BatchNoise, LaplaceNoise, least_laplace, shift_pair
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.unary import probability_with
from shuffledp.randomness import RandomBits

# Users rounded at a time: their numbers stay in the cache.
_AT_A_TIME = 1 << 16


@lru_cache(maxsize=256)
def _bound_in_steps(noise: IntegerLaw, users: int, rounds: bool) -> float:
    return noise_and_rounding_bound(noise, users) if rounds else float(noise.deviation_quantile(1 - CONFIDENCE))


@dataclass(frozen=True, slots=True, kw_only=True)
class SumPlan(LawOfSums, RoundPlan):
    """A sum in one round: what a method adds is a theorem about its noise."""

    @property
    @abstractmethod
    def domain(self) -> SummedDomain: ...

    @property
    @abstractmethod
    def batch(self) -> SumBatch:
        """The transport of all users' steps and noise."""

    def _check_noise(self) -> None:
        check_fields(self)
        self.batch.check()

    @property
    def step(self) -> float:
        """One step, in the values' own unit."""
        return self.domain.step

    coordinates = forwarded("domain.coordinates")
    message_influence = forwarded("step")
    messages_per_user_mean = forwarded("batch.messages_mean")
    messages_per_user_max = forwarded("batch.messages_max")
    bits_per_message = forwarded("batch.bits_per_message")
    can_be_voided = forwarded("batch.can_be_voided")
    tally = forwarded("batch.tally")
    added_noise = forwarded("noise_law")

    @property
    def noise_law(self) -> IntegerLaw:
        """The law of what is added to a coordinate, in steps, when everybody follows the protocol."""
        return self.batch.law(self.users)

    @property
    def standard_error(self) -> float:
        # Rounding to neighbouring whole numbers has a variance of at most 1/4.
        rounding = self.users / 4 if self.domain.rounds else 0.0
        return self.step * math.sqrt(self.noise_law.variance + rounding)

    @property
    def error_bound(self) -> float:
        return self.step * _bound_in_steps(self.noise_law, self.users, self.domain.rounds)

    @property
    def alphabet_size(self) -> int:
        return 1 << self.batch.payload_bits

    def pair(self, honest: int) -> DominatingPair:
        return shift_pair(self.batch.law(honest), self.domain.largest_shift)

    def noise_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        """What the noise leaves of delta when so many users are honest."""
        return (DeltaTerm("noise", self.pair(honest).delta(epsilon), self.batch.curve),)

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return (*self.noise_terms(epsilon, honest), *self.batch.transport_terms(honest, epsilon))

    @property
    def influence(self) -> float | None:
        # Labels are the client's to choose: all its messages may be about one coordinate.
        return None if self.batch.influence is None else self.step * self.batch.influence

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[Any]:
        """Checked values as whole numbers of steps, a number or a row a user."""
        return self.domain.to_steps(values, bits=bits)

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        return self.batch.randomize(self.to_steps(self.check_values(values), bits=bits), 0, bits=bits)

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Any:
        self.check_reports(tally.reports)
        sums, dropped = self.batch.sums(tally)
        return self.from_steps(sums, dropped=dropped, simulated=simulated)

    def from_steps(self, sums: NDArray[np.int64], *, dropped: int = 0, simulated: bool = False) -> Any:
        """The estimate from every coordinate's noisy sum in steps."""
        value = self.users * self.domain.origin + self.step * (int(sums[0]) - self.batch.mean)
        return with_errors(self, value, dropped=dropped, simulated=simulated)

    def summary(self, values: ArrayLike, *, bits: RandomBits) -> Tally:
        array = self.check_values(values)
        blocks = (array[start : start + _AT_A_TIME] for start in range(0, len(array), _AT_A_TIME))
        return summed(sum(int(self.to_steps(block, bits=bits).sum(dtype=np.int64)) for block in blocks), len(array))

    def sample_from(self, summary: Tally, *, bits: RandomBits) -> Any:
        self.check_reports(summary.reports)
        sums = self.batch.checked(summary.counts + self.batch.sample(1, bits=bits))
        return self.from_steps(sums, simulated=not bits.is_secure)

    def sample_sums(self, ones: NDArray[np.int64], batches: int, *, bits: RandomBits) -> NDArray[np.float64]:
        """What the estimates of so many batches add up to, where the steps of all their users add up to `ones`."""
        drawn = self.batch.sample(ones.size, bits=bits, batches=batches).reshape(ones.shape)
        return np.asarray(ones + drawn - batches * self.batch.mean, dtype=np.float64)

    @property
    def audited_line(self) -> NDArray[np.int64]:
        """Signs of the coordinates in which the neighbours differ, the first ones: the others show nothing."""
        return np.ones(1, dtype=np.int64)

    @property
    def audited_messages(self) -> int:
        return self.batch.each * self.audited_line.size

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """The noisy sum along the line from one neighbour to the other, in a fiftieth of its deviation.

        But for the transport term it is all that shuffled messages show; fewer outcomes are a post-processing.
        """
        line = self.audited_line
        about = reports.payloads.reshape(trials, -1, line.size, self.batch.each).transpose(0, 2, 1, 3)
        sums = self.batch.run_sums(about.reshape(trials, line.size, -1))
        deviation = self.noise_law.standard_deviation * math.sqrt(line.size)
        return (sums @ line // max(1, int(deviation / 50))).reshape(-1, 1)


class BitsSum(SumPlan):
    """A number as so many ones among a grid's bits, and `coins_each` coins a user and coordinate beside them.

    Reference: [001] Algorithm 1.
    """

    __slots__ = ()
    law: ClassVar[str] = "binomial"
    probability: float

    # Coins that a user tosses for each coordinate, and bits that carry one number.
    coins_each = forwarded("coins")
    bits_each = forwarded("domain.largest_shift")

    @once
    def batch(self) -> CoinBatch:
        """The transport of all users' steps and coins."""
        coins = self.users * self.coins_each
        return CoinBatch(
            self.users, coins, self.coordinates, 0, self.bits_each, self.probability, labelled=self.is_labelled
        )

    def quieter(self, part: float) -> dict[str, Any]:
        most = self.probability * (1 - self.probability)

        def enough(variance: float) -> bool:
            return variance >= most or bool(changed(self, probability=probability_with(variance)).guarantee().holds)

        least = min(smallest_real(enough, 0.0, 0.01, relative=1e-4), most)
        return {"probability": probability_with(part * least)}


class SharesSum(SumPlan):
    """A number with a part of the noise, in shares modulo a power of two.

    One client that lies, or one lost share, voids the batch; that is detected.
    """

    __slots__ = ()
    moved: ClassVar[str] = "the sum"
    """What a client that lies moves, in words."""
    also_saved: ClassVar[tuple[str, ...]] = ("share_of", "shares", "modulus_bits", "largest_deviation")
    shares: int
    modulus_bits: int
    largest_deviation: int

    @property
    def share_of(self) -> int:
        """Every user adds one part in so many of the noise."""
        return self.honest_users

    @property
    @abstractmethod
    def batch_noise(self) -> BatchNoise:
        """What the honest users add together."""

    @once
    def batch(self) -> ShareBatch:
        """The transport of all users' steps and shares."""
        lowest, highest = self._reached
        sums = self.users * lowest - self.largest_deviation, self.users * highest + self.largest_deviation
        splitting = Splitting(self.shares, self.modulus_bits, *sums)
        return ShareBatch(
            self.users, self.honest_users, self.batch_noise, splitting, self.coordinates, self.is_labelled
        )

    @property
    def lying_client(self) -> str:
        return self.batch.splitting.lying_client(self.moved)

    @property
    def _reached(self) -> tuple[int, int]:
        """The least and the most steps of a user in a coordinate."""
        return self.domain.lowest, self.domain.highest


@dataclass(frozen=True, kw_only=True)
class LaplaceShares(SharesSum):
    """Discrete Laplace noise in Polya shares."""

    law: ClassVar[str] = "discrete-laplace"

    ratio: float = noise("(0, 1)")
    shares: int = noise("[1, inf)")
    modulus_bits: int = noise("[1, inf)")
    largest_deviation: int = noise("[0, inf)")

    @property
    def batch_noise(self) -> LaplaceNoise:
        return LaplaceNoise(self.ratio)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"ratio": ratio_with(part * DiscreteLaplace(self.ratio).variance)}

    @classmethod
    def least(
        cls, request: Request, shift: int, highest: int, mixing: Callable[[int, int, float], int], exact: str
    ) -> dict[str, Any]:
        """The fields of a plan of one number with the least noise that hides a shift: pure, or with a part of delta."""
        privacy = request.privacy
        noise = least_laplace(privacy.epsilon, (1 - TRANSPORT_PART) * privacy.delta, shift=shift)
        taken = noise.delta(privacy.epsilon, 1, shift=shift)
        return cls.calibrated(request, noise.ratio, highest, mixing, exact, taken=taken)

    @staticmethod
    def calibrated(
        request: Request,
        ratio: float,
        highest: int,
        mixing: Callable[[int, int, float], int],
        exact: str,
        coordinates: int = 1,
        taken: float = 0.0,
    ) -> dict[str, Any]:
        """The fields of a plan whose honest users' noise has this ratio, the shares mixing them to within delta.

        Args:
            request: what is asked for.
            ratio: of the noise's masses, with which it hides a user.
            highest: the most steps of a user.
            mixing: shares from honest users, modulus and distance.
            exact: the method whose noise is drawn exactly.
            coordinates: how many numbers everybody sends.
            taken: what the noise takes of delta: nothing, if the ratio is pure.
        """
        users, privacy, honest = request.users, request.privacy, request.honest
        deviation = polya_law(users / honest, ratio).deviation_quantile(FALSE_ALARM / coordinates)
        modulus_bits = modulus_bits_for(users * highest + 2 * deviation + 1)
        left = privacy.delta - taken - LaplaceNoise(ratio).sampling_delta(users, honest, coordinates, privacy.epsilon)
        if left <= 0:
            raise InfeasibleError(
                "delta",
                privacy.delta,
                "is smaller than what sampling tables round off",
                f"choose a larger delta, a smaller epsilon, or the method {exact}, whose noise is drawn exactly",
            )
        # All coordinates together show less than this in each adds up to: that is left for dropouts.
        distance = left * (1 - 1e-9) / (1 + math.exp(privacy.epsilon)) / coordinates
        return {
            "ratio": ratio,
            "shares": mixing(honest, 1 << modulus_bits, distance),
            "modulus_bits": modulus_bits,
            "largest_deviation": deviation,
        }
