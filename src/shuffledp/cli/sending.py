"""Handing a task or a campaign to servers that are running."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from shuffledp.cli.output import facts, print_json, show
from shuffledp.cli.servers import calls_to
from shuffledp.errors import ParameterError


def send_document(
    kind: str, document: Any, token_file: Path, shuffler: str | None, analyzer: str | None, *, as_json: bool
) -> None:
    """Have servers take a document, and say which of them had it already.

    Args:
        kind: what it is called: a task or a campaign.
        document: has an id and a text.
        token_file: the file of the token for admin.
        shuffler: the shuffler's address, or None.
        analyzer: the analyzer's address, or None.
        as_json: print one JSON object.

    Raises:
        ParameterError: neither server was given, or an address that cannot be one.
    """
    from shuffledp.service.client.calls import check_url
    from shuffledp.service.keys import load_token

    token = load_token(token_file)
    # The analyzer first: whatever the shuffler releases has somewhere to go.
    servers = [(name, url) for name, url in (("analyzer", analyzer), ("shuffler", shuffler)) if url is not None]
    if not servers:
        problem = "or analyzer must be given"
        raise ParameterError("shuffler", None, problem, f"name a server that is to take the {kind}")
    addresses = [(name, check_url(url, name)) for name, url in servers]
    new = {}
    for name, url in addresses:
        with calls_to(url, name, token) as calls:
            body, read = document.text.encode(), partial(_is_new, kind, document.id)
            new[name] = calls.ask("POST", "/v1/tasks", read, content=body, media="application/json")[0]
    if as_json:
        print_json({"schema": 1, f"{kind}_id": document.id, "new": new})
        return
    said = [(name, "takes it from now on" if is_new else "has it already") for name, is_new in new.items()]
    show(facts(f"A {kind} is served", [(kind, document.id), *said]))


def _is_new(kind: str, document_id: str, status: int, answer: Mapping[str, Any]) -> bool:
    from shuffledp.service.client.calls import NotTheServersError

    if answer.get("task_id") != document_id:
        raise NotTheServersError(f"another {kind}, or none")
    return status == 201
