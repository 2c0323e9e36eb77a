"""The address of a store in PostgreSQL: what libpq takes, and three parameters of our own."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from shuffledp.errors import ParameterError
from shuffledp.service.addresses import is_loopback
from shuffledp.service.store.passwords import without_password

CLAIM_SECONDS = 60.0
_SAMPLE = "write postgresql://USER@HOST:PORT/DATABASE?batch_keys=FOLDER"
_ENCRYPTED = ("require", "verify-ca", "verify-full")


@dataclass(frozen=True)
class DatabaseAddress:
    """Where a store is, and where the keys are that its bodies are encrypted with.

    >>> DatabaseAddress.parse("me@localhost/db?batch_keys=keys&schema=shuffler").batch_keys.name
    'keys'
    """

    shown: str
    batch_keys: Path
    schema: str | None = None
    claim_seconds: float = CLAIM_SECONDS
    # Holds the password: never shown.
    conninfo: str = field(default="", repr=False)

    @classmethod
    def parse(cls, rest: str) -> "DatabaseAddress":
        """The address behind `postgresql://`, or a sentence."""
        shown = without_password(f"postgresql://{rest}")
        try:
            parts = urlsplit(f"postgresql://{rest}")
            given = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
            hosts = [unquote(host.rpartition("@")[2].partition(":")[0]) for host in parts.netloc.split(",")]
        except ValueError:
            raise ParameterError("store", shown, "must be an address", _SAMPLE) from None
        if "[" in parts.netloc:
            hosts = [parts.hostname or ""]
        folder, schema = given.pop("batch_keys", ""), given.pop("schema", None)
        if not folder:
            way_out = "add ?batch_keys=FOLDER, on another disk than the database's: without it what is deleted stays"
            raise ParameterError("store", shown, "must say where the keys of its batches are kept", way_out)
        if schema is not None and re.fullmatch("[a-z_][a-z0-9_]{0,62}", schema) is None:
            raise ParameterError("schema", schema, "must be small letters, digits and _", "choose another name")
        try:
            seconds = float(given.pop("claim_seconds", CLAIM_SECONDS))
        except ValueError:
            seconds = 0.0
        if not 0.1 <= seconds <= 3600:
            raise ParameterError("claim_seconds", shown, "must lie in 0.1..3600", "60 is a common choice")
        for host in [*hosts, *given.get("host", "").split(","), *given.get("hostaddr", "").split(",")]:
            if host and not host.startswith("/") and not is_loopback(host):
                # Whoever sees rows pass sees in which order they came.
                mode = given.setdefault("sslmode", "require")
                if mode not in _ENCRYPTED:
                    way_out = "leave sslmode out, or write sslmode=verify-full"
                    raise ParameterError("sslmode", mode, "must encrypt unless the host is this machine", way_out)
        query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in given.items())
        conninfo = f"postgresql://{parts.netloc}{parts.path}{'?' if query else ''}{query}"
        return cls(shown, Path(folder), schema, seconds, conninfo)
