"""Answers held to the schemas of an OpenAPI document: closed objects, so that a field too many is seen as well."""

from functools import cache
from typing import Any

import jsonschema_rs

from shuffledp.service.analyzer.app import AnalyzerEndpoints
from shuffledp.service.openapi import openapi_document, operations_of
from shuffledp.service.shuffler.app import ShufflerEndpoints

DOCUMENTS: dict[str, dict[str, Any]] = {
    role: openapi_document(role, operations_of(endpoints).values())
    for role, endpoints in (("shuffler", ShufflerEndpoints), ("analyzer", AnalyzerEndpoints))
}


@cache
def _validator(role: str, name: str) -> Any:
    components = DOCUMENTS[role]["components"]
    schema = {"$ref": f"#/components/schemas/{name}", "components": components}
    return jsonschema_rs.Draft202012Validator(schema)


def departures(role: str, schema: dict[str, Any], found: Any) -> list[str]:
    """How an answer departs from a schema of a server's document, a sentence each; none where it does not."""
    name = schema["$ref"].rpartition("/")[2]
    return [error.message[:300] for error in _validator(role, name).iter_errors(found)]
