"""Where an answer is kept: one rule for `-o`, `--picture` and `--csv` in every command.

`--picture FILE` draws, `--csv FILE` writes the table, and `-o FILE` is understood by its suffix: a picture's draws, a
table's writes the table, and any other is the command's own document (a plan, a model, a task, an answer as JSON).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.cli.output import is_same_file
from shuffledp.errors import ParameterError
from shuffledp.files import plain

if TYPE_CHECKING:
    from shuffledp.protocols.presentation import Presentation

DOCUMENTS = (".json",)
TABLES = (".csv", ".parquet")
PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """The files that an answer goes to; None for those that nobody asked for."""

    document: Path | None = None
    table: Path | None = None
    picture: Path | None = None
    out: Path | None = None
    """What `-o` named, one of the three."""

    @classmethod
    def at(
        cls,
        *,
        out: Path | None = None,
        picture: Path | None = None,
        csv: Path | None = None,
        reads: Iterable[Path | str | None] = (),
        no_picture: str = "",
        no_table: str = "",
        documents: tuple[str, ...] = DOCUMENTS,
    ) -> "KeptFiles":
        """The files that the options name, each checked before any work is done.

        Args:
            out: what `-o` names.
            picture: what `--picture` names.
            csv: what `--csv` names.
            reads: files that the command reads, and that must stay as they are.
            no_picture: why the command draws nothing; empty if it draws.
            no_table: why the command has no table; empty if it has one.
            documents: suffixes of the command's own document; none where it may have any name.

        Raises:
            ParameterError: a name from which no format can be told, two for one thing, or one that cannot be written.
        """
        named: dict[str, tuple[str, Path]] = {}
        for option, path in (("picture", picture), ("csv", csv), ("out", out)):
            if path is None:
                continue
            kind = {"picture": "picture", "csv": "table"}.get(option) or _kind(path, no_picture, no_table, documents)
            if kind in named:
                problem = f"is a second {kind}, beside --{named[kind][0]}"
                raise ParameterError(option, str(path), problem, "leave one out")
            refused = {"picture": no_picture, "table": no_table}.get(kind, "")
            if refused:
                raise ParameterError(option, str(path), refused, "leave it out")
            if kind != "document":
                _check_suffix(option, path, kind)
            named[kind] = (option, path)
        files = list(named.values())
        for place, (option, path) in enumerate(files):
            check_new(option, path, reads)
            if any(path.absolute() == other.absolute() for _, other in files[:place]):
                raise ParameterError(option, str(path), "must be another file than the others", "name another")
        if "picture" in named:
            from shuffledp.pictures.curves import new_figure

            # Whether pictures can be drawn at all is known before any work is done, too.
            new_figure(named["picture"][1], width=1)
        return cls(out=out, **{kind: path for kind, (_, path) in named.items()})

    def write(
        self, document: Mapping[str, Any], presented: "Presentation | None" = None, column: str | None = None
    ) -> None:
        """Write everything that was asked for, each file whole or not at all.

        Args:
            document: the answer as JSON.
            presented: the answer as a picture and a table.
            column: what the values are, written beside the picture's axis.
        """
        from shuffledp.cli.output import draw
        from shuffledp.tables.whole import write_text_whole
        from shuffledp.tables.written import write_table

        if self.picture is not None and presented is not None:
            draw(presented, self.picture, column)
        if self.table is not None and presented is not None:
            write_table(self.table, presented.columns)
        if self.document is not None:
            import json

            write_text_whole(self.document, json.dumps(plain(document), indent=2, allow_nan=False) + "\n")

    @property
    def facts(self) -> list[tuple[str, Path | None]]:
        """The files in words, for a screen."""
        return [("picture", self.picture), ("table", self.table), ("answer", self.document)]

    @property
    def named(self) -> dict[str, Path | None]:
        """The files as JSON."""
        return {"out": self.out, "picture": self.picture, "csv": self.table}


def _kind(path: Path, no_picture: str, no_table: str, documents: tuple[str, ...]) -> str:
    """What `-o` means by this name."""
    suffix = path.suffix.lower()
    kind = "picture" if suffix in PICTURES else "table" if suffix in TABLES else "document"
    if kind == "document" and documents and suffix not in documents:
        kinds = [*documents, *(() if no_table else TABLES), *(() if no_picture else PICTURES)]
        problem = f"must end in {', '.join(kinds[:-1])} or {kinds[-1]}" if len(kinds) > 1 else "must end in .json"
        raise ParameterError("out", str(path), problem, "the suffix says what is written")
    return kind


def _check_suffix(option: str, path: Path, kind: str) -> None:
    known = {"picture": PICTURES, "table": TABLES}[kind]
    if path.suffix.lower() not in known:
        problem = f"must end in {', '.join(known[:-1])} or {known[-1]}"
        raise ParameterError(option, str(path), problem, f"name a {kind}")


def check_new(option: str, path: Path, reads: Iterable[Path | str | None] = ()) -> None:
    """Refuse a name that no file can be written to, or that of a file which is read, before any work is done.

    Args:
        option: the parameter that names it.
        path: the file.
        reads: files that the command reads.
    """
    try:
        is_folder, has_folder = path.is_dir(), path.absolute().parent.is_dir()
    except (OSError, ValueError):
        raise ParameterError(option, str(path), "must be a name that a file can have", "name another") from None
    if is_folder:
        raise ParameterError(option, str(path), "must be a file, not a folder", "name a file in it")
    if not has_folder:
        raise ParameterError(option, str(path), "must be in a directory that exists", "create it, or name another")
    for read in reads:
        # People's own data stays as it is.
        if read is not None and is_same_file(path, Path(read)):
            raise ParameterError(
                option, str(path), "must be another file than the data's own file or one that is read", "name another"
            )
