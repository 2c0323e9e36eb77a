"""Questions to a server that is running."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shuffledp.service.client.calls import Calls


@contextmanager
def calls_to(url: str, role: str, token: str | None, patience: float = 5.0) -> "Iterator[Calls]":
    """A server that may be asked as long as the block lasts.

    Args:
        url: its address, which must be this machine's or one with TLS.
        role: what it is: shuffler or analyzer.
        token: lets the caller in; None for what anybody may ask.
        patience: seconds to try again for.
    """
    import httpx

    from shuffledp.randomness import RandomBits
    from shuffledp.service.client.calls import TIMEOUT, Calls, check_url

    with httpx.Client(timeout=TIMEOUT) as http:
        yield Calls(check_url(url, role), token, http, RandomBits.secure(), patience)
