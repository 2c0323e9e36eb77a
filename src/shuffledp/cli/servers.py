"""Questions to a server that is running, and what one is let in with."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.dashboard.fills import FillWatch
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


def token_for(role: str, keys: Path, file: Path | None) -> str:
    """What a server is let in with at another one.

    Args:
        role: as what it comes.
        keys: its own folder, whose token is taken where no file is given: both then have one tokens.json.
        file: the other server's token.
    """
    from shuffledp.cli.foreign_keys import check_roles
    from shuffledp.service.keys import load_token, load_tokens

    if file is not None:
        return load_token(file)
    tokens = load_tokens(keys)
    check_roles(keys, tokens, role)
    return tokens.secrets[role]


def fill_watch(url: str | None, keys: Path, file: Path | None = None) -> "FillWatch | None":
    """What asks a shuffler how full its batches are.

    Args:
        url: the shuffler's address, or the first hop's; None if nobody is to be asked.
        keys: the folder whose token for read it knows, where no file is given.
        file: the shuffler's token for read.
    """
    from shuffledp.dashboard.fills import FillWatch, shuffler_at
    from shuffledp.service.tokens import READ

    if url is not None:
        return FillWatch(shuffler_at(url, token_for(READ, keys, file)))
    if file is not None:
        raise ParameterError("fill-token", file, "must come with the shuffler's address", "add --fill-from")
    return None
