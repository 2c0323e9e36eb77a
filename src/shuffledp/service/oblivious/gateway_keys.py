"""A gateway's keys in a folder of keys: made, rotated with an overlap, retired.

They are the shuffler's, and no task names them: clients that have an older one are answered until it is retired. What
clients are given, `gateway.ohttp-keys`, has the current key only.
"""

from pathlib import Path

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.keys import GATEWAY, GATEWAY_CONFIGS
from shuffledp.service.oblivious.encapsulation import GatewayKey, check_installed
from shuffledp.service.oblivious.gateway import Gateway
from shuffledp.service.oblivious.key_config import KeyConfig, encode_configs
from shuffledp.service.rotation import Retired, alone, check_whole, make_current, put_file, retire_keys

# Numbers have one byte, and a new key's must be new.
_MOST_KEYS = 100


def make_gateway_key(folder: Path) -> KeyConfig:
    """A gateway's first key, in a folder of keys that has none.

    Args:
        folder: of the shuffler: with `tokens.json`.

    Returns:
        What clients are given.

    Raises:
        ParameterError: it has one, or another process changes the folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     first, second = make_gateway_key(Path(place)), rotate_gateway_key(Path(place))
    ...     [key.config == each for key, each in zip(gateway_keys(Path(place)), (second, first))]
    [True, True]
    """
    with alone(folder):
        # A key without its public half was never given to anybody: whoever made it was killed.
        if (folder / GATEWAY.public).exists():
            way_out = "make a new one current with `shuffledp keys rotate FOLDER --gateway`"
            raise ParameterError("folder", str(folder), "must have no gateway's key", way_out)
        return _renewed(folder)


def rotate_gateway_key(folder: Path) -> KeyConfig:
    """Make a new key current; the older ones are taken until they are retired.

    Returns:
        What clients are given from now on.
    """
    with alone(folder):
        check_whole(folder, GATEWAY)
        return _renewed(folder)


def retire_gateway_keys(folder: Path) -> Retired:
    """Destroy older keys: clients that have not got the current one are refused, and what they sent waits there."""
    return retire_keys(folder, {}, kinds=(GATEWAY,))


def has_gateway_key(folder: Path) -> bool:
    """Whether a shuffler with this folder is a gateway."""
    return folder.is_dir() and bool(GATEWAY.files(folder))


def gateway_keys(folder: Path) -> tuple[GatewayKey, ...]:
    """All that a gateway opens requests with, the current one first; refused if others may read them."""
    check_installed("keys", str(folder))
    return tuple(GatewayKey.of(private) for private in GATEWAY.ring(folder))


def gateway_of(folder: Path) -> Gateway | None:
    """The gateway of a folder; None if it has no gateway's key."""
    return Gateway(gateway_keys(folder), bits=RandomBits.secure()) if has_gateway_key(folder) else None


def _renewed(folder: Path) -> KeyConfig:
    known = {KeyConfig.of(key.public).key_id for key in (GATEWAY.ring(folder) if GATEWAY.files(folder) else ())}
    if len(known) >= _MOST_KEYS:
        way_out = "retire older ones first with `shuffledp keys retire FOLDER --gateway`"
        raise ParameterError("folder", str(folder), f"must have fewer than {_MOST_KEYS} gateway's keys", way_out)
    new = PrivateKey.generate()
    while KeyConfig.of(new.public).key_id in known:
        new = PrivateKey.generate()
    make_current(folder, GATEWAY, new)
    config = KeyConfig.of(new.public)
    put_file(folder / GATEWAY_CONFIGS, encode_configs([config]), mode=0o644)
    return config
