"""Whom the messages of a task or of a campaign are sealed for, as its document says."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from shuffledp.service.crypto import PublicKey
from shuffledp.service.expiry import Expiries, expiries_from
from shuffledp.service.onion import ONE_SHUFFLER, hops_from


class NamesRecipients(ABC):
    """A document that names the keys of an analyzer and of hops."""

    @property
    @abstractmethod
    def document(self) -> Mapping[str, Any]:
        """The parsed document."""

    @property
    def public_key(self) -> PublicKey:
        """What people's devices encrypt to: the analyzer's key."""
        return PublicKey.from_text(str(self.document.get("public_key")))

    @cached_property
    def hops(self) -> tuple[PublicKey, ...]:
        """The keys of a cascade's shufflers, first hop first; none where there is one shuffler."""
        return hops_from(self.document["hops"]) if "hops" in self.document else ONE_SHUFFLER

    @cached_property
    def expires(self) -> Expiries:
        """The last days of those of its keys that expire: nobody seals to them afterwards."""
        keys = (key.text for key in (self.public_key, *self.hops))
        return expiries_from(self.document.get("expires"), keys)
