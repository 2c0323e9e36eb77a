"""What any of a cascade's parties learn together: by looking only, and where a hop replaces messages.

The parties are the network, the hops, the analyzer, and a share of the users. Everything is computed from who holds
which key and from the plan's accountant:

- A message's content is sealed for the analyzer: without it nobody learns anything about a value.
- Whoever sees reports come, the network or hop 1, learns who takes part.
- A message can be followed through a hop by that hop only: with one honest hop the analyzer sees a batch's messages in
  an order that is uniform given all that came before, and the plan's (epsilon, delta) holds.
- All hops and the analyzer together see whose messages are whose: what is left is what a user's own messages satisfy.

A hop that replaces messages keeps the count, and nobody after it can tell: what is replaced does not hide anybody any
more. Each replaced message was at worst another honest person's, and then the accountant is asked with so many honest
users fewer.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from shuffledp.accounting.dropouts import honest_users
from shuffledp.protocols.plan import Plan

NETWORK, ANALYZER = "network", "analyzer"
COUNTS, WHO, PERMUTED, BOTH, ALL = "counts", "who takes part", "permuted", "permuted, who takes part", "all"
KINDS = (COUNTS, WHO, PERMUTED, BOTH, ALL)
"""What can be learned, least first."""

_WORDS = {
    COUNTS: "how many take part, and ciphertexts that others open",
    WHO: "who takes part and when; not a word of what they say",
    PERMUTED: "the messages of full batches in random order",
    BOTH: "the messages of full batches in random order, and who takes part",
    ALL: "whose messages are whose",
}

_OTHERS, _TOO_LITTLE = "the other users' noise is left", "too little is left to say anything at this delta"

# Shares of the people of a batch, beside the plan's own: as plans list what colluding users reveal.
_SHARES = (0.1, 0.5, 2 / 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coalition:
    """Some parties, and what they learn together.

    Attributes:
        parties: the network, hops by their numbers, and the analyzer.
        users: the share of the users who tell them all they know.
        learns: one of `KINDS`.
        epsilon: what protects everybody else; None where nothing does.
        delta: with it.
        in_words: what they learn.
    """

    parties: tuple[str, ...]
    users: float
    learns: str
    epsilon: float | None
    delta: float | None
    in_words: str

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def hop_name(number: int) -> str:
    """What a hop is called."""
    return f"hop {number}"


def parties_of(hops: int) -> tuple[str, ...]:
    """All parties beside users, in the order in which a message passes them."""
    return (NETWORK, *(hop_name(number) for number in range(1, hops + 1)), ANALYZER)


def learned(parties: frozenset[str], hops: int) -> str:
    """What parties that only look learn together, by who holds which key.

    >>> learned(frozenset({"hop 2", "analyzer"}), 2), learned(frozenset({"hop 1", "hop 2", "analyzer"}), 2)
    ('permuted', 'all')
    """
    sees_senders = not parties.isdisjoint((NETWORK, hop_name(1)))
    if ANALYZER not in parties:
        return WHO if sees_senders else COUNTS
    # A message is followed from its sender to its content only by whoever takes every layer off.
    if parties.issuperset(map(hop_name, range(1, hops + 1))):
        return ALL
    return BOTH if sees_senders else PERMUTED


def looking(plan: Plan, hops: int) -> list[Coalition]:
    """What every set of parties learns that only look; with shares of the users where these make a difference.

    Without the analyzer users know nothing but their own messages, and with all hops nothing is left to hide.

    Args:
        plan: what people report by.
        hops: how many there are.
    """
    everybody = parties_of(hops)
    # Whoever sees messages without their senders has to do with the same accountant: it is asked once a share.
    left = {users: _epsilon(plan, users) for users in (0.0, *_SHARES)}
    return [
        _coalition(plan, some, learned(frozenset(some), hops), users, left[users])
        for count in range(1, len(everybody) + 1)
        for some in combinations(everybody, count)
        for users in (0.0, *(_SHARES if learned(frozenset(some), hops) in (PERMUTED, BOTH) else ()))
    ]


def _coalition(
    plan: Plan, parties: tuple[str, ...], learns: str, users: float, left: tuple[float | None, float | None]
) -> Coalition:
    epsilon, delta = left
    words = _WORDS[learns]
    if users:
        words += f"; {_TOO_LITTLE if epsilon is None else _OTHERS}"
    if learns in (COUNTS, WHO):
        epsilon, delta = 0.0, 0.0
    elif learns == ALL:
        epsilon, delta = plan.local_epsilon, plan.local_delta
        words += ": " + ("nothing protects a user" if epsilon is None else "a user's own randomness is left")
    return Coalition(parties=parties, users=users, learns=learns, epsilon=epsilon, delta=delta, in_words=words)


def _epsilon(plan: Plan, lost: float) -> tuple[float | None, float | None]:
    """What is left where this share of a batch's people hides nobody, beside those the plan does not count on."""
    if lost == 0:
        return plan.privacy.epsilon, plan.privacy.delta
    left = plan.honest_fraction - lost
    epsilon = plan.epsilon_with(left) if left > 0 else math.inf
    # Nobody learns less together than the analyzer alone.
    return (max(epsilon, plan.privacy.epsilon), plan.privacy.delta) if math.isfinite(epsilon) else (None, None)


def telling(coalitions: list[Coalition]) -> Iterator[Coalition]:
    """The sets that say most, of those without users that learn the same.

    That are the ones that no larger of them holds, as smaller ones learn no more; and of those that learn all, the ones
    that hold no smaller, as none of them may be missing.
    """
    for each in coalitions:
        own = set(each.parties)
        alike = [set(other.parties) for other in coalitions if other.learns == each.learns and not other.users]
        beaten = any(other < own for other in alike) if each.learns == ALL else any(own < other for other in alike)
        if not each.users and not beaten:
            yield each


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacing:
    """What the analyzer learns together with a hop that replaces messages by its own and keeps their number.

    Attributes:
        replaced: how many messages of the smallest batch, at least, it has to replace to reach so many people.
        messages: how many the batch has.
        honest_fraction: the share of the batch's people who still hide each other, at worst.
        epsilon: what is left; None where nothing is.
        delta: with it.
        in_words: what it means.
    """

    replaced: int
    messages: int
    honest_fraction: float
    epsilon: float | None
    delta: float | None
    in_words: str

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def replacing(plan: Plan, replaced: int) -> Replacing:
    """What is left of a plan when a hop that colludes with the analyzer replaces so many messages of a batch.

    Args:
        plan: what people report by.
        replaced: messages of the smallest batch, which nobody notices as their number stays.

    >>> from shuffledp import BinarySum, Privacy
    >>> plan = BinarySum.plan(users=1000, privacy=Privacy(1, 1e-6), method="coins")
    >>> [replacing(plan, count).honest_fraction for count in (0, 100, 999)]
    [1.0, 0.9, 0.001]
    """
    size = min(plan.layout.messages)
    messages = size * plan.layout.messages[size]
    # At worst each was of another honest user, whose other messages are then counted as known, too.
    honest = max(0, honest_users(size, plan.honest_fraction) - replaced)
    fraction = honest / size
    if honest <= 1:
        epsilon, delta = plan.local_epsilon, plan.local_delta
        words = "nobody hides a person: hop 1 can leave one's messages alone with its own, for the analyzer to read"
    else:
        epsilon, delta = _epsilon(plan, plan.honest_fraction - fraction)
        words = f"{honest:,} of {size:,} people hide each other, at worst"
        words += f": {_TOO_LITTLE}" if epsilon is None else ""
    return Replacing(
        replaced=replaced, messages=messages, honest_fraction=fraction, epsilon=epsilon, delta=delta, in_words=words
    )


def replacing_some(plan: Plan) -> list[Replacing]:
    """What is left when none, some shares and all but one of the smallest batch's people are replaced."""
    size = min(plan.layout.messages)
    honest = honest_users(size, plan.honest_fraction)
    counts = sorted({0, *(math.floor(share * honest) for share in _SHARES), honest - 1})
    return [replacing(plan, count) for count in counts]
