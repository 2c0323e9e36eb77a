"""The ledger: a population's privacy budget on disk, composed exactly over everything it was asked.

A ledger is one JSON file. It is changed only under an exclusive lock, read again under that lock, and
replaced whole, so that of two processes that spend at once the second sees what the first spent; each
change raises `version` by one. `spending` says what is composed and why that is right. The checksum
finds slips of an editor or a disk, not an enemy: who can write the file can forge it.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from shuffledp.accounting.recorded import pair_document, pair_from_document
from shuffledp.accounting.spending import Entry, Left, Spending, spent, what_is_left
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.files import kind_of_document, locked, other_version, read_json, settle_name, whole_file
from shuffledp.privacy import Privacy

__all__ = ["LOCK_TIMEOUT", "SCHEMA", "Account", "Entry", "Ledger", "Left", "entry_document"]

SCHEMA = 1
"""The version of a ledger's file; another one is refused."""
LOCK_TIMEOUT = 30.0
"""Seconds that a process waits for another one's change."""

_RESTORE = "restore the file from a copy"
_KEYS = {"schema", "version", "population", "epsilon", "delta", "state", "entries", "spent", "checksum"}
_ENTRY_KEYS = {"time", "fingerprint", "users", "description", "epsilon", "delta", "pair", "extra_delta"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A ledger's content at one version: whose budget, how much, and every question so far.

    Attributes:
        population: whose budget it is.
        budget: the (epsilon, delta) that all questions together may spend.
        state: open, or closed for good.
        entries: every question so far, in order.
        version: raised by one with every change of the file.

    >>> Account(population="panel", budget=Privacy(1, 1e-6)).left().question.epsilon
    1.0
    """

    population: str
    budget: Privacy
    state: Literal["open", "closed"] = "open"
    entries: tuple[Entry, ...] = ()
    version: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.population, str) or not self.population.strip():
            raise ParameterError("population", self.population, "must be a name", "say whose budget this is")

    def document(self) -> dict[str, Any]:
        """The content as JSON, with what is spent in all and a checksum."""
        epsilon, delta = spent(self.entries, self.budget)
        body = {
            "schema": SCHEMA,
            "version": self.version,
            "population": self.population,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "state": self.state,
            "entries": [entry_document(entry) for entry in self.entries],
            "spent": {
                "epsilon": epsilon,
                "delta": delta,
                "extra_delta": Spending(self.entries).extra_delta,
                "questions": len(self.entries),
            },
        }
        return body | {"checksum": _checksum(body)}

    @classmethod
    def from_document(cls, document: Any) -> "Account":
        """The content that a JSON document describes; what is spent is composed again, not believed."""
        if not isinstance(document, dict):
            raise DataError("ledger", type(document).__name__, "must be a JSON object", _RESTORE)
        if (kind := kind_of_document(document)) not in (None, "a ledger"):
            raise DataError("ledger", kind, "must be a ledger's file", "make it with `shuffledp ledger open`")
        if document.get("schema") != SCHEMA:
            raise other_version("ledger.schema", document.get("schema"), SCHEMA)
        _check_keys(document, _KEYS, "ledger")
        if document["state"] not in ("open", "closed"):
            raise DataError("ledger.state", document["state"], "must be open or closed", _RESTORE)
        entries = document["entries"]
        if not isinstance(entries, list):
            raise DataError("ledger.entries", entries, "must be a list", _RESTORE)
        version = document["version"]
        if isinstance(version, bool) or not isinstance(version, int) or version <= len(entries):
            raise DataError("ledger.version", version, f"must be a number above {len(entries)}", _RESTORE)
        try:
            account = cls(
                population=document["population"],
                budget=Privacy(document["epsilon"], document["delta"]),
                state=document["state"],
                entries=tuple(_entry_from_document(entry, f"entries[{i}]") for i, entry in enumerate(entries)),
                version=version,
            )
        except DataError as error:
            raise DataError(f"ledger.{error.parameter}", error.value, error.problem, error.way_out) from error
        except ParameterError as error:
            raise DataError(f"ledger.{error.parameter}", error.value, error.problem, _RESTORE) from error
        except OverflowError as error:
            raise DataError("ledger", "a number beyond them", "must hold numbers below 1e308", _RESTORE) from error
        body = {key: value for key, value in document.items() if key != "checksum"}
        if document["checksum"] != _checksum(body):
            raise DataError("ledger.checksum", document["checksum"], "must be that of the rest", _RESTORE)
        return account

    def with_entry(self, entry: Entry) -> "Account":
        """The account after one more question, or an InfeasibleError that says what is left.

        A question that fits by its bare claim only (its pair's bound may lose more to rounding) is kept
        as that claim.
        """
        for recorded in (entry, entry.claim_only()):
            after = Spending([*self.entries, recorded])
            if after.fits(self.budget):
                return replace(self, entries=tuple(after.entries), version=self.version + 1)
        needed = Spending([*self.entries, entry]).epsilon(self.budget.delta)
        need = f"have epsilon {needed:.6g}" if math.isfinite(needed) else "have more delta"
        raise InfeasibleError(
            "budget",
            f"epsilon {self.budget.epsilon:g} and delta {self.budget.delta:g}",
            f"must {need} to cover this question too",
            what_is_left(self.entries, self.budget).in_words(),
        )

    def left(self) -> Left:
        """What may still be asked; nothing once the account is closed."""
        left = what_is_left(self.entries, self.budget)
        return left if self.state == "open" else replace(left, question=None)


class Ledger:
    """A budget's file: `open` makes it, `load` reads it, `spend` and `close` change it.

    Attributes:
        path: the file.
        account: what was in it when it was last read.
        timeout: how many seconds a change waits for another process's.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.open(Path(folder) / "panel.json", "panel", Privacy(1, 1e-6))
    ...     question = Entry.of_claim(time="2026-01-31T12:00:00Z", fingerprint="0" * 64, users=100,
    ...                               description="how many", claim=Privacy(0.4, 4e-7))
    ...     ledger.spend(question)
    ...     ledger.spend(question)
    ...     ledger.spend(question)
    Traceback (most recent call last):
        ...
    shuffledp.errors.InfeasibleError: budget must have more delta to cover this question too,
    got epsilon 1 and delta 1e-06: left is a question of epsilon 0.195 and delta ...
    """

    def __init__(self, path: Path, account: Account, timeout: float = LOCK_TIMEOUT) -> None:
        self.path = path
        self.account = account
        self.timeout = timeout

    @classmethod
    def open(cls, path: Path | str, population: str, budget: Privacy, *, timeout: float = LOCK_TIMEOUT) -> "Ledger":
        """A new ledger; a file that is there already is refused, as a budget is granted once."""
        ledger = cls(Path(path), Account(population=population, budget=budget), timeout)
        with locked(ledger.path, timeout=timeout, parameter="ledger"):
            if ledger.path.exists():
                raise ParameterError(
                    "ledger", str(path), "must be a new file", "a budget is granted once: show it, or name another"
                )
            ledger._write(ledger.account)
        return ledger

    @classmethod
    def load(cls, path: Path | str, *, timeout: float = LOCK_TIMEOUT) -> "Ledger":
        """The ledger as it is on disk now."""
        return cls(Path(path), _read(Path(path)), timeout)

    def spend(self, entry: Entry) -> None:
        """Record a question before it is asked; if it would pass the budget, nothing is written."""
        with locked(self.path, timeout=self.timeout, parameter="ledger"):
            self._add(entry)

    def spend_once(self, entry: Entry) -> bool:
        """Record a question before it is asked, unless one of its name and plan is there; answers whether it was now.

        Whether it is there is looked up under the lock: of several who charge the same at once, one does.
        """
        with locked(self.path, timeout=self.timeout, parameter="ledger"):
            name = entry.description, entry.fingerprint
            if name in {(known.description, known.fingerprint) for known in _read(self.path).entries}:
                return False
            self._add(entry)
        return True

    def close(self) -> None:
        """Let nothing more be asked, for ever."""
        with locked(self.path, timeout=self.timeout, parameter="ledger"):
            current = self._current()
            self._write(replace(current, state="closed", version=current.version + 1))

    def left(self) -> Left:
        """What may still be asked, as of the version that this object last read or wrote."""
        return self.account.left()

    def _current(self) -> Account:
        """What is on disk, which another process may have changed; only under the lock."""
        current = _read(self.path)
        if current.population != self.account.population or current.budget != self.account.budget:
            raise DataError(
                "ledger",
                str(self.path),
                f"must still be the budget of {self.account.population}",
                "another ledger has taken its name: load it again",
            )
        if current.state == "closed":
            raise ParameterError("ledger", str(self.path), "must be open", "it was closed and stays so")
        return current

    def _add(self, entry: Entry) -> None:
        """One more question; only under the lock."""
        self._write(self._current().with_entry(entry))

    def _write(self, account: Account) -> None:
        text = json.dumps(account.document(), indent=2, allow_nan=False) + "\n"
        with whole_file(self.path, parameter="ledger") as file:
            file.write(text.encode())
        self.account = account
        settle_name(self.path)


def _read(path: Path) -> Account:
    way_out = "make it with `shuffledp ledger open`"
    return Account.from_document(read_json(path, "ledger", if_missing=way_out, if_broken=_RESTORE))


def entry_document(entry: Entry) -> dict[str, Any]:
    """An entry as JSON.

    Args:
        entry: a question.

    Returns:
        What stands in a ledger's file for it.

    >>> entry = Entry.of_claim(time="2026-01-31T12:00:00Z", fingerprint="0" * 64, users=100,
    ...                        description="how many", claim=Privacy(0.5, 1e-7))
    >>> entry_document(entry)["users"], entry_document(entry)["epsilon"]
    (100, 0.5)
    """
    return {
        "time": entry.time,
        "fingerprint": entry.fingerprint,
        "users": entry.users,
        "description": entry.description,
        "epsilon": entry.claim.epsilon,
        "delta": entry.claim.delta,
        "pair": pair_document(entry.pair),
        "extra_delta": entry.extra_delta,
    }


def _entry_from_document(document: Any, where: str) -> Entry:
    if not isinstance(document, dict):
        raise DataError(where, document, "must be an object", _RESTORE)
    _check_keys(document, _ENTRY_KEYS, where)
    try:
        return Entry(
            time=document["time"],
            fingerprint=document["fingerprint"],
            users=document["users"],
            description=document["description"],
            claim=Privacy(document["epsilon"], document["delta"]),
            pair=pair_from_document(document["pair"]),
            extra_delta=document["extra_delta"],
        )
    except ParameterError as error:
        raise DataError(f"{where}.{error.parameter}", error.value, error.problem, _RESTORE) from error


def _check_keys(document: Mapping[str, Any], keys: set[str], where: str) -> None:
    missing, unknown = sorted(keys - document.keys()), sorted(document.keys() - keys)
    if missing:
        raise DataError(f"{where}.{missing[0]}", None, "must be there", _RESTORE)
    if unknown:
        raise DataError(f"{where}.{unknown[0]}", document[unknown[0]], "must not be there", _RESTORE)


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
