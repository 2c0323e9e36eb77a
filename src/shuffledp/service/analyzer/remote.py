"""Opening pieces for an analyzer that is elsewhere: take one by lease, open it, return what was found in it.

The private key is this process's own and is never asked for: whoever runs an opener has given it the key. An analyzer
that is restarted, or cannot be reached, is waited for; a lease that was lost is forgotten, and another piece taken.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from shuffledp.errors import DataError, ParameterError
from shuffledp.service.analyzer.leasing import LeasedPiece, unpack_lease
from shuffledp.service.analyzer.opening import open_chunk
from shuffledp.service.analyzer.results import PieceResult
from shuffledp.service.campaign import Campaign
from shuffledp.service.client.calls import Calls, UnreachableError, refusal_from
from shuffledp.service.crypto import PrivateKey, binding
from shuffledp.service.openapi import BINARY
from shuffledp.service.problems import NOT_FOUND
from shuffledp.service.rounds import split_round
from shuffledp.service.task import RoundTask, Task, canonical
from shuffledp.service.telemetry import log
from shuffledp.service.wire import CIPHERTEXT_BYTES

# Between questions where there was nothing to open, or nobody answered.
IDLE_SECONDS, AWAY_SECONDS = 0.5, 2.0
# Ciphertexts between two looks at whether to stop: about a tenth of a second.
_AT_A_TIME = 2000


class StoppedError(Exception):
    """A piece was not opened whole, as the opener is about to stop."""


def doubt_of_keys(calls: Calls, keys: Sequence[PrivateKey]) -> str | None:
    """Whether an analyzer has keys that an opener lacks, in a sentence; None where it has not, or does not say.

    Args:
        calls: the analyzer, with a token for open.
        keys: the opener's.

    Raises:
        ParameterError: the opener has none of the analyzer's keys, and could open nothing.
    """
    try:
        answer = calls.once("GET", "/v1/keys")
        theirs = answer.json()["public_keys"] if answer.status_code == 200 else []
    except (httpx.HTTPError, ValueError, LookupError, TypeError):
        return None
    own = [key.public.text for key in keys]
    missing = [str(key) for key in theirs if key not in own]
    if not missing:
        return None
    if len(missing) == len(theirs):
        problem = f"must be the analyzer's, which has {', '.join(missing)}"
        raise ParameterError("keys", ", ".join(own), problem, "name the folder that the analyzer is served with")
    return f"the analyzer has keys that are not here, and this opener ends when a piece of theirs comes: {missing[0]}."


class RemoteOpener:
    """One process that opens pieces.

    Args:
        calls: the analyzer, with a token for open.
        keys: those that messages are encrypted to: of each task the one that it names.
        is_stopping: whether to end as soon as possible.
        wait: waits so many seconds, or less if it is to stop.
    """

    def __init__(
        self,
        calls: Calls,
        keys: Sequence[PrivateKey],
        is_stopping: Callable[[], bool] = lambda: False,
        wait: Callable[[float], Any] = time.sleep,
    ) -> None:
        self._calls, self._is_stopping, self._wait = calls, is_stopping, wait
        self._keys = {key.public: key for key in keys}
        self._tasks: dict[str, Task | RoundTask] = {}

    def open_one_or_wait(self) -> bool:
        """Open a piece; if there is none, or the analyzer is away, wait for a while. Answers whether one was counted.

        Raises:
            AnswerError: the token is refused.
            ParameterError: the pieces are encrypted to another key, or the server is no analyzer.
        """
        try:
            return self.open_one()
        except StoppedError:
            return False
        except (httpx.HTTPError, UnreachableError) as broken:
            log("analyzer unreachable", level=30, error=type(broken).__name__)
            self._wait(AWAY_SECONDS)
            return False

    def open_one(self) -> bool:
        """Take a piece, if there is one, open it and return what was found; answers whether it was counted."""
        answer = self._calls.once("POST", "/v1/openings")
        if answer.status_code != 200:
            self._refused(answer)
            return False
        if not answer.content:
            self._wait(IDLE_SECONDS)
            return False
        piece = unpack_lease(answer.content)
        try:
            result = self._open(piece)
        except (StoppedError, ParameterError):
            # Another need not wait until the lease runs out.
            self._calls.once("DELETE", f"/v1/openings/{piece.lease}")
            raise
        return self._return(piece, result.to_bytes())

    def _return(self, piece: LeasedPiece, result: bytes) -> bool:
        """Until it is taken or refused, or the lease ran out."""
        end = time.monotonic() + piece.seconds
        while True:
            try:
                answer = self._calls.once("POST", f"/v1/openings/{piece.lease}", result, BINARY)
            except httpx.HTTPError:
                if self._is_stopping() or time.monotonic() > end:
                    raise
                self._wait(IDLE_SECONDS)
                continue
            if answer.status_code == 200:
                return True
            self._refused(answer)
            return False

    def _refused(self, answer: httpx.Response) -> None:
        """What passes is waited for; a token that is refused, and a server that is no analyzer, are not."""
        try:
            document = answer.json()
        except ValueError:
            document = None
        refused = refusal_from(answer.status_code, document)
        if refused.status in (401, 403):
            raise refused
        if refused.kind == NOT_FOUND.name:
            problem = "must be an analyzer, and what answers there opens no batches"
            raise ParameterError("analyzer", self._calls.url, problem, "check the address: is it the shuffler's?")
        log("analyzer refused", level=30, status=refused.status, problem=refused.kind)
        self._wait(IDLE_SECONDS)

    def _open(self, piece: LeasedPiece) -> PieceResult:
        task, info = self._task(piece.task_id), binding(piece.task_id, piece.batch_id)
        key, opened, unopened = self._keys[task.public_key], list[bytes](), 0
        for start in range(0, len(piece.body), _AT_A_TIME * CIPHERTEXT_BYTES):
            if self._is_stopping():
                raise StoppedError
            plain, lost = open_chunk(key.raw, info, piece.body[start : start + _AT_A_TIME * CIPHERTEXT_BYTES])
            opened.append(plain)
            unopened += lost
        plain = b"".join(opened)
        is_first = piece.piece == 0
        return PieceResult.of(task.plan, piece.users, plain, unopened, is_first=is_first, without=piece.without)

    def _task(self, task_id: str) -> Task | RoundTask:
        """The task, or the round of a campaign, that the analyzer has under this id, which is its document's digest."""
        if task_id not in self._tasks:
            parts = split_round(task_id)
            kind, owner = ("task", task_id) if parts is None else ("campaign", parts[0])
            document = self._calls.json(f"/v1/{kind}s/{owner}").get(kind)
            text = canonical(document)
            if hashlib.sha256(text.encode()).hexdigest() != owner:
                raise DataError(kind, owner[:12], "must be the document of this id", "check the analyzer's address")
            task = Task.from_text(text) if parts is None else Campaign.from_text(text).round_of_id(task_id)
            if task is None:
                raise DataError("task", task_id[:12], "must be a round of its campaign", "use one version")
            if task.public_key not in self._keys:
                own = ", ".join(key.text for key in self._keys)
                problem = f"must be the task's, {task.public_key.text}"
                raise ParameterError("keys", own, problem, "name the folder that it was created with")
            self._tasks[task_id] = task
        return self._tasks[task_id]
