"""Addresses of stores as they may be shown."""

import re

_HIDDEN = re.compile(r"(//[^/@:]*:)[^@]*@|((?:^|[?&])password=)[^&]*")


def without_password(address: str) -> str:
    """An address as it may be shown.

    >>> without_password("postgresql://me:secret@here/db?password=x&batch_keys=keys")
    'postgresql://me:...@here/db?password=...&batch_keys=keys'
    """
    return _HIDDEN.sub(lambda found: f"{found[1]}...@" if found[1] else f"{found[2]}...", address)
