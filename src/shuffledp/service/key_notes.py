"""What a folder of keys says of them: their last days, which were destroyed, and which tasks were created for them."""

from collections.abc import Sequence
from pathlib import Path

from shuffledp.service.expiry import expiries_from
from shuffledp.service.keys import (
    CREATED,
    HOP_PUBLIC,
    PUBLIC,
    RETIRED,
    VERSION,
    WITH_EXPIRY,
    key_document,
    key_file,
)


def load_expiries(keys: Path | None, hops: Sequence[Path] = ()) -> dict[str, str]:
    """The last days of those public halves that have one, by their texts: an analyzer's, and hops'.

    Args:
        keys: an analyzer's folder, or its public half's file; None where it is not asked for.
        hops: folders of hops, or their public halves' files.

    Raises:
        DataError: a last day is no date.
    """
    files = [*([] if keys is None else [key_file(keys, PUBLIC)]), *(key_file(each, HOP_PUBLIC) for each in hops)]
    found: dict[str, str] = {}
    for file in files:
        document = key_document(file, VERSION, WITH_EXPIRY)
        if "expires" in document:
            found |= expiries_from({document["public_key"]: document["expires"]}, [document["public_key"]])
    return found


def retired_keys(folder: Path) -> dict[str, str]:
    """Keys that were destroyed, by their public halves' texts, with the day."""
    return _listed(folder / RETIRED, "keys")


def created_tasks(folder: Path) -> dict[str, str]:
    """Tasks and campaigns that were created with a folder, by their ids, with the public half that each names."""
    return _listed(folder / CREATED, "tasks")


def _listed(file: Path, name: str) -> dict[str, str]:
    if not file.exists():
        return {}
    found = key_document(file).get(name)
    return dict(found) if isinstance(found, dict) else {}
