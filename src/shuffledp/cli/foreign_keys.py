"""Keys that do not fit to what a server is asked to serve: said when it starts, where it can be known."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shuffledp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from shuffledp.service.tokens import Tokens

_SECONDS = 2.0
_GONE = "create the task again, after `shuffledp store end` where a store has it, as nobody can read it any more"


def check_roles(keys: Path, tokens: "Tokens", *roles: str) -> None:
    """Refuse tokens that lack one without which a server is of no use."""
    missing = [role for role in roles if role not in tokens.secrets]
    if missing:
        problem = f"must have a token for {' and '.join(missing)}"
        raise DataError("keys", str(keys), problem, "give this server the tokens.json that `shuffledp keys` made")


def check_task_keys(folder: Path, texts: Sequence[str]) -> list[str]:
    """Whether tasks are encrypted to keys of this folder: whoever mixes reports for another service is told.

    Args:
        folder: the keys of a shuffler, which needs its tokens only.
        texts: of the tasks and campaigns that it is to serve.

    Returns:
        What looks wrong and may be right, in sentences: a folder with a public half alone may be an old one.

    Raises:
        ParameterError: the folder has all keys, and a task's is not among them.
    """
    from shuffledp.service.keys import ANALYZER, PUBLIC, load_public_key
    from shuffledp.service.rotation import whereabouts

    known = {key.public.text for key in ANALYZER.ring(folder)} if folder.is_dir() and ANALYZER.files(folder) else set()
    doubts = []
    for text in texts:
        document = json.loads(text)
        key = document.get("public_key") if isinstance(document, dict) else None
        if not isinstance(key, str):
            continue
        if known and key not in known:
            where = whereabouts(folder, key)
            another = "are these the keys of another service? Name the folder that the task was created with"
            way_out = _GONE if where.startswith("was destroyed") else another
            raise ParameterError("public_key", key, f"must be of this folder, and {where}", way_out)
        if not known and (folder / PUBLIC).exists() and load_public_key(folder).text != key:
            doubts.append(
                f"a task is encrypted to {key}, and {folder / PUBLIC} is another key: if keys were not rotated since, "
                "these are the tokens of another service."
            )
    return doubts


def doubt_of_tokens(analyzer: str, token: str) -> str | None:
    """Whether an analyzer that answers does not know this token, in a sentence; None where that cannot be known."""
    import httpx

    with suppress(httpx.HTTPError, httpx.InvalidURL), httpx.Client(timeout=_SECONDS) as http:
        # No such task: whoever has a token for it is told so.
        answer = http.post(
            f"{analyzer.rstrip('/')}/v1/tasks/none/batches/none", headers={"Authorization": f"Bearer {token}"}
        )
        if answer.status_code in (401, 403):
            return (
                f"the analyzer at {analyzer} does not know this folder's token for hop ({answer.status_code}): batches "
                "wait here until both have one tokens.json."
            )
    return None


def check_next_hop(url: str, token: str, hop: int | None, texts: Sequence[str]) -> None:
    """Refuse an address that batches must not go to: that of another hop than the next one, or of a server too early.

    A server that does not answer now, or is of a version that does not say what it is, is not doubted: what it cannot
    take it refuses, and batches wait.

    Args:
        url: where batches are to go.
        token: what the shuffler is let in with there.
        hop: which hop of a cascade the shuffler is; None where it is none.
        texts: of the tasks and campaigns that it is to serve.

    Raises:
        ParameterError: what answers there is another hop.
    """
    import httpx

    from shuffledp.service.hops import MOST_HOPS, hops_of_task

    try:
        with httpx.Client(timeout=_SECONDS) as http:
            answer = http.get(f"{url.rstrip('/')}/v1/hop", headers={"Authorization": f"Bearer {token}"})
            document = answer.json() if answer.status_code == 200 else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return
    if not isinstance(document, dict) or document.get("role") not in ("shuffler", "analyzer"):
        return
    role, place = document["role"], document.get("hop")
    is_last = all(len(hops_of_task(text)) <= (hop or 1) for text in texts)
    if (role == "analyzer" and is_last) or (role == "shuffler" and hop is not None and place == hop + 1):
        return
    there = "the analyzer" if role == "analyzer" else "a shuffler that is no hop" if place is None else f"hop {place}"
    wanted = "the analyzer"
    if hop is not None and hop < MOST_HOPS:
        wanted = f"hop {hop + 1}" + (" or the analyzer" if is_last else "")
    way_out = "give the address of the server after this one; nothing was changed"
    raise ParameterError("next", url, f"must be {wanted}, and is {there}", way_out)


@contextmanager
def where_keys_went(folder: Path) -> Iterator[None]:
    """A refusal for want of a key says what became of the key, where the folder tells."""
    from shuffledp.service.rotation import whereabouts

    try:
        yield
    except ParameterError as wrong:
        if wrong.parameter != "public_key":
            raise
        where = whereabouts(folder, str(wrong.value))
        way_out = _GONE if where.startswith("was destroyed") else wrong.way_out
        raise ParameterError(wrong.parameter, wrong.value, f"{wrong.problem}, and {where}", way_out) from None
