"""A data set of messages: a Parquet file, or a folder of them, and what is known of it: sizes, rows, fingerprints.

What a job writes has a file `manifest.json`, written last. A data set that has one must be what it says; of one that
has none it is made when a job begins, and must hold until the job ends.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shuffledp.engines.contract import Engine
from shuffledp.errors import DataError, ParameterError
from shuffledp.files import other_version, read_json, whole_file
from shuffledp.jobs.parts import FilePart, LookedAt, Looking, joined
from shuffledp.jobs.rows import (
    BYTES,
    CIPHERTEXT,
    FIXED,
    LABEL,
    PAYLOAD,
    WHOLE,
    CiphertextRows,
    MessageRows,
    RowFormat,
    format_from,
)

SCHEMA = 1
MANIFEST = "manifest.json"
_AGAIN = "make the data set again"


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a data set.

    Attributes:
        name: relative to the data set's folder.
        size: how many bytes it has.
        rows: how many messages.
        sha256: of its bytes, in hexadecimal.
    """

    name: str
    size: int
    rows: int
    sha256: str

    def document(self) -> dict[str, Any]:
        """The file as JSON."""
        return {"name": self.name, "bytes": self.size, "rows": self.rows, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class DataManifest:
    """What a data set is, as it is kept beside its files.

    Attributes:
        rows: what a message is.
        files: in the order of their names.
        reports: how many reports the messages came in; None where nobody knows.
        facts: further whole numbers and names about it, such as how many messages were malformed.
    """

    rows: RowFormat
    files: tuple[DataFile, ...]
    reports: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def messages(self) -> int:
        """How many messages there are."""
        return sum(file.rows for file in self.files)

    @property
    def fingerprint(self) -> bytes:
        """32 bytes that stand for names, order and content of all files."""
        return hashlib.sha256(json.dumps([file.document() for file in self.files]).encode()).digest()

    def document(self) -> dict[str, Any]:
        """The manifest as JSON."""
        return {
            "schema": SCHEMA,
            "kind": self.rows.kind,
            "columns": self.rows.document(),
            "messages": self.messages,
            "reports": self.reports,
            "facts": dict(self.facts),
            "files": [file.document() for file in self.files],
        }

    def save(self, folder: Path) -> None:
        """Write it into its folder, whole or not at all."""
        with whole_file(folder / MANIFEST) as file:
            file.write(json.dumps(self.document(), indent=2).encode() + b"\n")

    @classmethod
    def load(cls, folder: Path) -> "DataManifest":
        """The manifest of a folder.

        Raises:
            ParameterError: there is none, or it is none of this version.
        """
        path = folder / MANIFEST
        document = read_json(path, "manifest", if_missing=_AGAIN, if_broken=_AGAIN)
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema != SCHEMA:
            raise other_version("manifest.schema", schema, SCHEMA, _AGAIN)
        try:
            files = tuple(
                DataFile(str(each["name"]), int(each["bytes"]), int(each["rows"]), str(each["sha256"]))
                for each in document["files"]
            )
            reports, facts = document["reports"], dict(document["facts"])
            found = cls(format_from(document["kind"], document["columns"]), files, reports, facts)
        except (KeyError, TypeError, ValueError) as broken:
            if isinstance(broken, ParameterError):
                raise
            raise DataError("manifest", str(path), "must have files, columns and reports", _AGAIN) from None
        if found.messages != document["messages"] or not (reports is None or (type(reports) is int and reports >= 0)):
            raise DataError("manifest", str(path), "must add up", _AGAIN)
        return found


@dataclass(frozen=True)
class DataSet:
    """A data set that was looked at, file by file.

    Attributes:
        source: the folder, or the one file.
        manifest: what it is.
        columns: the names that the message's columns have in its files.
        dropped: the names of all other columns, which no job reads.
        looks: what was seen of each file.
    """

    source: Path
    manifest: DataManifest
    columns: tuple[str, ...]
    dropped: tuple[str, ...]
    looks: tuple[LookedAt, ...]

    @classmethod
    def at(
        cls,
        source: Path,
        engine: Engine,
        *,
        column: str | None = None,
        label: str | None = None,
        reports: int | None = None,
        fingerprints: bool = True,
    ) -> "DataSet":
        """Look at a file, or at every file of a folder.

        Args:
            source: where it is; tasks of the engine must find it there, too.
            engine: what looks.
            column: the column of ciphertexts or of messages' numbers; `ciphertext` or `payload` if it is left out.
            label: the column of labels; `label`, if there is one, if it is left out.
            reports: how many reports the messages came in, where no manifest says it.
            fingerprints: whether files are known by their content from now on; those of a manifest are in any case.

        Raises:
            ParameterError: nothing is there, a file is torn or of another schema, or it is not what its manifest says.
        """
        base, names = _files_of(source)
        has_manifest = source.is_dir() and (source / MANIFEST).exists()
        try:
            looks = engine.fold(names, Looking(base, fingerprints or has_manifest), joined)
        except OSError as refused:
            if refused.strerror is None:
                raise
            problem = f"must be files that can be read, and {refused.filename or 'one'} cannot: {refused.strerror}"
            raise ParameterError("in", str(source), problem, "check it, then run the job again") from refused
        looks = tuple(sorted(looks, key=lambda look: look.name))
        columns, rows, dropped = _format_of(looks, column, label)
        files = tuple(DataFile(look.name, look.size, sum(look.groups), look.sha256) for look in looks)
        known = DataManifest.load(source) if has_manifest else None
        if known is not None:
            _check_known(source, known, files, rows)
            if reports is not None and known.reports not in (None, reports):
                problem = f"must be what the manifest says, {known.reports:,}"
                raise ParameterError("reports", reports, problem, "leave it out")
        said = reports if known is None or known.reports is None else known.reports
        if said is not None and said < 0:
            raise ParameterError("reports", said, "must be >= 0", "say how many reports the messages came in")
        manifest = DataManifest(rows, files, said, {} if known is None else known.facts)
        return cls(source, manifest, columns, dropped, looks)

    def parts(self, part_bytes: int) -> list[FilePart]:
        """The data set cut into parts of about so many bytes, none of which reaches over the end of a file."""
        return [
            part for number, look in enumerate(self.looks) for part in look.parts(number, self._rows_of(part_bytes))
        ]

    def _rows_of(self, part_bytes: int) -> int:
        return max(1, part_bytes // self.manifest.rows.width)

    def check_unchanged(self) -> None:
        """Refuse to go on if a file was written, replaced or removed since it was looked at.

        Raises:
            DataError: one was.
        """
        _, names = _files_of(self.source)
        if names != [look.name for look in self.looks]:
            raise DataError("data set", str(self.source), "must have the files that it had when the job began", _STILL)
        for look in self.looks:
            if not look.is_unchanged():
                raise DataError("file", look.path, "must not change while a job reads it", _STILL)


_STILL = "let it be written whole, then run the job again"


def _files_of(source: Path) -> tuple[Path, list[str]]:
    """The folder of a data set, and the names of its files in it."""
    if source.is_file():
        return source.parent, [source.name]
    if not source.is_dir():
        raise ParameterError("in", str(source), "must be a Parquet file or a folder of them", "check the path")
    names = []
    for path in source.rglob("*"):
        name = path.relative_to(source).as_posix()
        if name == MANIFEST or _is_ignored(name):
            continue
        if path.is_dir():
            if path.is_symlink():
                problem = "is a link to a folder, and links are not followed"
                raise DataError("in", str(path), problem, "copy that folder here, or name it as the input of a job")
            continue
        if path.suffix.lower() != ".parquet":
            raise DataError("file", str(path), "must be a Parquet file", "keep other files elsewhere")
        names.append(name)
    if not names:
        raise DataError("in", str(source), "must have at least one Parquet file", "collect messages first")
    # As text, everywhere: paths have another order, in which `day/x` comes before `day-2/x`.
    return source, sorted(names)


def _is_ignored(name: str) -> bool:
    """Whether a file is none of the data, as other programs have it: its name or a folder's begins with _ or a dot."""
    return any(part[0] in "._" for part in name.split("/"))


def ignored_in(source: Path) -> list[str]:
    """The Parquet files of a folder that are none of its data set, as a name on the way to them begins with _ or a dot.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.parquet", "_b.parquet", "_SUCCESS"):
    ...         (Path(folder) / name).touch()
    ...     ignored_in(Path(folder))
    ['_b.parquet']
    """
    found = (path.relative_to(source).as_posix() for path in source.rglob("*") if path.suffix.lower() == ".parquet")
    return sorted(filter(_is_ignored, found)) if source.is_dir() else []


def _format_of(
    looks: Iterable[LookedAt], column: str | None, label: str | None
) -> tuple[tuple[str, ...], RowFormat, tuple[str, ...]]:
    """The columns that are messages, what a message is, and the other columns."""
    first, *others = looks
    named = dict(first.columns)
    chosen = column or next((name for name in (CIPHERTEXT, PAYLOAD) if name in named), None)
    if chosen is None or chosen not in named:
        found = ", ".join(named) or "no column"
        raise DataError("column", chosen or found, f"must be one of {first.path}", f"name one of {found} with --column")
    kind = named[chosen]
    own: tuple[str, ...] = (chosen,)
    lengths = {length for look in (first, *others) for name, length in look.lengths if name == chosen}
    if kind in BYTES or kind.startswith(FIXED):
        if label is not None:
            raise ParameterError("label", label, "is in the clear, and ciphertexts are not", "leave it out")
        if len(lengths) != 1 or min(lengths) < 1:
            found = " and ".join(map(str, sorted(lengths))) or "no row"
            raise DataError(chosen, f"{found} bytes", "must be of one length everywhere", "seal messages of one length")
        rows: RowFormat = CiphertextRows(lengths.pop())
    elif kind in WHOLE:
        labelled = label if label is not None else LABEL if LABEL in named and chosen != LABEL else None
        if labelled is not None and named.get(labelled) not in WHOLE:
            raise DataError(
                "label", labelled, f"must be a column of whole numbers of {first.path}", "name one, or none"
            )
        own += () if labelled is None else (labelled,)
        rows = MessageRows(WHOLE[kind], None if labelled is None else WHOLE[named[labelled]])
    else:
        problem = f"must be whole numbers or byte strings, and is {kind}"
        raise DataError("column", chosen, problem, "name another with --column")
    wanted = [(name, named[name]) for name in own]
    for look in others:
        given = dict(look.columns)
        for name, needed in wanted:
            if given.get(name) != needed:
                problem = f"must have a column {name} of {needed}, as {first.name} has"
                raise DataError("file", look.path, problem, "make a data set of files of one schema")
    dropped = dict.fromkeys(name for look in (first, *others) for name, _ in look.columns if name not in own)
    return own, rows, tuple(dropped)


def _check_known(source: Path, known: DataManifest, files: tuple[DataFile, ...], rows: RowFormat) -> None:
    """Refuse a folder that is not what its manifest says."""
    now, then = ({file.name: file for file in each} for each in (files, known.files))
    for name in {**then, **now}:
        if now.get(name) != then.get(name):
            what = "is not there" if name not in now else "is not in it" if name not in then else "has changed since"
            raise DataError("data set", str(source), f"must be what its manifest says, and {name} {what}", _AGAIN)
    if rows != known.rows:
        raise DataError("data set", str(source), "must have the columns that its manifest says", _AGAIN)
