"""A gateway (RFC 9458): opens what relays bring, has it answered, and seals the answer. It knows no network.

What can be wrong before a request is open is refused in the clear. After that everything, refusals too, is sealed, and
padded to one length: a relay sees that there was an answer.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from shuffledp.errors import DataError
from shuffledp.randomness import RandomBits
from shuffledp.service.oblivious.binary_http import InnerRequest, InnerResponse
from shuffledp.service.oblivious.encapsulation import GatewayKey
from shuffledp.service.oblivious.key_config import encode_configs
from shuffledp.service.oblivious.padding import HEADER_BYTES, REQUEST_OVERHEAD, answer_length
from shuffledp.service.problems import BAD_REQUEST, GATEWAY_KEY, NOT_SEALED, TOO_EARLY, RefusedError

Inside = Callable[[InnerRequest], Awaitable[InnerResponse]]
"""What answers a request that was inside; it raises RefusedError for what it does not answer."""
Refusing = Callable[[RefusedError], InnerResponse]

# Asked twice they do what they do once: reports have ids.
_IDEMPOTENT = ("GET", "PUT")


@dataclass
class Once:
    """Which requests took effect lately, by their encapsulated keys: a copy of one is told.

    Attributes:
        most: how many are remembered; for whatever is older nobody can tell any more.

    >>> seen = Once(most=2)
    >>> [seen.enter(enc) for enc in (b"a", b"b", b"a", b"c", b"a")]
    [True, True, False, True, True]
    """

    most: int = 1 << 18
    _known: dict[bytes, None] = field(default_factory=dict, repr=False)

    def enter(self, enc: bytes) -> bool:
        """Whether this one is new; if so, it is not from now on."""
        if enc in self._known:
            return False
        while len(self._known) >= self.most:
            del self._known[next(iter(self._known))]
        self._known[enc] = None
        return True

    def leave(self, enc: bytes) -> None:
        """One that came to nothing is forgotten: strangers, whose requests are refused, push nobody else's out."""
        self._known.pop(enc, None)


class Gateway:
    """Opens requests with any of its keys and seals the answers.

    Args:
        keys: the current one first; older ones for clients that have not got it yet. No two have one number.
        bits: where nonces come from.
        once: which requests were answered lately.

    Raises:
        DataError: two keys have one number.
    """

    def __init__(self, keys: tuple[GatewayKey, ...], *, bits: RandomBits, once: Once | None = None) -> None:
        self._by_header = {key.config.header: key for key in keys}
        if len(self._by_header) < len(keys):
            way_out = "retire the older one with `shuffledp keys retire FOLDER --gateway`"
            raise DataError("gateway", "two keys of one number", "must have keys of different numbers", way_out)
        self.configs = encode_configs([key.config for key in keys])
        self._bits = bits
        self._once = Once() if once is None else once

    async def answer(self, sealed: bytes, inside: Inside, refusing: Refusing) -> bytes:
        """What to answer to a relay.

        Args:
            sealed: what was posted.
            inside: answers the request that is in it.
            refusing: a refusal as an answer.

        Raises:
            RefusedError: it cannot be opened; whoever sent it is told in the clear, as nothing else is possible.
        """
        if len(sealed) < REQUEST_OVERHEAD:
            raise RefusedError(BAD_REQUEST, f"a sealed request has at least {REQUEST_OVERHEAD} bytes: send it whole.")
        key = self._by_header.get(sealed[:HEADER_BYTES])
        if key is None:
            words = "no key here has that number and suite: get the gateway's current keys from who gave you these."
            raise RefusedError(GATEWAY_KEY, words)
        opened = key.open(sealed)
        if opened is None:
            words = "it does not open with the key that it names: get the gateway's current keys, or send it whole."
            raise RefusedError(NOT_SEALED, words)
        message, exchange = opened
        try:
            given = await self._answered(message, exchange.enc, inside)
        except RefusedError as refused:
            given = refusing(refused)
        except DataError as bad:
            given = refusing(RefusedError(BAD_REQUEST, str(bad)))
        answer = given.encoded()
        return exchange.seal(answer.ljust(answer_length(len(answer)), b"\0"), bits=self._bits)

    async def _answered(self, message: bytes, enc: bytes, inside: Inside) -> InnerResponse:
        request = InnerRequest.decoded(message)
        if request.method in _IDEMPOTENT:
            return await inside(request)
        if not self._once.enter(enc):
            raise RefusedError(TOO_EARLY, "a copy of this request was answered before: seal it anew.")
        try:
            given = await inside(request)
        except RefusedError:
            self._once.leave(enc)
            raise
        # Of what was broken off nobody knows what came of it: a copy of that is told, too.
        if not 200 <= given.status < 300:
            self._once.leave(enc)
        return given
