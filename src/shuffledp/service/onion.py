"""The layers of a cascade: a message is sealed for the analyzer, then for the last hop, and so on to hop 1.

Whoever holds one hop's key sees what comes to that hop and what leaves it, and neither is what any other hop sees.
"""

from collections.abc import Sequence
from typing import Any

from shuffledp.errors import ParameterError
from shuffledp.service.crypto import PublicKey, binding
from shuffledp.service.hops import LEAST_HOPS, MOST_HOPS, key_texts

ONE_SHUFFLER: tuple[PublicKey, ...] = ()
"""The hops of a task that is no cascade: one shuffler, which takes nothing off."""


def check_hops(hops: Sequence[PublicKey], analyzer: PublicKey) -> tuple[PublicKey, ...]:
    """The keys of a cascade's hops in their order, or none for a single shuffler.

    Args:
        hops: the keys, first hop first.
        analyzer: the analyzer's own key.

    Raises:
        ParameterError: there are too few or too many, or two of the parties have the same key.
    """
    if hops and not LEAST_HOPS <= len(hops) <= MOST_HOPS:
        problem = f"must be {LEAST_HOPS} or {MOST_HOPS} in a cascade"
        raise ParameterError("hop", f"given {len(hops)} times", problem, "leave it out for one shuffler")
    if len({analyzer, *hops}) <= len(hops):
        problem = "must differ from the analyzer's and from every other hop's"
        raise ParameterError("hop", "a key that is given twice", problem, "make keys for each with `shuffledp keys`")
    return tuple(hops)


def hops_document(hops: Sequence[PublicKey]) -> list[dict[str, Any]]:
    """The hops as JSON: their numbers and keys.

    >>> key = PublicKey(bytes(32))
    >>> hops_from(hops_document([key, key])) == (key, key)
    True
    """
    return [{"hop": number, "public_key": key.text} for number, key in enumerate(hops, 1)]


def hops_from(document: Any) -> tuple[PublicKey, ...]:
    """The keys of hops that a JSON document lists."""
    return tuple(map(PublicKey.from_text, key_texts(document)))


def wrap(
    messages: list[bytes], analyzer: PublicKey, hops: Sequence[PublicKey], task_id: str, batch_id: str
) -> list[bytes]:
    """Each message sealed for the analyzer and then for every hop, the first hop's layer outermost.

    Args:
        messages: all of one length.
        analyzer: whom the innermost layer is for.
        hops: whom the layers around it are for, first hop first; none for one shuffler.
        task_id: bound into every layer.
        batch_id: bound into every layer, with the number of its hop; the analyzer's is 0.

    >>> from shuffledp.service.crypto import PrivateKey
    >>> analyzer, first, second = (PrivateKey.generate() for _ in range(3))
    >>> [sealed] = wrap([b"a message"], analyzer.public, [first.public, second.public], "t", "1.0.1")
    >>> len(sealed) == len(b"a message") + 3 * 48
    True
    """
    return add_layers(analyzer.seal(messages, binding(task_id, batch_id)), hops, task_id, batch_id)


def add_layers(sealed: list[bytes], hops: Sequence[PublicKey], task_id: str, batch_id: str) -> list[bytes]:
    """What the analyzer can open, sealed for every hop as well, the first hop's layer outermost.

    Args:
        sealed: ciphertexts of one length.
        hops: whom the layers are for, first hop first.
        task_id: bound into every layer.
        batch_id: bound into every layer, with the number of its hop.
    """
    for number in range(len(hops), 0, -1):
        sealed = hops[number - 1].seal(sealed, binding(task_id, batch_id, number))
    return sealed
