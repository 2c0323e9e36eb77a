"""What experiments share: their options, running with a bar, and telling what was found."""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from shuffledp.cli import options
from shuffledp.cli.engine_options import ENGINE, HERE, EngineAsked
from shuffledp.cli.kept import KeptFiles, check_new
from shuffledp.cli.output import next_steps, print_json, show, table
from shuffledp.cli.progress import of_how_much

T = TypeVar("T")

Resume = Annotated[
    Path | None,
    typer.Option("--resume", help="Keep every row in this file, and skip those in it.", metavar="FILE"),
]


@dataclass(frozen=True, slots=True)
class Going:
    """How an experiment is run: where its picture is drawn, whether a program reads what it prints, and its table.

    >>> Going(None, False).kept["cache"] is None, Going(Path("a.png"), False).kept["cache"]
    (True, PosixPath('a.png.rows.json'))
    """

    picture: Path | None
    as_json: bool
    csv: Path | None = None
    engine: EngineAsked = HERE
    resume: Path | None = None

    def measured(self, what: str, experiment: Callable[..., T], **asked: Any) -> T:
        """What an experiment finds; a person sees a bar meanwhile, with a word about what is done."""
        with of_how_much(what, shown=not self.as_json) as progress:
            if self.engine == HERE or "workers" not in asked:
                return experiment(progress=progress, **asked)
            with self.engine.open() as engine:
                return experiment(progress=progress, engine=engine, **asked)

    @property
    def kept(self) -> dict[str, Any]:
        """In how many processes rows are measured; they are kept beside a picture or a table: a second run goes on."""
        beside = self.csv if self.picture is None else self.picture
        cache = None if beside is None else beside.with_name(beside.name + ".rows.json")
        cells = {} if self.resume is None else {"cells": self.resume}
        return {"workers": min(os.cpu_count() or 1, 8), "cache": cache, **cells}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What an experiment has found, in all forms."""

    document: Any
    """For a program: a mapping, or a dataclass whose fields are one."""
    tables: Sequence[Any]
    """For a person; sentences among them are folded where the screen ends."""
    words: Sequence[str] = ()
    """Lines below the tables, as they are."""
    again: Sequence[tuple[str, str]]
    """What to try next, as `next_steps` has it."""
    draw: Callable[[Path], None] | None = None
    rows: Sequence[Any] = ()
    """What --csv writes: a dataclass a row, of numbers and words; lists in it are left out."""


def experiment(*, pictured: bool = True, swept: bool = False) -> Callable[[Callable[..., Told]], Callable[..., None]]:
    """Make a command of a function that is `Going` and has options of its own: --picture and --json are added.

    Args:
        pictured: whether it can be drawn and written as a table.
        swept: whether it measures many rows apart from each other: on any engine, and gone on with after a stop.
    """
    shared: dict[str, tuple[Any, Any]] = {}
    if pictured:
        shared = {"out": (options.Out, None), "picture": (options.Picture, None), "csv": (options.Csv, None)}
    if swept:
        shared |= {"resume": (Resume, None), **ENGINE}
    shared["as_json"] = (options.AsJson, False)

    def decorate(run: Callable[..., Told]) -> Callable[..., None]:
        def command(
            *,
            as_json: bool,
            out: Path | None = None,
            picture: Path | None = None,
            csv: Path | None = None,
            resume: Path | None = None,
            **asked: Any,
        ) -> None:
            engine = EngineAsked.of(asked) if swept else HERE
            kept = KeptFiles.at(out=out, picture=picture, csv=csv, reads=(asked.get("file"),))
            if kept.table is not None:
                from shuffledp.tables.written import check_table_path

                check_table_path(kept.table, "csv")
            if resume is not None:
                check_new("resume", resume, (kept.picture, kept.table, kept.document))
            told = run(Going(kept.picture, as_json, kept.table, engine, resume), **asked)
            if kept.table is not None:
                write_rows(kept.table, told.rows)
            _tell(told, kept, as_json, *_promise(asked))

        kind = inspect.Parameter.KEYWORD_ONLY
        own = [each.replace(kind=kind) for each in inspect.signature(run).parameters.values()][1:]
        more = [inspect.Parameter(n, kind, default=default, annotation=a) for n, (a, default) in shared.items()]
        command.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in (*own, *more)}
        command.__doc__ = run.__doc__
        return command

    return decorate


def _promise(asked: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    """Why the privacy of these options is weak, a sentence each, and in a few words; nothing where it is not."""
    from shuffledp.privacy import Privacy

    epsilon, delta, users = (asked.get(name) for name in ("epsilon", "delta", "users"))
    if not isinstance(delta, float) or not 0 < delta < 1:
        return (), ""
    # An experiment over several epsilons is about none of them.
    promise = Privacy(epsilon if isinstance(epsilon, float) else 1.0, delta)
    people = users if isinstance(users, int) else None
    return promise.cautions(people), promise.brief_caution(people)


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    """Write rows as a tidy table: a row each, a column for every number or word of it, empty where there is none."""
    import numpy as np

    from shuffledp.tables.written import write_table

    flattened = [flat(row) for row in rows]
    names = [name for name in flattened[0] if not isinstance(flattened[0][name], list | tuple)] if flattened else []
    columns = {name: [row[name] for row in flattened] for name in names}
    # Numbers stay numbers where some row has none.
    write_table(path, {name: np.array(cells, dtype=object) for name, cells in columns.items()})


def _tell(told: Told, kept: KeptFiles, as_json: bool, cautions: Sequence[str] = (), brief: str = "") -> None:
    if kept.picture is not None and told.draw is not None:
        from shuffledp.pictures.curves import footnote

        with footnote(brief):
            told.draw(kept.picture)
    found = told.document if isinstance(told.document, Mapping) else asdict(told.document)
    document = {"schema": 1, **found, "warnings": [*found.get("warnings", ()), *cautions]}
    kept.write(document)
    if as_json:
        print_json(document)
        return
    show(*told.tables)
    warned = [f"Warning: {caution}" for caution in cautions]
    made = [f"{what}: {path}" for what, path in kept.facts if path is not None]
    for line in (*told.words, *warned, *made):
        typer.echo(line)
    next_steps(told.again)


def listed(title: str, headings: str, rows: Iterable[T], cells: Callable[[T], str], **styles: Any) -> Any:
    """A table whose headings, and whose cells of a row, are written with bars between: "users | regret"."""
    return table(title, headings.split(" | "), (cells(row).split(" | ") for row in rows), **styles)


def flat(row: Any, *but: str, **renamed: str) -> dict[str, Any]:
    """The fields of a row as JSON, but for some, and some under other names; a slope is three, with its interval."""
    found: dict[str, Any] = {}
    for field, value in asdict(row).items():
        name = renamed.get(field, field)
        if isinstance(value, dict):
            found |= {name + ("" if part == "slope" else f"_{part}"): number for part, number in value.items()}
        elif field not in but:
            found[name] = value
    return found


def whole_numbers(text: str, parameter: str, example: str) -> list[int]:
    """The whole numbers between commas.

    >>> whole_numbers("1,2,3", "shufflers", "1,2")
    [1, 2, 3]
    """
    from shuffledp.errors import ParameterError

    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        problem = "must be whole numbers with commas between"
        raise ParameterError(parameter, text, problem, f"try {example}") from None
