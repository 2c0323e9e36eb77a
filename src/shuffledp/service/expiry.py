"""Keys that expire: after their last day nobody creates a task for them or seals a report to them.

What was sealed before is sent, mixed and opened as ever, until the key is retired: nothing is lost. Days are UTC's.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from shuffledp.errors import DataError, ParameterError

EXPIRING_VERSION = 3
"""The version of a task or a campaign with a key that expires: older programs would seal after the day."""

Expiries = Mapping[str, str]
"""The last days of keys that expire, as YYYY-MM-DD, by the texts of the keys; others never do."""

NEVER: Expiries = {}
_MOST_DAYS = 100 * 366


def today() -> date:
    """The day now, in UTC."""
    return datetime.now(UTC).date()


def last_day(asked: str) -> str:
    """The last day of a key that is made now, from what was asked for: a date, or a number of days from today.

    Raises:
        ParameterError: it is neither, or a day that is over.

    >>> last_day("2999-12-31"), last_day("0") == today().isoformat()
    ('2999-12-31', True)
    """
    way_out = "give the last day as YYYY-MM-DD, or how many days from today"
    if asked.isascii() and asked.isdecimal() and len(asked) < 8 and int(asked) <= _MOST_DAYS:
        return (today() + timedelta(days=int(asked))).isoformat()
    day = _day(asked)
    if day is None:
        raise ParameterError("expires", asked, "must be a date or a number of days", way_out)
    if day < today():
        raise ParameterError("expires", asked, f"must not be over today, {today()}", way_out)
    return asked


def check_not_expired(expires: Expiries) -> None:
    """Refuse to use keys after their last day.

    Raises:
        ParameterError: the day of one of them is over.
    """
    for key, day in expires.items():
        if (_day(day) or date.min) < today():
            problem = f"must not have expired, and its last day was {day}"
            way_out = "make a new key with `shuffledp keys rotate`, of a hop with `shuffledp keys FOLDER --hop`"
            raise ParameterError("public_key", key, problem, f"{way_out}, and create the task again for it")


def expiries_from(document: Any, keys: Iterable[str]) -> Expiries:
    """The last days that a task's or a campaign's document says.

    Args:
        document: what it has under "expires"; None where it has nothing.
        keys: the texts of its keys.

    Raises:
        DataError: it is something else, or of other keys.
    """
    if document is None:
        return NEVER
    own = set(keys)
    fits = isinstance(document, Mapping) and document and set(document) <= own
    if not fits or not all(isinstance(day, str) and _day(day) for day in document.values()):
        raise DataError("expires", type(document).__name__, "must be last days of its keys", "create it again")
    return dict(document)


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.isoformat() == text else None
