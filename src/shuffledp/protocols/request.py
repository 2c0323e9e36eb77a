"""What is asked of a plan, whatever it counts: how many users, how private, and within which limits."""

from dataclasses import dataclass
from typing import Any

from shuffledp.accounting.dropouts import check_honest_fraction, honest_users
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.fields import Constants

LARGEST_USERS = 10**12


def check_users(users: Any) -> int:
    """The number of users as an int >= 1."""
    if isinstance(users, bool) or not isinstance(users, int) or users < 1:
        raise ParameterError("users", users, "must be a whole number >= 1", "count the people who will report")
    if users > LARGEST_USERS:
        raise ParameterError("users", users, f"must be <= {LARGEST_USERS:.0e}", "plan smaller batches")
    return users


def check_constants(constants: Any) -> None:
    """Refuse what is neither ours nor the papers'."""
    if constants not in ("exact", "paper"):
        raise ParameterError("constants", constants, "must be exact or paper", "exact is the default")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What every method is asked for.

    Attributes:
        users: how many people report.
        privacy: the (epsilon, delta) that must hold.
        honest_fraction: the users assumed to follow the protocol, in every batch.
        constants: exact noise, or the paper's own for comparison.
        max_messages: messages that a user may send at most; None for no limit.

    >>> request = Request(users=1000, privacy=Privacy(1, 1e-6), honest_fraction=0.9)
    >>> request.honest, sorted(request.common)
    (900, ['constants', 'honest_fraction', 'privacy', 'users'])
    """

    users: int
    privacy: Privacy
    honest_fraction: float = 1.0
    constants: Constants = "exact"
    max_messages: int | None = None

    def __post_init__(self) -> None:
        check_users(self.users)
        check_honest_fraction(self.honest_fraction)
        check_constants(self.constants)
        if self.max_messages is not None and self.max_messages < 1:
            raise ParameterError("max_messages", self.max_messages, "must be >= 1", "leave it out for no limit")

    @property
    def honest(self) -> int:
        """The users assumed to follow the protocol."""
        return honest_users(self.users, self.honest_fraction)

    @property
    def common(self) -> dict[str, Any]:
        """The fields that every plan has."""
        names = ("users", "privacy", "honest_fraction", "constants")
        return {name: getattr(self, name) for name in names}
