"""The histogram that a level of a search runs, and how far off it can be."""

from functools import lru_cache

from shuffledp.privacy import Privacy
from shuffledp.protocols.family import CATEGORIES, Family, worst_number
from shuffledp.protocols.histogram.blanket import BlanketPlan
from shuffledp.protocols.histogram.buckets import Buckets
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.protocols.request import Request

# Messages that a user sends at most where no limit is given.
_MOST_MESSAGES = 32
_FEW_MESSAGES: Family[BlanketPlan] = Family.of(
    "histogram", "Histograms of few messages.", Decoys, Buckets, domain=(CATEGORIES,), error=worst_number
)


def few_messages(max_messages: int | None) -> int:
    """Messages that a user sends at most: as many as are asked for, or a few."""
    return _MOST_MESSAGES if max_messages is None else max_messages


@lru_cache(maxsize=256)
def level_histogram(
    users: int, privacy: Privacy, categories: int, honest_fraction: float, max_messages: int | None
) -> BlanketPlan:
    """By the methods that send few messages whatever happens: a search asks for many histograms, one after another."""
    request = Request(
        users=users, privacy=privacy, honest_fraction=honest_fraction, max_messages=few_messages(max_messages)
    )
    return _FEW_MESSAGES.choice(request, categories=categories).plan


@lru_cache(maxsize=256)
def level_bound(level: BlanketPlan, failure: float) -> float:
    """All estimates of the level are off by at most this but with this probability; remembered once it is known."""
    return level.bound_at(failure)
