"""Every protocol there is, and plans as files."""

import json
from pathlib import Path
from typing import Any

from shuffledp.errors import DataError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.base import SCHEMA, Plan
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.bounded_sum import BoundedSum
from shuffledp.protocols.distinct_elements import DistinctElements
from shuffledp.protocols.histogram import Histogram
from shuffledp.protocols.ranges import Ranges
from shuffledp.protocols.vector_sum import VectorSum

PROTOCOLS: dict[str, Any] = {
    family.protocol: family for family in (BinarySum, BoundedSum, VectorSum, Histogram, Ranges, DistinctElements)
}

_AGAIN = "make it again with `shuffledp plan ... -o FILE`"


def plan_from_document(document: Any) -> Plan:
    """The plan that a JSON document describes; refused where any number was changed."""
    if not isinstance(document, dict):
        raise DataError("plan", type(document).__name__, "must be a JSON object", _AGAIN)
    if document.get("schema") != SCHEMA:
        raise DataError("plan.schema", document.get("schema"), f"must be {SCHEMA}", _AGAIN)
    family = PROTOCOLS.get(str(document.get("protocol")))
    if family is None:
        raise DataError("plan.protocol", document.get("protocol"), f"must be one of {', '.join(PROTOCOLS)}", _AGAIN)
    kind = family.methods.get(str(document.get("method")))
    if kind is None:
        raise DataError("plan.method", document.get("method"), f"must be one of {', '.join(family.methods)}", _AGAIN)
    noise = document.get("noise")
    if not isinstance(noise, dict):
        raise DataError("plan.noise", noise, "must be an object", _AGAIN)
    plan: Plan = kind.from_noise(
        noise,
        users=document.get("users"),
        privacy=Privacy(document.get("epsilon"), document.get("delta")),  # type: ignore[arg-type]
        honest_fraction=document.get("honest_fraction"),
        constants=document.get("constants"),
        **{name: document.get(name) for name in kind.domain_names},
    )
    expected = plan.document()
    for key in expected:
        if document.get(key) != expected.get(key):
            raise DataError(
                f"plan.{key}",
                document.get(key),
                f"must be {expected.get(key)} in this plan",
                f"it was changed; {_AGAIN}",
            )
    return plan


def load_plan(path: Path | str) -> Plan:
    """A plan from its file."""
    file = Path(path)
    try:
        document = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise ParameterError("plan", file, "must be a file that exists", _AGAIN) from None
    except IsADirectoryError:
        raise ParameterError("plan", file, "must be a file, not a folder", "name the file in it") from None
    except (ValueError, RecursionError):
        raise DataError("plan", file, "must be a JSON document", _AGAIN) from None
    return plan_from_document(document)
