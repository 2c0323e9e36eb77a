"""What a search finds: strings with their counts, and how far off a group that is drawn at random can put them."""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from shuffledp.accounting.curves import smallest_real
from shuffledp.estimates import NamedEstimate
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.presentation import Presentation, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitter:
    """A frequent string: its count among all users, and how far off noise and sampling can put it.

    lower..upper holds for all strings at once, chosen as they are, with `confidence`: noise may fail in 2.5% of runs,
    sampling in 2.5%. An ellipsis ends a string that was cut.

    Attributes:
        string: as people have it; an ellipsis ends one that was cut.
        count: about how many users have it.
        lower: not fewer, with `confidence`.
        upper: not more, with `confidence`.
        noise_bound: the part of the interval that is due to noise.
        sampling_bound: the part that is due to who was asked.
        confidence: the probability with which all intervals hold.
    """

    string: str
    count: float
    lower: float
    upper: float
    noise_bound: float
    sampling_bound: float
    confidence: float = CONFIDENCE

    @classmethod
    def among_all(
        cls, string: str, counted: float, bound: float, group: int, users: int, failure: float
    ) -> "HeavyHitter":
        """A string that a group of so many users counted, off by at most the bound, among all users.

        Args:
            string: its name.
            counted: the estimate of how many of the group have it.
            bound: what the noise puts the estimate off by, at most.
            group: users in the group, drawn at random from all.
            users: all users.
            failure: how often drawing the group may put the interval wrong.
        """
        low, high = max(0.0, counted - bound) / group, min(float(group), counted + bound) / group
        lower, upper, scale = low, high, users / group
        if group < users:
            lower, upper = sampled_shares(low, group, failure)[0], sampled_shares(high, group, failure)[1]
        return cls(
            string=string,
            count=counted * scale,
            lower=min(lower * users, counted * scale),
            upper=max(upper * users, counted * scale),
            noise_bound=bound * scale,
            sampling_bound=users * max(low - lower, upper - high),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundStrings(NamedEstimate):
    """The frequent strings that were found, most frequent first, with their counts among all users.

    Attributes:
        found: the strings, most frequent first.
    """

    found: tuple[HeavyHitter, ...] = ()

    def __str__(self) -> str:
        found = ", ".join(
            f"{each.string!r} {each.count:,.0f} ({each.lower:,.0f}..{each.upper:,.0f})" for each in self.found
        )
        seeded = "; a simulation: seeded bits protect nobody" if self.simulated else ""
        return f"{found or 'no string is frequent enough'}; all with {self.confidence:.0%} confidence{seeded}"


def present_found(estimate: FoundStrings, truth: Any) -> Presentation:
    """The strings that were found, each with its interval, and those that were missed where the truth is given."""
    rows = [
        (
            repr(each.string),
            f"{each.count:,.0f}",
            f"{each.lower:,.0f} .. {each.upper:,.0f}",
            f"±{each.noise_bound:,.0f}",
            f"±{each.sampling_bound:,.0f}",
        )
        for each in estimate.found
    ]
    facts = [("found", f"{len(rows)} strings")]
    if truth is not None:
        missed = [name for name in truth if name not in estimate.names]
        facts.append(("missed", f"{', '.join(missed) or 'none'} of the true top {len(truth)}"))
    listing = listed("Frequent strings", ("string", "count", "interval", "noise", "sampling"), rows)
    columns = {
        field.name: np.array([getattr(each, field.name) for each in estimate.found]) for field in fields(HeavyHitter)
    }
    return Presentation(tuple(facts), (listing,), columns=columns)


def sampled_shares(share: float, group: int, failure: float) -> tuple[float, float]:
    """Shares of all users that a share of a random group can come from.

    Chernoff's bound in its sharpest form; it holds for groups drawn without replacement, too (Hoeffding 1963).
    """
    needed = math.log(2 / failure) / group

    def far(p: float) -> bool:
        return _divergence(share, min(max(p, 1e-300), 1 - 1e-16)) >= needed

    upper = share + smallest_real(lambda d: share + d >= 1 or far(share + d), 0.0, 1e-6, relative=1e-6)
    lower = share - smallest_real(lambda d: share - d <= 0 or far(share - d), 0.0, 1e-6, relative=1e-6)
    return max(0.0, lower), min(1.0, upper)


def _divergence(share: float, p: float) -> float:
    """The divergence of a coin with this share of heads from one with probability p."""
    one = share * math.log(share / p) if share > 0 else 0.0
    other = (1 - share) * math.log((1 - share) / (1 - p)) if share < 1 else 0.0
    return one + other
