"""Histogram by opting in: a few users, at random, each add a fair coin to every category."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from shuffledp.accounting.curves import smallest_integer, smallest_meeting
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.visible_coins import OptInPair
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.cut import (
    check_messages,
    delta_of_coins,
    mean_squares_when_cut,
    table_of,
)
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Codes, Floats
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.fields import noise, only_exact
from shuffledp.protocols.histogram.bounds import binomial_above, in_groups
from shuffledp.protocols.histogram.cut import CutPlan
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import bernoulli
from shuffledp.sampling.coins import binomial, coin_bits, fair_coin_sums
from shuffledp.sampling.uniform import smallest_width

# Coins tossed at a time.
_BLOCK = 1 << 24
# Users that opt in beyond which nobody would count: an epsilon of about 3e-4.
_MOST_OPTED = 4e9
# Mass of the number that opts in which a window may leave out.
_LEFT_OUT = 1e-20
# Where there are more such numbers than this they are taken in so many groups.
_MANY, _GROUPS = 1 << 13, 1 << 8


@lru_cache(maxsize=256)
def smallest_opt_in(honest: int, privacy: Privacy) -> float:
    """The smallest probability of opting in that hides which of two bins a user is in."""
    # Fair coins in two bins need about the variance of Gaussian noise in each.
    needed = 4 * gaussian_standard_deviation(privacy, math.sqrt(2)) ** 2
    if needed > _MOST_OPTED:
        problem = f"needs about {needed:.2g} users that opt in, and at most {_MOST_OPTED:.0e} are accounted for"
        raise InfeasibleError("epsilon", privacy.epsilon, problem, "choose a larger epsilon or delta")
    delta = delta_of_coins(lambda probability: OptInPair(honest, probability), privacy, honest, 1.0)
    return min(1.0, smallest_meeting(delta, privacy.delta, 0.0, min(1.0, 4 / honest), relative=1e-6))


def opting_law(users: int, probability: float) -> tuple[Floats, Floats, Floats, float]:
    """How many opt in, in groups where these numbers vary widely: fewest and most, weights, and the weight left out."""
    return in_groups(users, probability, _LEFT_OUT, 1, many=_MANY, most=_GROUPS)


@lru_cache(maxsize=64)
def cut_mean_squares(users: int, probability: float) -> Floats:
    """E[error^2] for counts 0, 1, ...; the tails that are off take away as silences do, with half of |H| as centre.

    B tails are Bin(users, p/2), and given B the A heads Bin(users - B, p/(2 - p)): |H|/2 - B = (A - B)/2.
    """
    masses = table_of(Binomial(users, probability / 2))
    tails = np.arange(masses.size, dtype=np.float64)
    heads = probability / (2 - probability)
    squares = (users - tails) * heads * (1 - heads) + ((users - tails) * heads - tails) ** 2
    return mean_squares_when_cut(masses, squares / 4)


def cut_bound(users: int, probability: float, bins: int, allowed: float) -> float:
    """All of so many bins are off by at most this, except with the `allowed` probability, whatever their counts.

    With B tails among N coins a count of at most B is answered with 0, and otherwise N/2 - B is the error: at most the
    larger of B and N/2 - B. Bins are independent given N. Where N varies widely it is taken in groups, each as the
    worst of its members (B grows with N).
    """
    fewest, most, weights, outside = opting_law(users, probability)

    def unlikely(a: int) -> bool:
        above = binomial_above(np.full(most.size, float(a)), most, 0.5)
        # N/2 - B > a as often as B - N/2 > a, which B > a covers only in part.
        below = binomial_above(fewest / 2 + a, most, 0.5)
        each = np.minimum(1.0, above + below)
        all_hold = np.exp(bins * np.log1p(-np.minimum(each, 1 - 1e-16)))
        return float(weights @ (1 - all_hold)) + outside <= allowed

    return float(smallest_integer(unlikely, 0))


def opt_in_reports(codes: Codes, cells: int, probability: float, *, bits: RandomBits) -> Reports:
    """Each user's own cell; and, if it opts in, the number of `cells`, which says so, and each cell by a coin."""
    kind = f"u{smallest_width(cells.bit_length()) // 8}"
    opted = np.flatnonzero(bernoulli(probability, codes.size, bits=bits))
    rows = max(1, _BLOCK // cells)
    owners, heads = [], []
    for start in range(0, opted.size, rows):
        here = opted[start : start + rows]
        coins = coin_bits(0.5, here.size * cells, bits=bits).reshape(here.size, cells)
        who, which = np.nonzero(coins)
        owners.append(here[who])
        heads.append(which.astype(kind))
    owner = np.concatenate([np.arange(codes.size), opted, *owners])
    messages = np.concatenate([codes.astype(kind), np.full(opted.size, cells, dtype=kind), *heads])
    order = np.argsort(owner, kind="stable")
    return Reports(messages[order], np.bincount(owner, minlength=codes.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class OptIn(CutPlan):
    """Each user sends its category; a few, at random, say that they opt in and send each category with probability 1/2.

    The adversary sees how many opted in, |H|, and how many messages name each category: the count and Bin(|H|, 1/2).
    More than |H| messages prove a user; otherwise the answer is 0, so that categories nobody has are answered exactly,
    and those that fewer than about |H|/2 have are lost.

    Reference: [004] appendix B.2.1, accounted for on two bins. Who does not opt in sends no bit that says so.

    >>> plan = OptIn.plan(users=100_000, privacy=Privacy(1, 1e-6), categories=1000)
    >>> round(100_000 * plan.probability), round(plan.messages_per_user_mean, 2), plan.messages_per_user_max
    (152, 1.76, 1002)
    """

    method: ClassVar[str] = "opt-in"
    law: ClassVar[str] = "fair-coins"
    curve: ClassVar[str] = "the mean curve over the number of users that opt in"
    dominates_because: ClassVar[str] = (
        "How many opt in does not depend on anybody's category. Given that number and everybody else's category, "
        "the view is the user's message in one of two bins, each with as many fair coins of its own; the others' "
        "bins are noise alone."
    )

    probability: float = noise("(0, 1]")

    @classmethod
    def for_request(cls, request: Request, *, categories: AnyCategories) -> Self:
        """The fewest that need to opt in; the survey names no constant."""
        only_exact(request.constants)
        domain = as_categories(categories)
        probability = smallest_opt_in(request.honest, request.privacy)
        check_messages(1 + probability * (1 + domain.size / 2), domain.size + 2)
        return cls(**request.common, categories=domain, probability=probability)

    @property
    def opted_mean(self) -> float:
        """Users that opt in, on average."""
        return self.users * self.probability

    @property
    def cut_law(self) -> Binomial:
        return Binomial(self.users, self.probability / 2)

    @property
    def mean_squares(self) -> Floats:
        return cut_mean_squares(self.users, self.probability)

    def _l_inf_error(self) -> float:
        return cut_bound(self.users, self.probability, self._noisy_bins, 1 - CONFIDENCE)

    @property
    def messages_per_user_mean(self) -> float:
        return 1 + self.probability * (1 + self.bins / 2)

    @property
    def messages_per_user_max(self) -> int:
        return self.bins + 2

    @property
    def alphabet_size(self) -> int:
        return self.bins + 1

    @property
    def influence(self) -> float:
        return self.messages_per_user_max + self.opted_mean / 2

    @property
    def lying_client(self) -> str:
        return (
            f"moves a bin by its messages, at most {self.messages_per_user_max}, may lift one from 0 over the cut at "
            f"about {self.opted_mean / 2:.3g}, and by saying often that it opts in moves the cut of all"
        )

    def pair(self, honest: int) -> OptInPair:
        return OptInPair(honest, self.probability)

    def _reports(self, codes: Codes, bits: RandomBits) -> Reports:
        return opt_in_reports(codes, self.bins, self.probability, bits=bits)

    def _own(self, seen: Codes) -> Sequence[Codes]:
        return (seen[:-1],)

    def _read(self, seen: Codes) -> Floats:
        return cut_counts(seen[:-1], int(seen[-1]))

    def _noisy(self, summed: Codes, bits: RandomBits) -> Codes:
        opted = int(binomial(self.users, self.probability, 1, bits=bits)[0])
        return np.append(summed + fair_coin_sums(opted, self.bins, bits=bits), opted)


def cut_counts(seen: Codes, opted: int) -> Floats:
    """What is answered: the count less half of those that opted in, or 0 where they could be all of it.

    >>> cut_counts(np.array([3, 4, 5]), 4).tolist()
    [0.0, 0.0, 3.0]
    """
    return np.where(seen > opted, seen - np.float64(opted / 2), 0.0)
