"""What servers' JSON says, field by field, for their OpenAPI documents: JSON Schema as OpenAPI 3.1 takes it.

What is a dataclass in the code is written from its fields; everything is closed, so that an answer with a field that is
not written here is refused by the suite. An operation whose answer has no row in `ANSWERS` is, too.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_type_hints

from shuffledp.service.delivery import VERSION as MANIFEST_VERSION
from shuffledp.service.delivery import Manifest
from shuffledp.service.fill import EVERY_SECONDS, FULL
from shuffledp.service.fill import VERSION as FILL_VERSION
from shuffledp.service.problems import KINDS
from shuffledp.service.store.contract import Counts, Progress, Release

Schema = dict[str, Any]

_NULL: Schema = {"type": "null"}
_ANY: Schema = {}
_WHOLE: Schema = {"type": "integer", "minimum": 0}
_COUNTED: Schema = {"type": "integer", "minimum": 1}
_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_SECONDS: Schema = {"type": "number", "exclusiveMinimum": 0}
_ID: Schema = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_KEY: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}=$"}
_BATCH: Schema = {"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"}
_OF_TYPES: dict[Any, Schema] = {
    int: _WHOLE,
    str: _TEXT,
    Any: _ANY,
    float | None: {"type": ["number", "null"]},
}


def _closed(required: Schema, optional: Schema | None = None) -> Schema:
    """An object with these fields and no others."""
    every = {**required, **(optional or {})}
    return {"type": "object", "required": list(required), "properties": every, "additionalProperties": False}


def _open(required: Schema) -> Schema:
    """An object with these fields, and others that are the business of whoever made it."""
    return {"type": "object", "required": list(required), "properties": required}


def _listed(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _or_null(schema: Schema) -> Schema:
    return {"oneOf": [schema, _NULL]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _fields_of(kind: type) -> Schema:
    """The fields of a dataclass."""
    hints = get_type_hints(kind)
    return {field.name: _OF_TYPES[hints[field.name]] for field in fields(kind)}


_LAST_DAY: Schema = {"type": "string", "format": "date"}
_MAY_HAVE = {
    "hops": _listed(_closed({"hop": _COUNTED, "public_key": _KEY})),
    "expires": {"type": "object", "additionalProperties": _LAST_DAY},
}
_DOCUMENT = {"version": _COUNTED, "nonce": _ID, "suite": _TEXT, "public_key": _KEY, "warnings": _listed(_TEXT)}

SCHEMAS: dict[str, Schema] = {
    "Problem": _closed(
        {
            "type": {"type": "string", "enum": sorted({kind.type for kind in KINDS})},
            "title": _TEXT,
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "detail": _TEXT,
        }
    ),
    "Plan": _open({"schema": {"const": 1}, "protocol": _TEXT, "users": _COUNTED, "epsilon": {"type": "number"}}),
    "Routing": _closed(
        {
            "version": {"enum": [1, 2]},
            **dict.fromkeys(("users", "budget", "shufflers", "slot_users", "ciphertext_bytes"), _COUNTED),
            "every_slot": _FLAG,
            "messages": {"type": "object", "additionalProperties": _COUNTED},
        },
        {"counts_everybody": _FLAG, "windows": _FLAG, "layers": _COUNTED, "hop": _COUNTED},
    ),
    "Task": _closed({**_DOCUMENT, "routing": _ref("Routing"), "plan": _ref("Plan")}, _MAY_HAVE),
    "Campaign": _closed(
        {
            **_DOCUMENT,
            "signing_key": _KEY,
            "routing": _closed(
                {"version": {"const": 1}, "rounds": _COUNTED, "layouts": _listed(_ref("Routing")), "drops": _FLAG}
            ),
            "seatings": _listed(
                _closed({"plan": _ref("Plan"), "visits": _COUNTED, "group": _WHOLE, "in_all": _COUNTED})
            ),
            "learner": _open({"kind": _TEXT, "fingerprint": _SHA256}),
            "rows": {"type": ["object", "null"]},
            "waiting": _closed({"seconds": _or_null(_SECONDS)}),
        },
        _MAY_HAVE,
    ),
    "Served": _closed({"task_id": _SHA256}),
    "Kept": _closed({"new": _FLAG}),
    "SeatBatch": _closed(
        {"level": _COUNTED, "batch_id": _BATCH, "size": _COUNTED, "seat": _WHOLE, "messages": _COUNTED}
    ),
    "Seat": _closed({"seat": _ID, "lease_seconds": _SECONDS, "batches": _listed(_ref("SeatBatch"))}),
    "Seats": _closed({"seats": _listed(_ref("Seat"))}),
    "Result": _closed(
        {"report_id": _ID, "status": {"type": "integer", "minimum": 200, "maximum": 599}}, {"problem": _ref("Problem")}
    ),
    "Results": _closed({"results": _listed(_ref("Result"))}),
    "ShufflersTask": _closed(
        {
            "task_id": _TEXT,
            "routing": _ref("Routing"),
            "time": {"type": "number"},
        },
        {"counts": _closed(_fields_of(Counts))},
    ),
    "Fill": _closed(
        {
            "version": {"const": FILL_VERSION},
            "task_id": _TEXT,
            "every_seconds": {"const": EVERY_SECONDS},
            "levels": _listed(
                _closed({"level": _COUNTED, "tenths": {"type": ["integer", "null"], "minimum": 0, "maximum": FULL}})
            ),
        }
    ),
    "AnalyzersTask": _closed(
        {"task_id": _TEXT, "task": _ref("Task"), "ended": _FLAG, **_fields_of(Progress), "time": {"type": "number"}}
    ),
    "Manifest": _closed(
        {"version": {"const": MANIFEST_VERSION}, **_fields_of(Manifest), "digest": _SHA256, "checks": _SHA256}
    ),
    "Release": _closed(_fields_of(Release)),
    "History": _closed({"task_id": _SHA256, "releases": _listed(_ref("Release"))}),
    "Estimate": _closed(
        {
            "task_id": _SHA256,
            **_fields_of(Release),
            # Nothing is known before the first release.
            "time": {"type": ["integer", "null"]},
            **dict.fromkeys(("users", "uncounted", "released_batches", "void_batches"), _WHOLE),
            "epsilon": {"type": "number"},
            "delta": {"type": "number"},
            "opening": _or_null(_closed({"batch": _COUNTED, "of": _COUNTED})),
        }
    ),
    "OpenRound": _closed(
        {
            **dict.fromkeys(("number", "seating", "first_slot", "end_slot"), _WHOLE),
            "closes": {"type": ["number", "null"]},
        }
    ),
    "Model": _closed(
        {
            "version": {"const": 1},
            "campaign": _SHA256,
            "number": _WHOLE,
            "round": _or_null(_ref("OpenRound")),
            "step": _or_null(_closed({"name": _TEXT, "parameters": {"type": "object"}})),
            "estimate": _ANY,
        }
    ),
    "SignedModel": _closed(
        {
            "text": {"type": "string", "contentMediaType": "application/json", "contentSchema": _ref("Model")},
            "signature": {"type": "string", "pattern": "^[A-Za-z0-9_-]{86}==$"},
        }
    ),
    "Models": _closed({"campaign_id": _SHA256, "models": _listed(_ref("SignedModel"))}),
    "AnalyzersCampaign": _closed(
        {
            "campaign_id": _SHA256,
            "campaign": _ref("Campaign"),
            "newest": _ref("SignedModel"),
            **_fields_of(Progress),
            "time": {"type": "number"},
        }
    ),
    "Place": _closed({"role": {"enum": ["shuffler", "analyzer"]}, "hop": {"type": ["integer", "null"], "minimum": 1}}),
    "Keys": _closed({"public_keys": _listed(_KEY)}),
    "Counted": _closed({"counted": {"const": True}}),
    "GivenBack": _closed({"given_back": _FLAG}),
    "OpenAPI": _open({"openapi": {"const": "3.1.0"}, "info": {"type": "object"}, "paths": {"type": "object"}}),
}
"""Every object that travels, by its name."""

ANSWERS: dict[str, str] = {
    "createTask": "Served",
    "openapi": "OpenAPI",
    "showHop": "Place",
    "showKeys": "Keys",
    "shuffler showTask": "ShufflersTask",
    "analyzer showTask": "AnalyzersTask",
    "showFill": "Fill",
    "takeSeats": "Seats",
    "putReport": "Kept",
    "postReports": "Results",
    "takeBatch": "Kept",
    "takePiece": "Kept",
    "takeManifest": "Kept",
    "countPiece": "Counted",
    "givePieceBack": "GivenBack",
    "showEstimate": "Estimate",
    "showHistory": "History",
    "showCampaign": "AnalyzersCampaign",
    "showNewestModel": "SignedModel",
    "showModel": "SignedModel",
    "showModels": "Models",
}
"""What an operation answers in JSON, by its name, with the role before it where two servers answer otherwise."""

BODIES: dict[str, Schema] = {
    # The text of a task or a campaign, unchanged: its id is its SHA-256, so that a server reads it as it was written.
    "createTask": _open({"version": _COUNTED, "routing": {"type": "object"}}),
    "takeManifest": _ref("Manifest"),
}
"""What an operation takes in JSON."""


def answer_schema(role: str, name: str) -> Schema | None:
    """What an operation of a server answers in JSON; None where nobody has written it down."""
    found = ANSWERS.get(f"{role} {name}", ANSWERS.get(name))
    return None if found is None else _ref(found)


def needed(schemas: Iterable[Any]) -> dict[str, Schema]:
    """The objects that these schemas name, and what they name in turn."""
    found: dict[str, Schema] = {}
    left = [name for schema in schemas for name in _named(schema)]
    while left:
        name = left.pop()
        if name not in found:
            found[name] = SCHEMAS[name]
            left += _named(SCHEMAS[name])
    return {name: SCHEMAS[name] for name in SCHEMAS if name in found}


def _named(schema: Any) -> list[str]:
    if isinstance(schema, dict):
        own = [schema["$ref"].rpartition("/")[2]] if isinstance(schema.get("$ref"), str) else []
        return own + [name for value in schema.values() for name in _named(value)]
    return [name for value in schema for name in _named(value)] if isinstance(schema, list) else []
