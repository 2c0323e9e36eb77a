"""What `shuffledp doctor` looks at. Nothing is changed, no seat is taken, no secret is shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from shuffledp.errors import ParameterError, ShuffleDPError

if TYPE_CHECKING:
    from shuffledp.service.client.calls import Calls
    from shuffledp.service.task import Task
    from shuffledp.service.tokens import Tokens

# Clocks further apart than this end leases early or late.
LARGEST_SKEW = 5.0
# A batch is at most 256 MB and is kept twice while it is sealed.
LEAST_FREE, LITTLE_FREE = 1 << 29, 1 << 32


class Check(NamedTuple):
    """One thing that was looked at: ok, warn or fail."""

    name: str
    status: str
    found: str
    to_do: str = ""


def at_versions() -> Iterator[Check]:
    """What this machine runs."""
    import platform
    import sqlite3
    import sys
    from importlib.metadata import PackageNotFoundError, version

    from shuffledp import __version__
    from shuffledp.service.wire import VERSION

    yield _verdict("python", sys.version_info >= (3, 11), platform.python_version(), "use 3.11 or newer")
    yield Check("shuffledp", "ok", f"{__version__}, protocol version {VERSION}")
    # RETURNING and UPSERT, both in use, are in 3.35.
    yield _verdict("sqlite", sqlite3.sqlite_version_info >= (3, 35), sqlite3.sqlite_version, "use 3.35 or newer")
    try:
        found = version("cryptography")
        from cryptography.hazmat.primitives import hpke

        yield Check("cryptography", "ok", f"{found}, with HPKE ({hpke.__name__.rpartition('.')[2]})")
    except (ImportError, PackageNotFoundError):
        yield Check("cryptography", "fail", "no HPKE", "install cryptography>=49")


def at_keys(folder: Path) -> "tuple[list[Check], Tokens | None]":
    """Each file by itself, and whether they fit together; answers the tokens, too."""
    from shuffledp.service.keys import (
        PRIVATE,
        TOKENS,
        check_private,
        load_private_key,
        load_public_key,
        load_token,
        load_tokens,
        token_name,
    )
    from shuffledp.service.tokens import ROLES

    found: list[Check] = []
    private = public = tokens = None
    if (folder / PRIVATE).exists():
        with _noting(found, "private key"):
            private = load_private_key(folder)
            found.append(Check("private key", "ok", str(folder / PRIVATE)))
    else:
        found.append(Check("private key", "ok", "not here, as it should be everywhere but on the analyzer"))
    with _noting(found, "public key"):
        public = load_public_key(folder)
        fits = private is None or private.public == public
        to_do = "the two are of different pairs: restore the folder, or make new keys"
        found.append(_verdict("public key", fits, public.text, to_do))
    with _noting(found, "tokens"):
        tokens = load_tokens(folder)
        check_private(folder / TOKENS, "tokens")
        missing = [role for role in ROLES if role not in tokens.secrets]
        to_do = f"none for {', '.join(missing)}" if missing else ""
        found.append(Check("tokens", "warn" if missing else "ok", f"for {', '.join(tokens.secrets)}", to_do))
    for role in ROLES:
        file = folder / token_name(role)
        if not file.exists():
            continue
        with _noting(found, f"{role} token"):
            check_private(file, "token")
            same = tokens is None or tokens.secrets.get(role) == load_token(file)
            to_do = f"{TOKENS} has another: the servers would refuse it"
            found.append(_verdict(f"{role} token", same, str(file), to_do))
    return found, tokens


def at_task(file: Path, keys: Path | None) -> "tuple[list[Check], Task | None]":
    """The task's file, and whether its key is the folder's; answers the task, too."""
    from shuffledp.service.keys import load_public_key
    from shuffledp.service.task import Task

    found: list[Check] = []
    task = None
    with _noting(found, "task"):
        task = Task.load(file)
        found.append(Check("task", "ok", task.id))
        advice = "choose a method of bits or coins for people you do not know"
        found += [Check("task's method", "warn", warning, advice) for warning in task.warnings]
        if keys is not None:
            with _noting(found, "task's key"):
                same = load_public_key(keys) == task.public_key
                to_do = "the analyzer with these keys cannot read it: create the task again"
                found.append(_verdict("task's key", same, task.public_key.text, to_do))
    return found, task


def _verdict(name: str, good: bool, found: str, to_do: str) -> Check:
    """What was looked at is as it should be, or it is said what to do."""
    return Check(name, "ok", found) if good else Check(name, "fail", found, to_do)


@contextmanager
def _noting(found: list[Check], name: str) -> Iterator[None]:
    """What is refused while this is looked at is a finding, not the end."""
    try:
        yield
    except ParameterError as wrong:
        found.append(Check(name, "fail", f"{wrong.value} {wrong.problem}", wrong.way_out))
    except ShuffleDPError as wrong:
        found.append(Check(name, "fail", str(wrong)))


def at_store(path: Path) -> Iterator[Check]:
    """What a database is, who holds it, and how much room it has."""
    import os
    import shutil
    import stat

    name = f"store {path.name}"
    if not path.is_file():
        yield Check(name, "fail", f"{path} is no file", "check the path; a server makes its store when it starts")
        return
    yield _kind(name, path)
    yield Check(f"{name} held", "ok", _holder(path))
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o007:
        yield Check(f"{name} mode", "warn", f"{mode:o}: everybody on this machine may read it", f"chmod 600 {path}")
    free = shutil.disk_usage(path.resolve().parent).free
    status = "fail" if free < LEAST_FREE else "warn" if free < LITTLE_FREE else "ok"
    to_do = "" if status == "ok" else "free some: without room, reports are refused with 503"
    yield Check(f"{name} disk", status, f"{free / 2**30:,.1f} GB free", to_do)


def _kind(name: str, path: Path) -> Check:
    """What the file says that it is, read without changing it."""
    from shuffledp.service.store import inspect_store

    try:
        label, condition = inspect_store(path)
    except ParameterError as broken:
        return Check(name, "fail", broken.problem.replace("must be", "is not", 1), broken.way_out)
    is_sound = condition == "ok"
    return Check(name, "ok" if is_sound else "fail", f"{label}, {condition}", "" if is_sound else "restore it")


def _holder(path: Path) -> str:
    """Who holds the store's lock: asked for a moment, shared, so that it is never taken away from anybody."""
    import fcntl

    lock = Path(path.resolve()).with_name(path.resolve().name + ".lock")
    try:
        with lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                fcntl.flock(file, fcntl.LOCK_UN)
            except BlockingIOError:
                return f"by process {file.read(64).decode('ascii', 'replace').strip() or 'unknown'}"
    except OSError:
        return "by nobody: it has no lock file that can be read"
    return "by nobody"


def at_server(role: str, url: str, task: "Task | None", tokens: "Tokens | None") -> Iterator[Check]:
    """Whether a server is there, whom it lets in, what it has of the task, and what time it is there."""
    import httpx

    from shuffledp.randomness import RandomBits
    from shuffledp.service.addresses import is_loopback
    from shuffledp.service.client.calls import Calls
    from shuffledp.service.tokens import ENROL, HOP, READ

    if url.startswith("http:") and not is_loopback(httpx.URL(url).host):
        yield Check(f"{role} TLS", "fail", "the token travels in the clear", "serve with --tls-cert, and use https")
    with httpx.Client(timeout=5.0) as http:

        def calls(secret: str | None) -> Calls:
            return Calls(url, secret, http, RandomBits.secure(), patience=0.0)

        try:
            health = calls(None).once("GET", "/healthz")
            ready = calls(None).once("GET", "/readyz")
        except httpx.HTTPError as broken:
            found = f"{url} cannot be reached ({type(broken).__name__}: {broken})"
            yield Check(role, "fail", found, "is it running, and is the address right?")
            return
        alive = health.is_success and health.text.strip() == "ok"
        to_do = "something else answers there: check the address and the port"
        yield _verdict(role, alive, f"{url} answers {health.status_code}", to_do)
        to_do = "it is starting, or its store cannot be written: see its log"
        yield _verdict(f"{role} ready", ready.is_success, f"{ready.status_code}", to_do)
        if task is None:
            return
        path = f"/v1/tasks/{task.id}"
        yield from _refused(calls(None), role, path, "nobody", 401)
        if tokens is None:
            return
        wrong, right = (HOP, ENROL) if role == "shuffler" else (ENROL, READ)
        if wrong in tokens.secrets:
            yield from _refused(calls(tokens.secrets[wrong]), role, path, wrong, 403)
        if right in tokens.secrets:
            yield from _served(calls(tokens.secrets[right]), role, right, path, task)


def _refused(calls: "Calls", role: str, path: str, who: str, expected: int) -> Iterator[Check]:
    """Those without the role must not get in."""
    import httpx

    try:
        status = calls.once("GET", path).status_code
    except httpx.HTTPError as broken:
        yield Check(f"{role} refuses {who}", "fail", type(broken).__name__, "try again")
        return
    unknown = status == 401 and expected == 403
    to_do = "it must not answer: is it a server of shuffledp with its tokens?"
    if unknown:
        to_do = "it does not know this token: it runs with another tokens.json"
    yield _verdict(f"{role} refuses {who}", status in (401, 403) and not unknown, str(status), to_do)


def _served(calls: "Calls", role: str, token: str, path: str, task: "Task") -> Iterator[Check]:
    """The task as the server has it, and its clock."""
    import time

    asked = time.time()
    try:
        document = calls.json(path)
    except ShuffleDPError as wrong:
        status = getattr(wrong, "status", None)
        to_do = {
            401: "the server has other tokens: give it this folder's tokens.json",
            404: "start the server with --task, or send it the task as admin",
        }.get(status or 0, "see the server's log")
        yield Check(f"{role} serves the task", "fail", str(wrong), to_do)
        return
    answered = time.time()
    if role == "shuffler":
        same = document.get("routing") == task.routing.document()
        counts = document.get("counts") or {}
        found = f"{counts.get('reports', '?')} reports, {counts.get('batches_waiting', '?')} batches wait to be sent"
    else:
        same = document.get("task") == task.document
        found = f"{document.get('batches_read', '?')} batches read, {document.get('batches_void', '?')} void"
    to_do = "it has another document under this id: send it the task's file again"
    yield _verdict(f"{role} serves the task", same, f"token for {token}; {found}", to_do)
    there = document.get("time")
    if not isinstance(there, int | float):
        yield Check(f"{role} clock", "fail", "the server does not say its time", "is its version this one?")
        return
    # The server looked at its clock somewhere between question and answer.
    skew = max(asked - there, there - answered, 0.0)
    yield _verdict(f"{role} clock", skew <= LARGEST_SKEW, f"off by {skew:.1f} s", "set both clocks by NTP")
