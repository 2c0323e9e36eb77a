"""What tokens say about how many people of a batch are honest, which is what a plan's guarantee counts on."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from shuffledp.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenShare:
    """How many tokens one party may hold before a batch has fewer honest people than its plan counts on.

    Whoever holds m tokens fills m seats at most, of all batches together; it may come when it likes, so all m may be in
    one batch. How many tokens there are does not make that number larger: it says how large a part of them it is.

    Attributes:
        tokens: how many were issued, one a person.
        users: how many people the task needs.
        batch: the users of its smallest batch.
        honest_fraction: what the plan counts on in every batch.

    >>> share = TokenShare(tokens=20_000, users=10_000, batch=1_000, honest_fraction=0.9)
    >>> share.honest_least, share.attacker_most, share.attacker_share
    (900, 100, 0.005)
    """

    tokens: int
    users: int
    batch: int
    honest_fraction: float

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ParameterError("tokens", self.tokens, "must be 1 or more", "say how many people the issuer signs for")

    @property
    def honest_least(self) -> int:
        """So many people of a batch follow the protocol where the guarantee holds."""
        # Rounded up, but for what a product of floats is too large by.
        return min(self.batch, math.ceil(self.honest_fraction * self.batch * (1 - 1e-12)))

    @property
    def attacker_most(self) -> int:
        """So many tokens are harmless in one hand."""
        return self.batch - self.honest_least

    @property
    def attacker_share(self) -> float:
        """What part of all tokens that is; more than 1 where all of them are harmless."""
        return self.attacker_most / self.tokens

    @property
    def fills(self) -> bool:
        """Whether there are tokens for all people that the task needs."""
        return self.tokens >= self.users

    def document(self) -> dict[str, Any]:
        """As JSON."""
        more = {name: getattr(self, name) for name in ("honest_least", "attacker_most", "attacker_share", "fills")}
        return {**asdict(self), **more}
