"""What is asked of a plan, whatever it counts: how many users, how private, and within which limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from shuffledp.accounting.dropouts import check_honest_fraction, honest_users
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy, as_privacy
from shuffledp.protocols.fields import Constants

LARGEST_USERS = 10**12
_NOT_YET = object()


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


class Remembering:
    """Room for what is computed once for each plan; it is no field, so that a changed copy begins without it."""

    __slots__ = ("_batch", "_distance_per_batch", "_fingerprint", "_slot_users")


if TYPE_CHECKING:
    once = property
else:

    def once(compute: Callable[[Any], Any]) -> property:
        """A property that is computed once for each plan: plans are frozen. `Remembering` has a slot of its name."""
        slot = f"_{compute.__name__}"

        def remembered(plan: Any) -> Any:
            found = getattr(plan, slot, _NOT_YET)
            if found is _NOT_YET:
                found = compute(plan)
                object.__setattr__(plan, slot, found)
            return found

        return property(remembered, doc=compute.__doc__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Common(Remembering):
    """What every plan has, and every request for one.

    Attributes:
        users: how many people report.
        privacy: the (epsilon, delta) that is claimed or must hold.
        honest_fraction: the users assumed to follow the protocol, in every batch.
        constants: exact noise, or the paper's own for comparison.
    """

    users: int
    privacy: Privacy
    honest_fraction: float = 1.0
    constants: Constants = "exact"

    def __post_init__(self) -> None:
        object.__setattr__(self, "privacy", as_privacy(self.privacy))
        check_users(self.users)
        check_honest_fraction(self.honest_fraction)
        check_constants(self.constants)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Why the promise protects people less than they may expect, a sentence each; see `Privacy.cautions`."""
        return self.privacy.cautions(self.users)

    def cautioned(self, title: str) -> str:
        """A picture's title, with a second line where the promise is weak."""
        brief = self.privacy.brief_caution(self.users)
        return f"{title}\n{brief}" if brief else title

    @property
    def common(self) -> dict[str, Any]:
        """These fields, by their names."""
        return {field.name: getattr(self, field.name) for field in fields(Common)}

    @property
    def honest_users(self) -> int:
        """The users assumed to follow the protocol, in every batch."""
        return honest_users(self.users, self.honest_fraction)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Common):
    """What every method is asked for, beside what every plan has.

    Attributes:
        max_messages: messages that a user may send at most; None for no limit.
        live: whether the plan is for the live service, which takes none that one client can spoil for everybody.

    >>> request = Request(users=1000, privacy=Privacy(1, 1e-6), honest_fraction=0.9)
    >>> request.honest, sorted(request.common)
    (900, ['constants', 'honest_fraction', 'privacy', 'users'])
    """

    max_messages: int | None = None
    live: bool = False

    def __post_init__(self) -> None:
        Common.__post_init__(self)
        if self.max_messages is not None and self.max_messages < 1:
            raise ParameterError("max_messages", self.max_messages, "must be >= 1", "leave it out for no limit")

    @property
    def honest(self) -> int:
        """The users assumed to follow the protocol."""
        return self.honest_users

    @classmethod
    def split(cls, asked: Mapping[str, Any]) -> tuple[Self, dict[str, Any]]:
        """The request among these arguments, and the others, which say what values there are."""
        names = {field.name for field in fields(cls)}
        request = cls(**{name: value for name, value in asked.items() if name in names})
        return request, {name: value for name, value in asked.items() if name not in names}
