"""Histogram by parallel ZSUM: a category that nobody has is answered with exactly 0."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from shuffledp.accounting.curves import smallest_integer, smallest_meeting
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.accounting.two_bins import TwoBinsPair
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.cut import (
    check_messages,
    delta_of_coins,
    mean_squares_by_silence,
    worst_mean_square,
)
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Codes, Floats
from shuffledp.protocols.fields import noise
from shuffledp.protocols.histogram.blanket import smallest_blanket
from shuffledp.protocols.histogram.bounds import failure_of_each
from shuffledp.protocols.histogram.cut import CutPlan
from shuffledp.protocols.request import Request
from shuffledp.protocols.unary import probability_with
from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import bernoulli
from shuffledp.sampling.coins import binomial

# Coins tossed at a time.
_BLOCK = 1 << 22
# Balcer, Cheu 2020: n (1 - r) epsilon^2 / ln(2/delta), for one bin.
_PAPER_FACTOR = 50


@lru_cache(maxsize=256)
def _pair(honest: int, silence: float) -> TwoBinsPair:
    return TwoBinsPair(ShiftPair(Binomial(honest, silence)))


@lru_cache(maxsize=256)
def _smallest_silence(honest: int, privacy: Privacy) -> float:
    """The rarest silences that hide two bins' move."""
    delta = delta_of_coins(lambda silence: _pair(honest, silence), privacy, honest, 0.5)
    # Asked from the limit of rare silences on: far above it there would be very many outcomes.
    first = min(0.5, smallest_blanket(privacy) / honest)
    return min(0.5, smallest_meeting(delta, privacy.delta, 0.0, first, relative=1e-7))


def paper_silence(honest: int, privacy: Privacy) -> float | None:
    """The paper's own silences, with half of epsilon and of delta for each of two bins; None outside its theorem.

    >>> round(10**5 * paper_silence(10**5, Privacy(1, 1e-6)))
    3040
    """
    epsilon, delta = privacy.epsilon / 2, privacy.delta / 2
    silence = _PAPER_FACTOR * math.log(2 / delta) / (epsilon**2 * honest)
    return silence if epsilon <= 1 and silence <= 0.5 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramZSum(CutPlan):
    """Each user sends its category and, for every category, that one unless a rare coin says no.

    The adversary sees how many messages name each category. At most n of them are noise, so more prove a user, and
    otherwise the answer is 0: categories that nobody has are always answered exactly, but small ones are lost.

    Reference: [004] section 3.2, Theorem 12 (Balcer, Cheu 2020), accounted for on two bins at once.

    >>> plan = HistogramZSum.plan(users=100_000, privacy=Privacy(1, 1e-6), categories=1000)
    >>> round(100_000 * plan.silence, 1), plan.messages_per_user_max
    (42.7, 1001)
    """

    method: ClassVar[str] = "zsum"
    law: ClassVar[str] = "binomial"
    curve: ClassVar[str] = "the curve of two bins, composed exactly"
    dominates_because: ClassVar[str] = (
        "The view is each category's number of messages. With everybody else's category known, the user's is one "
        "message in one of two bins, each with its own silences of all honest users; the others' bins are noise "
        "alone."
    )

    silence: float = noise("(0, 1/2]")

    @classmethod
    def for_request(cls, request: Request, *, categories: AnyCategories) -> Self:
        """The rarest silences that hide which of two bins a user is in."""
        privacy, honest, domain = request.privacy, request.honest, as_categories(categories)
        check_messages(domain.size + 1.0, domain.size + 1)
        silence = paper_silence(honest, privacy) if request.constants == "paper" else _smallest_silence(honest, privacy)
        if silence is None:
            problem = "are proved for epsilon <= 2 and 400 ln(4/delta)/epsilon^2 users or more only"
            raise InfeasibleError("constants", "paper", problem, "use exact constants")
        return cls(**request.common, categories=domain, silence=silence)

    @property
    def cut_law(self) -> Binomial:
        """Noise messages that are missing in one bin."""
        return Binomial(self.users, self.silence)

    @property
    def mean_squares(self) -> Floats:
        return mean_squares_by_silence(self.users, self.silence)

    @property
    def paper_standard_error(self) -> float | None:
        silence = paper_silence(self.honest_users, self.privacy)
        if silence is None:
            return None
        return math.sqrt(
            worst_mean_square(Binomial(self.users, silence), lambda: mean_squares_by_silence(self.users, silence))
        )

    def _l_inf_error(self) -> float:
        # Answered with 0, a count is at most the silences S; otherwise the error is their mean less S.
        law, each = self.cut_law, failure_of_each(self._noisy_bins)
        return float(smallest_integer(lambda a: law.sf(a) + law.cdf(math.ceil(law.mean - a) - 1) <= each, 0))

    @property
    def messages_per_user_mean(self) -> float:
        return 1 + self.bins * (1 - self.silence)

    @property
    def messages_per_user_max(self) -> int:
        return 1 + self.bins

    @property
    def influence(self) -> float:
        return self.messages_per_user_max + self.cut_law.mean

    @property
    def lying_client(self) -> str:
        return (
            f"moves a bin by its messages, at most {self.messages_per_user_max}, and may lift one from 0 over the cut "
            f"at about {self.cut_law.mean:.3g}"
        )

    def pair(self, honest: int) -> TwoBinsPair:
        return _pair(honest, self.silence)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"silence": probability_with(part * self.silence * (1 - self.silence))}

    def _reports(self, codes: Codes, bits: RandomBits) -> Reports:
        kind = self._kind
        every = np.arange(self.bins, dtype=kind)
        rows = max(1, _BLOCK // self.bins)
        payloads, sizes = [], []
        for start in range(0, codes.size, rows):
            own = codes[start : start + rows, np.newaxis]
            sent = np.ones((own.size, self.messages_per_user_max), dtype=np.bool_)
            silent = bernoulli(self.silence, own.size * self.bins, bits=bits)
            np.logical_not(silent.reshape(own.size, self.bins), out=sent[:, 1:])
            messages = np.concatenate((own.astype(kind), np.broadcast_to(every, (own.size, self.bins))), axis=1)
            payloads.append(messages[sent])
            sizes.append(sent.sum(axis=1, dtype=np.int64))
        return Reports(np.concatenate(payloads), np.concatenate(sizes))

    def _read(self, seen: Codes) -> Floats:
        return np.where(seen > self.users, seen - self.users + self.cut_law.mean, 0.0)

    def _noisy(self, summed: Codes, bits: RandomBits) -> Codes:
        return summed + self.users - binomial(self.users, self.silence, self.bins, bits=bits)
