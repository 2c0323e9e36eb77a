"""What `shuffledp doctor` looks at. Nothing is changed, no seat is taken, no secret is shown."""

import os
import platform
import shutil
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

import httpx

from shuffledp import __version__
from shuffledp.errors import ParameterError, ShuffleDPError
from shuffledp.randomness import RandomBits
from shuffledp.service import keys
from shuffledp.service.addresses import is_loopback
from shuffledp.service.campaign import Campaign
from shuffledp.service.client.calls import Calls
from shuffledp.service.crypto import PrivateKey, PublicKey
from shuffledp.service.problems import TASK_ENDED
from shuffledp.service.store import inspect_store
from shuffledp.service.store.passwords import without_password
from shuffledp.service.task import Task
from shuffledp.service.tokens import ENROL, HOP, READ, ROLES, Tokens
from shuffledp.service.wire import VERSION

# Clocks further apart than this end leases early or late.
LARGEST_SKEW = 5.0
# A batch is at most 256 MB and is kept twice while it is sealed.
LEAST_FREE, LITTLE_FREE = 1 << 29, 1 << 32


def _short_name(address: str) -> str:
    """A store's name in a line: its file's, or its database's and its schema's.

    >>> _short_name("/var/shuffler.db"), _short_name("postgresql://me:secret@here/live?batch_keys=/k&schema=front")
    ('shuffler.db', 'live front')
    """
    scheme, found, rest = address.partition("://")
    if not found or "?" not in rest:
        return without_password(address).rpartition("/")[2] or scheme
    where, _, query = rest.partition("?")
    schema = dict(parse_qsl(query)).get("schema")
    return " ".join(filter(None, (without_password(f"//{where}").rpartition("/")[2], schema)))


def name_of_store(address: str) -> str:
    """What a store is called in the list."""
    return f"store {_short_name(address)}"


class Check(NamedTuple):
    """One thing that was looked at: ok, warn or fail."""

    name: str
    status: str
    found: str
    to_do: str = ""


ENDED_ELSEWHERE = (
    "end it at the servers before that one, too: `shuffledp store end STORE TASK`, "
    "where --drop deletes batches that wait and will never be taken"
)


class Checks(list[Check]):
    """All that was looked at, in order."""

    def verdict(self, name: str, good: bool, found: str, to_do: str, *, otherwise: str = "fail") -> None:
        """What was looked at is as it should be, or it is said what to do."""
        self.append(Check(name, "ok", found) if good else Check(name, otherwise, found, to_do))

    @contextmanager
    def noting(self, name: str) -> Iterator[None]:
        """What is refused while this is looked at is a finding, not the end."""
        try:
            yield
        except ParameterError as wrong:
            self.append(Check(name, "fail", f"{wrong.value} {wrong.problem}", wrong.way_out))
        except ShuffleDPError as wrong:
            self.append(Check(name, "fail", str(wrong)))

    def at_versions(self) -> None:
        """What this machine runs."""
        self.verdict("python", sys.version_info >= (3, 11), platform.python_version(), "use 3.11 or newer")
        self.append(Check("shuffledp", "ok", f"{__version__}, protocol version {VERSION}"))
        # RETURNING and UPSERT, both in use, are in 3.35.
        self.verdict("sqlite", sqlite3.sqlite_version_info >= (3, 35), sqlite3.sqlite_version, "use 3.35 or newer")
        try:
            from cryptography.hazmat.primitives import hpke

            found = f"{version('cryptography')}, with HPKE ({hpke.__name__.rpartition('.')[2]})"
            self.append(Check("cryptography", "ok", found))
        except (ImportError, PackageNotFoundError):
            self.append(Check("cryptography", "fail", "no HPKE", "install cryptography>=49"))

    def at_keys(self, folder: Path) -> Tokens | None:
        """Each file by itself, and whether they fit together; answers the tokens."""
        tokens = None
        if keys.is_hops(folder):
            self._at_pair(folder, "hop's ", keys.HOPS, "that hop", keys.load_hop_key, keys.load_hop_public_key)
        else:
            self._at_pair(folder, "", keys.ANALYZER, "the analyzer", keys.load_private_key, keys.load_public_key)
        with self.noting("tokens"):
            tokens = keys.load_tokens(folder)
            keys.check_private(folder / keys.TOKENS, "tokens")
            needed = keys.HOP_ROLES if keys.is_hops(folder) else ROLES
            missing = [role for role in needed if role not in tokens.secrets]
            found, to_do = f"for {', '.join(tokens.secrets)}", f"none for {', '.join(missing)}"
            self.verdict("tokens", not missing, found, to_do, otherwise="warn")
        for role in ROLES:
            file = folder / keys.token_name(role)
            if not file.exists():
                continue
            with self.noting(f"{role} token"):
                keys.check_private(file, "token")
                same = tokens is None or tokens.secrets.get(role) == keys.load_token(file)
                to_do = f"{keys.TOKENS} has another: the servers would refuse it"
                self.verdict(f"{role} token", same, str(file), to_do)
        return tokens

    def _at_pair(
        self,
        folder: Path,
        whose: str,
        pair: keys.PairFiles[PrivateKey],
        owner: str,
        load_private: Callable[[Path], PrivateKey],
        load_public: Callable[[Path], PublicKey],
    ) -> None:
        """The two keys of a pair, of which the private one may be elsewhere."""
        private = None
        if pair.files(folder):
            with self.noting(f"{whose}private key"):
                private = load_private(folder)
                self.append(Check(f"{whose}private key", "ok", str(folder / pair.private)))
        else:
            found = f"not here, as it should be everywhere but on {owner}"
            self.append(Check(f"{whose}private key", "ok", found))
        with self.noting(f"{whose}public key"):
            public = load_public(folder)
            to_do = "the two are of different pairs: restore the folder, or make new keys"
            self.verdict(f"{whose}public key", private is None or private.public == public, public.text, to_do)

    def at_hop(self, what: str, named: Task | Campaign, folder: Path) -> None:
        """Whether the keys of a hop's folder are those of one of the hops that a task or a campaign names."""
        with self.noting(f"{what}'s hop"):
            own, hops = keys.load_hop_public_key(folder), named.hops
            found = f"hop {hops.index(own) + 1} of {len(hops)}" if own in hops else "none of its hops"
            to_do = f"these keys take none of its layers off: create the {what} again with --hop"
            self.verdict(f"{what}'s hop", own in hops, found, to_do)

    def at_task(self, file: Path) -> Task | None:
        """The task's file; answers the task."""
        task = None
        with self.noting("task"):
            task = Task.load(file)
            self.append(Check("task", "ok", task.id))
            advice = "choose a method of bits or coins for people you do not know"
            self += [Check("task's method", "warn", warning, advice) for warning in task.warnings]
        return task

    def at_store(self, address: str, folder: Path | None = None) -> None:
        """What a store is, who holds it, and how much room its file has, if it is one.

        Args:
            address: the store.
            folder: keys; a store that a hop began must have been begun with them if they are a hop's.
        """
        name = name_of_store(address)
        try:
            store = inspect_store(address)
        except ParameterError as broken:
            found = f"{broken.value} {broken.problem.replace('must be', 'is not', 1)}"
            self.append(Check(name, "fail", found, broken.way_out))
            return
        self.verdict(name, store.condition == "ok", f"{store.kind}, {store.condition}", "restore it")
        self.append(Check(f"{name} held", "ok", store.held))
        if store.hop_keys and folder is not None and keys.is_hops(folder):
            with self.noting(f"{name} key"):
                is_own = store.hop_keys == (keys.load_hop_public_key(folder).text,)
                found = ", ".join(store.hop_keys)
                self.verdict(f"{name} key", is_own, found, f"{folder} is another hop's: name that of this store")
        if store.file is None:
            return
        mode = stat.S_IMODE(store.file.stat().st_mode)
        if os.name == "posix" and mode & 0o007:
            found = f"{mode:o}: everybody on this machine may read it"
            self.append(Check(f"{name} mode", "warn", found, f"chmod 600 {store.file}"))
        free = shutil.disk_usage(store.file.resolve().parent).free
        to_do, status = "free some: without room, reports are refused with 503", "fail" if free < LEAST_FREE else "warn"
        self.verdict(f"{name} disk", free >= LITTLE_FREE, f"{free / 2**30:,.1f} GB free", to_do, otherwise=status)

    def at_server(self, role: str, url: str, task: Task | None, tokens: Tokens | None) -> None:
        """Whether a server is there, whom it lets in, what it has of the task, and what time it is there."""
        if url.startswith("http:") and not is_loopback(httpx.URL(url).host):
            to_do = "serve with --tls-cert, and use https"
            self.append(Check(f"{role} TLS", "fail", "the token travels in the clear", to_do))
        with httpx.Client(timeout=5.0) as http:

            def calls(secret: str | None) -> Calls:
                return Calls(url, secret, http, RandomBits.secure(), patience=0.0)

            try:
                health = calls(None).once("GET", "/healthz")
                ready = calls(None).once("GET", "/readyz")
            except httpx.HTTPError as broken:
                found = f"{url} cannot be reached ({type(broken).__name__}: {broken})"
                self.append(Check(role, "fail", found, "is it running, and is the address right?"))
                return
            alive = health.is_success and health.text.strip() == "ok"
            to_do = "something else answers there: check the address and the port"
            self.verdict(role, alive, f"{url} answers {health.status_code}", to_do)
            to_do = "it is starting, or its store cannot be written: see its log"
            self.verdict(f"{role} ready", ready.is_success, f"{ready.status_code}", to_do)
            if task is None:
                return
            path, secrets = f"/v1/tasks/{task.id}", {} if tokens is None else tokens.secrets
            wrong, right = (HOP, ENROL) if role == "shuffler" else (ENROL, READ)
            self._refuses(calls(None), role, path, "nobody", 401)
            if wrong in secrets:
                self._refuses(calls(secrets[wrong]), role, path, wrong, 403)
            if right in secrets:
                self._serves(calls(secrets[right]), role, right, path, task)

    def _refuses(self, calls: Calls, role: str, path: str, who: str, expected: int) -> None:
        """Those without the role must not get in."""
        try:
            status = calls.once("GET", path).status_code
        except httpx.HTTPError as broken:
            self.append(Check(f"{role} refuses {who}", "fail", type(broken).__name__, "try again"))
            return
        unknown = status == 401 and expected == 403
        to_do = "it must not answer: is it a server of shuffledp with its tokens?"
        if unknown:
            to_do = "it does not know this token: it runs with another tokens.json"
        self.verdict(f"{role} refuses {who}", status in (401, 403) and not unknown, str(status), to_do)

    def _serves(self, calls: Calls, role: str, token: str, path: str, task: Task) -> None:
        """The task as the server has it, and its clock."""
        asked = time.time()
        try:
            document = calls.json(path)
        except ShuffleDPError as wrong:
            to_do = {
                401: "the server has other tokens: give it this folder's tokens.json",
                404: "start the server with --task, or send it the task as admin",
            }.get(getattr(wrong, "status", 0), "see the server's log")
            to_do = ENDED_ELSEWHERE if getattr(wrong, "kind", "") == TASK_ENDED.name else to_do
            self.append(Check(f"{role} serves the task", "fail", str(wrong), to_do))
            return
        answered = time.time()
        if role == "shuffler":
            routing = document.get("routing") or {}
            hop = routing.get("hop", 1)
            same = hop in range(1, task.routing.hops + 1) and routing == task.routing.at_hop(hop).document()
            token = f"{token}, hop {hop} of {len(task.hops)}" if task.hops else token
            counts = document.get("counts") or {}
            done = f"reports: {counts.get('reports', '?')}, batches to be sent: {counts.get('batches_waiting', '?')}"
        else:
            same = document.get("task") == task.document
            done = f"batches read: {document.get('batches_read', '?')}, void: {document.get('batches_void', '?')}"
        to_do = "it has another document under this id: send it the task's file again"
        self.verdict(f"{role} serves the task", same, f"token for {token}; {done}", to_do)
        if document.get("ended"):
            self.append(
                Check(f"{role} has ended the task", "warn", "it takes no batch of it any more", ENDED_ELSEWHERE)
            )
        there = document.get("time")
        if not isinstance(there, int | float):
            found = "the server does not say its time"
            self.append(Check(f"{role} clock", "fail", found, "is its version this one?"))
            return
        # The server looked at its clock somewhere between question and answer.
        skew = max(asked - there, there - answered, 0.0)
        self.verdict(f"{role} clock", skew <= LARGEST_SKEW, f"off by {skew:.1f} s", "set both clocks by NTP")
