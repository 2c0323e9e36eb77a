"""A sum in two rounds: keys for every two users, then values under masks that cancel, with a curator's noise.

Reference: [004] Theorem 28 for the keys; pairwise masks as in Bonawitz et al. 2017, without their recovery of dropouts;
Polya shares of the noise as in Ghazi, Kumar, Manurangsi, Pagh 2020.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.guarantee import Collusion, DeltaTerm, Guarantee
from shuffledp.accounting.laws import IntegerLaw
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import DataError, InfeasibleError, ParameterError, TooFewReportsError
from shuffledp.estimates import Estimate
from shuffledp.messages import Batch, Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.masked_sum.key_agreement import FAILURE, KeyAgreement, as_numbers
from shuffledp.protocols.polya import polya_law, polya_pair, polya_sampling_term, pure_ratio
from shuffledp.protocols.splitting import FALSE_ALARM, Splitting, modulus_bits_for
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import sample_polya_difference

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedSum:
    """A demonstration: the sum of whole numbers in 0..high, with the noise that a trusted curator would add.

    Round 1 gives every two users a key; in round 2 each sends its value, its Polya share of discrete
    Laplace noise and its masks, one key for each other user, added by the leader and subtracted by the
    follower, modulo 2^modulus_bits. A key is used once: a one-time pad, so that no computing power helps.

    The adversary sees the shuffler's output of round 1 and all of round 2, even who sent what, and from that
    exactly the sum modulo 2^modulus_bits. A coalition of users sees the sum of the others with the others' noise;
    one with the shuffler of round 1 sees everything. Everybody must follow the protocol and stay until the end:
    one dropout voids the sum, and messages grow with the square of the users.

    Reference: [004] Theorem 28; docs/theory/interaction.md.

    >>> plan = MaskedSum.plan(users=20, privacy=Privacy(1, 1e-6))
    >>> round(plan.standard_error, 3), plan.modulus_bits, plan.agreement.repetitions, plan.agreement.messages
    (1.357, 47, 200, 76000)
    """

    theory_page: ClassVar[str] = "docs/theory/interaction.md"

    users: int
    privacy: Privacy
    high: int
    ratio: float
    modulus_bits: int
    largest_deviation: int
    repetitions: int

    @classmethod
    def plan(cls, *, users: int, privacy: Privacy, high: int = 1, failure: Fraction = FAILURE) -> Self:
        """A curator's noise, a modulus that shows a spoiled sum, and keys as long as the modulus."""
        if isinstance(users, bool) or not isinstance(users, int) or users < 2:
            raise ParameterError("users", users, "must be a whole number >= 2", "a mask needs two people")
        _check_high(high)
        ratio = pure_ratio(privacy.epsilon, high)
        deviation = polya_law(1.0, ratio).deviation_quantile(FALSE_ALARM)
        modulus_bits = modulus_bits_for(users * high + 2 * deviation + 1)
        agreement = KeyAgreement.plan(users=users, key_bits=modulus_bits, failure=failure)
        return cls(
            users=users,
            privacy=privacy,
            high=high,
            ratio=ratio,
            modulus_bits=modulus_bits,
            largest_deviation=deviation,
            repetitions=agreement.repetitions,
        )

    def __post_init__(self) -> None:
        _check_high(self.high)
        if not 0 < self.ratio < 1:
            raise ParameterError("ratio", self.ratio, "must lie strictly between 0 and 1", "make the plan again")
        self._arithmetic.check(self.largest_deviation)
        _ = self.agreement  # refuses too few users, or too many
        proved = self.guarantee().delta
        if proved > self.privacy.delta:
            raise InfeasibleError(
                "noise",
                json.dumps({"ratio": self.ratio}),
                f"must reach delta {self.privacy.delta:g} at epsilon {self.privacy.epsilon:g} but gives {proved:.3g}",
                "add noise, or choose a larger epsilon or delta",
            )

    # --- numbers -----------------------------------------------------------------------------

    @property
    def agreement(self) -> KeyAgreement:
        """Round 1."""
        return KeyAgreement(users=self.users, key_bits=self.modulus_bits, repetitions=self.repetitions)

    @property
    def noise_law(self) -> IntegerLaw:
        """What all users' shares add up to: discrete Laplace."""
        return polya_law(1.0, self.ratio)

    @property
    def standard_error(self) -> float:
        """Of the sum."""
        return self.noise_law.standard_deviation

    @property
    def _arithmetic(self) -> Splitting:
        # Sums modulo a power of two, and which of them are plausible; nothing is split into shares.
        spread = self.largest_deviation
        return Splitting(1, self.modulus_bits, -spread, self.users * self.high + spread)

    # --- privacy -----------------------------------------------------------------------------

    def pair(self, honest: int) -> ShiftPair:
        """What a coalition of everybody else and the analyzer must tell apart when so many users are outside it."""
        return polya_pair(honest / self.users, self.ratio, self.high)

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        """Every summand of delta at this epsilon when so many users are outside the coalition."""
        return (
            DeltaTerm("noise", self.pair(honest).delta(epsilon), "the hockey-stick curve of the pair"),
            DeltaTerm("masks", 0.0, "keys are exactly uniform, so masked values can be simulated from their sum"),
            polya_sampling_term(self.users, self.users, self.ratio, epsilon),
        )

    def guarantee(self) -> Guarantee:
        """The proof of the plan's claim, as data: no user is in the coalition."""
        return Guarantee(
            claim=self.privacy,
            pair=self.pair(self.users),
            theory_page=self.theory_page,
            dominates_because=(
                "Masks between users outside the coalition are uniform and cancel only in the sum of all of them, "
                "which is a function of the user's value plus their Polya shares, whatever the others' values."
            ),
            terms=self.delta_terms(self.privacy.epsilon, self.users),
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
        return epsilon_at(_Against(self, honest), self.privacy.delta)

    def collusions(self, coalitions: Sequence[int] | None = None) -> tuple[Collusion, ...]:
        """What the analyzer learns with so many users, or with the shuffler.

        Unless told, with a tenth, a half and all but two of the users.
        """
        usual = {0, self.users // 10, self.users // 2, self.users - 2}
        rows = []
        for colluders in sorted(n for n in usual if n <= self.users - 2) if coalitions is None else coalitions:
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

    # --- round 2 -----------------------------------------------------------------------------

    def check_values(self, values: ArrayLike) -> NDArray[np.int64]:
        """The values as whole numbers, one a user."""
        array = np.asarray(values)
        if array.ndim != 1 or array.size != self.users or array.dtype.kind not in "bui":
            raise DataError(
                "values",
                f"{array.dtype} of shape {array.shape}",
                f"must be {self.users} whole numbers",
                "pass one a user",
            )
        bad = np.flatnonzero((array < 0) | (array > self.high))
        if bad.size:
            row = int(bad[0])
            raise DataError("values", f"{array[row]} in row {row + 1}", f"must lie in 0..{self.high}", "clip them")
        return array.astype(np.int64)

    def mask(self, values: ArrayLike, keys: NDArray[np.uint8], *, bits: RandomBits) -> Reports:
        """What users send in round 2: row i of the keys is what user i shares with each other user."""
        noisy = self.check_values(values)
        noisy += sample_polya_difference(Fraction(1, self.users), self.ratio, self.users, bits=bits)
        masks = as_numbers(keys)
        # User i leads the pairs with users above it, who stand at i and later among its others.
        leads = np.arange(self.users - 1) >= np.arange(self.users)[:, np.newaxis]
        # Unsigned arithmetic wraps modulo 2^64, of which 2^modulus_bits is a divisor.
        total = np.where(leads, masks, np.uint64(0) - masks).sum(axis=1, dtype=np.uint64)
        masked = (noisy.astype(np.uint64) + total) & self._arithmetic.mask
        return Reports.of_equal_size(masked.reshape(self.users, 1))

    def analyze(self, batch: Batch) -> Estimate:
        """The sum; without a single user's message, or with a wrong mask, there is none."""
        if batch.reports < self.users:
            raise TooFewReportsError(self.users, batch.reports)
        self._arithmetic.check_messages(batch.payloads, self.users)
        return Estimate(
            value=float(self._arithmetic.decode(self._arithmetic.total(batch.payloads))),
            standard_error=self.standard_error,
            bound=float(self.noise_law.deviation_quantile(1 - CONFIDENCE)),
            confidence=CONFIDENCE,
        )


@dataclass(frozen=True, slots=True)
class _Against:
    """Delta as a function of epsilon when so many users are outside the coalition."""

    plan: MaskedSum
    honest: int

    def delta(self, epsilon: float) -> float:
        return sum(term.value for term in self.plan.delta_terms(epsilon, self.honest))


def _check_high(high: int) -> None:
    if isinstance(high, bool) or not isinstance(high, int) or not 1 <= high <= 1 << 20:
        raise ParameterError("high", high, f"must be a whole number in 1..{1 << 20}", "1 counts ones")
