"""A sum in two rounds: keys for every two users, then values under masks that cancel, with a curator's noise.

Reference: [004] Theorem 28 for the keys; pairwise masks as in Bonawitz et al. 2017, without their recovery of dropouts;
Polya shares of the noise as in Ghazi, Kumar, Manurangsi, Pagh 2020.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.guarantee import Collusion, DeltaTerm
from shuffledp.accounting.laws import DiscreteLaplace, IntegerLaw
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.domains.domain import Domain, Generator, column_of, refuse_first
from shuffledp.protocols.error_bounds import CONFIDENCE, with_errors
from shuffledp.protocols.fields import domain, forwarded, noise, only_exact
from shuffledp.protocols.masked_sum.key_agreement import FAILURE, KeyAgreement, as_numbers
from shuffledp.protocols.masked_sum.two_rounds import TwoRounds
from shuffledp.protocols.polya import polya_law, polya_pair, polya_sampling_term, pure_ratio, ratio_with
from shuffledp.protocols.request import Request
from shuffledp.protocols.rounds import InteractivePlan
from shuffledp.protocols.splitting import FALSE_ALARM, Splitting, modulus_bits_for
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.references.curator import CuratorDiscreteLaplace
from shuffledp.sampling.laws import sample_polya_difference

LARGEST_HIGH = 1 << 20


@dataclass(frozen=True)
class WholeNumbers(Domain):
    """Whole numbers in 0..high."""

    kind: ClassVar[str] = "whole-numbers"
    high: int

    @property
    def options(self) -> str:
        return f"--high {self.high}"

    def check_values(self, values: ArrayLike) -> NDArray[np.int64]:
        array = column_of(values)
        if array.dtype.kind not in "bui":
            problem = "must be whole numbers"
            raise DataError("values", f"{array.dtype} of shape {array.shape}", problem, "pass one a user")
        refuse_first(array, (array < 0) | (array > self.high), f"must lie in 0..{self.high}", "clip them")
        return array.astype(np.int64)

    def synthesize(self, users: int, generator: Generator) -> NDArray[np.int64]:
        return (generator.random(users) * (self.high + 1)).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedSum(InteractivePlan):
    """A demonstration: the sum of whole numbers in 0..high, with the noise that a trusted curator would add.

    Round 1 gives every two users a key; in round 2 each sends its value, its Polya share of discrete
    Laplace noise and its masks, one key for each other user, added by the leader and subtracted by the
    follower, modulo 2^modulus_bits. A key is used once: a one-time pad, so that no computing power helps.

    The adversary sees the shuffler's output of round 1 and all of round 2, even who sent what, and from that
    exactly the sum modulo 2^modulus_bits. A coalition of users sees the sum of the others with the others' noise;
    one with the shuffler of round 1 sees everything. Everybody must follow the protocol and stay until the end:
    one dropout voids the sum, and messages grow with the square of the users.

    Reference: [004] Theorem 28; docs/theory/interaction.md.

    Attributes:
        high: the largest value of a user.
        ratio: of one probability of the discrete Laplace noise to the one before it.
        modulus_bits: sums are taken modulo 2 to this power.
        largest_deviation: how far off the noise can put a sum that is still plausible.
        repetitions: how many coins each pair of users tosses to agree on a key.

    >>> from shuffledp import Privacy
    >>> plan = MaskedSum.plan(users=20, privacy=Privacy(1, 1e-6))
    >>> round(plan.standard_error, 3), plan.modulus_bits, plan.agreement.repetitions, plan.agreement.messages
    (1.357, 47, 200, 76000)
    """

    protocol: ClassVar[str] = "masked-sum"
    method: ClassVar[str] = "masks"
    theory_page: ClassVar[str] = "docs/theory/interaction.md"
    law: ClassVar[str] = "discrete-laplace"
    can_be_voided: ClassVar[bool] = True
    asked: ClassVar[str] = "two rounds of the same people"
    influence: ClassVar[None] = None
    dominates_because: ClassVar[str] = (
        "Masks between users outside the coalition are uniform and cancel only in the sum of all of them, "
        "which is a function of the user's value plus their Polya shares, whatever the others' values."
    )

    high: int = domain(f"[1, {LARGEST_HIGH}]")
    ratio: float = noise("(0, 1)")
    modulus_bits: int = noise()
    largest_deviation: int = noise()
    repetitions: int = noise()

    @classmethod
    def for_request(cls, request: Request, *, high: int = 1, failure: Fraction = FAILURE) -> Self:
        """A curator's noise, a modulus that shows a spoiled sum, and keys as long as the modulus."""
        only_exact(request.constants)
        if request.users < 2:
            raise ParameterError("users", request.users, "must be a whole number >= 2", "a mask needs two people")
        if isinstance(high, bool) or not isinstance(high, int) or not 1 <= high <= LARGEST_HIGH:
            raise ParameterError("high", high, f"must be a whole number in 1..{LARGEST_HIGH}", "1 counts ones")
        ratio = pure_ratio(request.privacy.epsilon, high)
        deviation = polya_law(1.0, ratio).deviation_quantile(FALSE_ALARM)
        modulus_bits = modulus_bits_for(request.users * high + 2 * deviation + 1)
        agreement = KeyAgreement.plan(users=request.users, key_bits=modulus_bits, failure=failure)
        return cls(
            **request.common,
            high=high,
            ratio=ratio,
            modulus_bits=modulus_bits,
            largest_deviation=deviation,
            repetitions=agreement.repetitions,
        )

    def _check_noise(self) -> None:
        super(MaskedSum, self)._check_noise()
        self._arithmetic.check(self.largest_deviation)
        _ = self.agreement  # refuses too few users, or too many
        if self.honest_fraction != 1:
            problem = "must be 1: a user who does not follow the protocol voids the sum"
            raise InfeasibleError("honest_fraction", self.honest_fraction, problem, "take a sum of one round")

    @property
    def agreement(self) -> KeyAgreement:
        """Round 1."""
        return KeyAgreement(users=self.users, key_bits=self.modulus_bits, repetitions=self.repetitions)

    @property
    def noise_law(self) -> IntegerLaw:
        """What all users' shares add up to: discrete Laplace."""
        return polya_law(1.0, self.ratio)

    standard_error = forwarded("noise_law.standard_deviation")

    @property
    def error_bound(self) -> float:
        return float(self.noise_law.deviation_quantile(1 - CONFIDENCE))

    @property
    def messages_per_user_max(self) -> int:
        """A coin for each other user and repetition in round 1, and one number in round 2."""
        return self.agreement.messages_per_user + 1

    @property
    def bits_per_message(self) -> int:
        """Bits of a message: those of the modulus in round 2; in round 1 a coin, and a label that says whose."""
        return max(self.modulus_bits, 1 + (self.agreement.pairs * self.repetitions - 1).bit_length())

    @property
    def alphabet_size(self) -> int:
        return 1 << self.modulus_bits

    def reference(self) -> dict[str, float | None]:
        central = CuratorDiscreteLaplace(privacy=self.privacy).standard_error if self.high == 1 else None
        return {**InteractivePlan.reference(self), "central_standard_error": central}

    @property
    def question(self) -> str:
        return f"add up the whole numbers of {self.users:,} users, each in 0..{self.high:,}, in two rounds"

    @property
    def _arithmetic(self) -> Splitting:
        # Sums modulo a power of two, and which of them are plausible; nothing is split into shares.
        spread = self.largest_deviation
        return Splitting(1, self.modulus_bits, -spread, self.users * self.high + spread)

    def pair(self, honest: int) -> ShiftPair:
        """What a coalition of everybody else and the analyzer must tell apart when so many users are outside it."""
        return polya_pair(honest / self.users, self.ratio, self.high)

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return (
            DeltaTerm("noise", self.pair(honest).delta(epsilon), "the hockey-stick curve of the pair"),
            DeltaTerm("masks", 0.0, "keys are exactly uniform, so masked values can be simulated from their sum"),
            polya_sampling_term(self.users, self.users, self.ratio, epsilon),
        )

    def epsilon_against(self, colluders: int) -> float:
        """The epsilon, at the plan's delta, that is left against the analyzer and so many users together.

        Two users outside the coalition are the fewest whom masks can hide behind each other.
        """
        honest = self.users - colluders
        if isinstance(colluders, bool) or not isinstance(colluders, int) or colluders < 0 or honest < 2:
            raise ParameterError(
                "colluders",
                colluders,
                f"must lie in 0..{self.users - 2}, so that two users are left",
                "a user alone has no mask that the others do not know",
            )
        return self.epsilon_among(honest)

    def collusions(self) -> tuple[Collusion, ...]:
        """What the analyzer learns with a tenth, a half and all but two of the users, or with the shuffler."""
        usual = {0, self.users // 10, self.users // 2, self.users - 2}
        rows = []
        for colluders in sorted(n for n in usual if n <= self.users - 2):
            epsilon, honest = self.epsilon_against(colluders), self.users - colluders
            rows.append(
                Collusion(
                    f"analyzer + {colluders} of {self.users} users" if colluders else "analyzer alone",
                    epsilon,
                    self.privacy.delta,
                    f"the sum of the other {honest} users, with {honest}/{self.users} of the noise"
                    if colluders
                    else "the sum of all users, with all of the noise",
                )
            )
        rows.append(
            Collusion("analyzer + shuffler", None, None, "see whose coin is whose, and so every key: nothing is masked")
        )
        return tuple(rows)

    @property
    def lying_client(self) -> str:
        return self._arithmetic.lying_client("the sum")

    @property
    def domain(self) -> WholeNumbers:
        return WholeNumbers(self.high)

    def check_values(self, values: ArrayLike) -> NDArray[np.int64]:
        """The values as whole numbers, one a user."""
        array = np.asarray(values)
        if array.shape != (self.users,):
            problem = f"must be {self.users} whole numbers"
            raise DataError("values", f"{array.dtype} of shape {array.shape}", problem, "pass one a user")
        return self.domain.check_values(array)

    def true_value(self, values: ArrayLike) -> float:
        return float(self.check_values(values).sum())

    def mask(self, values: ArrayLike, keys: NDArray[np.uint8], *, bits: RandomBits) -> Reports:
        """What users send in round 2: row i of the keys is what user i shares with each other user."""
        noisy = self.check_values(values)
        noisy += sample_polya_difference(Fraction(1, self.users), self.ratio, self.users, bits=bits)
        masks = as_numbers(keys)
        # Unsigned arithmetic wraps modulo 2^64, of which 2^modulus_bits is a divisor.
        total = np.where(self.agreement.leads, masks, np.uint64(0) - masks).sum(axis=1, dtype=np.uint64)
        masked = (noisy.astype(np.uint64) + total) & self._arithmetic.mask
        return Reports.of_equal_size(masked.reshape(self.users, 1))

    tally = forwarded("_arithmetic.tally")
    """The sum of round 2's numbers modulo the modulus."""

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Any:
        """The sum; without a single user's message, or with a wrong mask, there is none."""
        self.check_reports(tally.reports)
        (total,) = self._arithmetic.sums(tally, self.users)
        return with_errors(self, float(total), simulated=simulated)

    def analyze(self, batch: Batch) -> Any:
        """The sum from the messages of round 2."""
        return self.estimate(self.tally(batch))

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Any:
        total = self.true_value(values)
        added = int(sample_polya_difference(Fraction(1), self.ratio, 1, bits=bits)[0])
        return with_errors(self, total + added, simulated=not bits.is_secure)

    def learner(self) -> TwoRounds:
        return TwoRounds(self)

    def audited_effort(self, honest: int) -> int:
        return honest

    def views(self, side: int, trials: int, honest: int, *, bits: RandomBits) -> NDArray[np.int64]:
        """The honest users' sum, one of whom has 0 or the highest value: exactly what is left of masked values."""
        shares = sample_polya_difference(Fraction(1, self.users), self.ratio, trials * honest, bits=bits)
        return np.asarray(side * self.high + shares.reshape(trials, honest).sum(axis=1)).reshape(-1, 1)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"ratio": ratio_with(part * DiscreteLaplace(self.ratio).variance)}
