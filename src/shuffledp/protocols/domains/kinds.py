"""Every kind of values that running sums add up, by name: a document's domain becomes one of them."""

from collections.abc import Mapping
from typing import Any

from shuffledp.errors import DataError
from shuffledp.protocols.domains.repeated import RowCounts
from shuffledp.protocols.domains.steps import SummedDomain
from shuffledp.protocols.domains.summed import Bits, OneHot, Reals, Vectors

KINDS: dict[str, type[SummedDomain]] = {kind.kind: kind for kind in (Bits, RowCounts, Reals, Vectors, OneHot)}


def domain_from(document: Any) -> SummedDomain:
    """The domain that a JSON document describes."""
    kind = KINDS.get(str(document.get("kind"))) if isinstance(document, Mapping) else None
    if kind is None:
        raise DataError("plan.domain", document, f"must have a kind, one of {', '.join(KINDS)}", "make the plan again")
    return kind(**{name: value for name, value in document.items() if name != "kind"})
