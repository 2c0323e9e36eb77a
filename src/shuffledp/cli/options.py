"""Options that several commands share, each declared once, and commands that take those of a plan."""

import inspect
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shuffledp.cli.asked import Asked, names_of_options
from shuffledp.cli.limits import in_numbers, in_one_way, read_limits, with_both_ways
from shuffledp.cli.said import Said
from shuffledp.cli.usage import whole_number
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.cli.days import DayRange
    from shuffledp.randomness import RandomBits
    from shuffledp.tables.reading import Reading

AnalyzerUrl = Annotated[str | None, typer.Option(help="Where the analyzer is.", metavar="URL")]
AllowUnbounded = Annotated[
    bool, typer.Option("--allow-unbounded", help="Allow a method in which one lying client can spoil a batch.")
]
DemoFolder = Annotated[Path, typer.Option("--folder", help="Where keys, stores and the picture go.", metavar="FOLDER")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Column = Annotated[str | None, typer.Option(help="The file's column of values.", metavar="C")]
Csv = Annotated[Path | None, typer.Option("--csv", help="Write the table, .csv or .parquet.", metavar="FILE")]
Columns = Annotated[str | None, typer.Option(help="Vectors: the file's columns; all if left out.", metavar="A,B,C")]
CampaignFile = Annotated[Path, typer.Option("--campaign", help="The campaign's file.", metavar="FILE")]
Clip = Annotated[bool, typer.Option("--clip", help="Bring values into the plan's range, and count them.")]
Delta = Annotated[float | None, typer.Option(help="The probability left over, well below 1/N.", metavar="D")]
Epsilon = Annotated[float | None, typer.Option(help="The privacy target; smaller is safer.", metavar="E")]
Fast = Annotated[bool, typer.Option("--fast", help="Draw the estimate from its own law, without messages.")]
File = Annotated[
    Path, typer.Argument(help="CSV, Parquet or .npy, a row a person; - reads CSV.", metavar="FILE", show_default=False)
]
FixedSeed = Annotated[int, typer.Option(help="Another number, other data and noise.", metavar="S")]
Ledger = Annotated[Path | None, typer.Option(help="Charge this budget before anybody is asked.", metavar="FILE")]
HonestFraction = Annotated[float, typer.Option(help="Users assumed to follow the protocol.", metavar="G")]
KeysFolder = Annotated[Path, typer.Option("--keys", help="The folder of keys.", metavar="FOLDER")]
LedgerFile = Annotated[
    Path | None, typer.Option("--ledger", help="Spend its epsilon and delta from this budget.", metavar="FILE")
]
MaxMessages = Annotated[int | None, typer.Option(help="Messages a user may send at most.", metavar="K")]
OptionalFile = Annotated[
    Path | None,
    typer.Argument(help="CSV, Parquet or .npy, a row a person; - reads CSV.", metavar="[FILE]", show_default=False),
]
Patience = Annotated[float, typer.Option(help="Seconds to try again for.", metavar="S")]
Out = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--out",
        help="By its suffix: .json the answer, .csv or .parquet the table, .png .svg .pdf the picture.",
        metavar="FILE",
    ),
]
Picture = Annotated[Path | None, typer.Option("--picture", help="Draw it: .png, .svg or .pdf.", metavar="FILE")]
PlanOut = Annotated[Path | None, typer.Option("-o", "--out", help="Write the plan to this file.", metavar="FILE")]
Seed = Annotated[int | None, typer.Option(help="A repeatable simulation; protects nobody.", metavar="S")]
HopKeys = Annotated[
    list[Path] | None,
    typer.Option("--hop", help="A hop's folder of keys, or its hop.pub; repeat it, first hop first.", metavar="FOLDER"),
]
IssuerFile = Annotated[
    Path | None,
    typer.Option("--issuer", help="Who says who may take part: its folder of keys, or issuer.pub.", metavar="FOLDER"),
]
ShufflerUrl = Annotated[str | None, typer.Option(help="Where the shuffler is.", metavar="URL")]
Synthetic = Annotated[bool, typer.Option("--synthetic", help="Made-up data instead of a file.")]
TaskFile = Annotated[Path, typer.Option("--task", help="The task's file.", metavar="FILE")]
Users = Annotated[int | None, typer.Option(help="How many people report.", metavar="N", parser=whole_number)]
WithTruth = Annotated[
    bool, typer.Option("--with-truth", help="Show what is in the data without noise, too: not for publication.")
]

_PLAN_FILE = Annotated[
    Path | None, typer.Option("--plan", help="A plan made with `shuffledp plan ... -o`.", metavar="FILE")
]
_WHAT = "What to compute, if there is no --plan: binary-sum unless it is named."
_PROTOCOL = {
    "argument": Annotated[str | None, typer.Argument(help=_WHAT, metavar="[PROTOCOL]", show_default=False)],
    "option": Annotated[str | None, typer.Option("--protocol", help=_WHAT, metavar="NAME")],
}
_NOISE = Literal["auto", "carried", "laplace", "coins", "skellam"]
_CONSTANTS = Literal["exact", "paper"]

REQUEST: dict[str, tuple[Any, Any]] = {
    "users": (Users, None),
    "epsilon": (Epsilon, None),
    "delta": (Delta, None),
    "method": (Annotated[str, typer.Option(help="auto, or one of `shuffledp protocols`.", metavar="M")], "auto"),
    "noise": (
        Annotated[_NOISE, typer.Option("--noise", "--method", help="Carried from batch to batch, or of every batch.")],
        "auto",
    ),
    "honest_fraction": (HonestFraction, 1.0),
    "max_messages": (MaxMessages, None),
    "live": (
        Annotated[bool, typer.Option("--live", help="Only what the live service takes: no liar can spoil it.")],
        False,
    ),
    "constants": (Annotated[_CONSTANTS, typer.Option(help="Exact noise, or the paper's own.")], "exact"),
}
"""What every protocol may be asked for, with what it is if it is left out; `noise` is a counter's word for method."""


def _option(what: str, metavar: str | None = None, kind: Any = str) -> Any:
    return Annotated[kind | None, typer.Option(help=what, metavar=metavar)]


DOMAIN: dict[str, Any] = {
    "domain": _option(
        "Categories: a,b,c; LOW:HIGH (whole numbers or dates); a file, a name a line; hash:CELLS[:SALT]. "
        "Numbers: LOW:HIGH; two axes: LOW:HIGHxLOW:HIGH.",
        "DOMAIN",
    ),
    "categories": _option("Categories: how many, numbered from 0.", "N", int),
    "other": _option("The category of all values outside a list of names.", "NAME"),
    "at_most": _option("Repeat users: how many rows of one person count; goes with --user.", "M", int),
    "groups": _option("By group: the public list of groups, a,b,c or a file; goes with --by.", "NAMES"),
    "other_group": _option("By group: the group of everybody who is in none of the list.", "NAME"),
    "steps": _option("ranges: put reals on a public grid of so many cells.", "N", int),
    "branching": _option("ranges: children of a node; 2 is dyadic.", "R", int),
    "low": _option("The least number that anybody may have, or the first day; --domain LOW:HIGH says both.", "A"),
    "high": _option("The largest number that anybody may have, or the last day.", "B"),
    "dimension": _option("Vectors: numbers in a vector.", "D", int),
    "radius": _option("Vectors: the longest vector.", "R", float),
    "rotation": _option("vector-sum: rotate by public signs of this seed.", "S", int),
    "largest_weight": _option("weighted-mean: how much one user may weigh at most.", "W", float),
    "length": _option("heavy-hitters: bytes of a string that count; longer ones are cut.", "L", int),
    "top": _option("heavy-hitters: strings to find, at most.", "K", int),
    "alphabet": _option("heavy-hitters: symbols strings are made of; any text.", "ABC"),
    "keep": _option("heavy-hitters: prefixes that survive a level, at most.", "N", int),
    "distance": _option("distribution-test: the total variation distance that must be seen.", "A", float),
    "against": _option(
        "distribution-test: a file of probabilities, one a category or NAME,P; uniform if left out.", "FILE"
    ),
    "false_alarm": _option("distribution-test: the probability to reject a true claim.", "P", float),
    "certificate": _option(
        "distribution-test: whether its threshold is simulated or proved.", kind=Literal["simulated", "proved"]
    ),
    "public_seed": _option("distribution-test: the public coins of compressed, drawn before the data.", "S", int),
    "values": _option(
        "counter: 0 or 1; counts of a person's rows; numbers in [0, 1]; vectors; or categories. Bits by default.",
        kind=Literal["bits", "counts", "reals", "vectors", "categories"],
    ),
    "shufflers": _option("counter: how many work concurrently; 4 if `count` is not told.", "K", int),
    "confidence": _option("counter: of the bound over the whole horizon; 0.95 by default.", "C", float),
    "estimator": _option(
        "counter: batches added up, two that close together combined, or noise carried between them.",
        kind=Literal["auto", "completed", "combined", "carried"],
    ),
    "silent_slots": _option(
        "counter: plan for so many slots of false people in a row, where noise is carried.", "R", int
    ),
    "bound": _option(
        "counter: proved, or measured on the noise itself (slower, smaller).", kind=Literal["proved", "certified"]
    ),
}
"""What says which values users have, and how a family counts them; none has a default here."""


READING: dict[str, Any] = {
    "missing": _option(
        "What people without a value report: default=VALUE, A=VALUE,B=VALUE by column, other (a category), or refuse.",
        "POLICY",
    ),
    "delimiter": _option("CSV: what is between cells; told by the header if left out.", "CHAR"),
    "decimal": _option("CSV: what stands before decimals, a comma or a point; a point if left out.", "CHAR"),
    "encoding": _option("CSV: its encoding, such as latin-1; UTF-8 if left out.", "NAME"),
    "sql": _option("Select the rows with DuckDB, one a person; a CSV or Parquet file is called data.", "QUERY"),
}
"""How a file is read, for every command that reads one."""


def reading_of(words: dict[str, Any]) -> "Reading":
    """Take the options of a file out of a command's: how it is read, and whether a refusal may tell the truth."""
    from shuffledp.tables.missing import Missing
    from shuffledp.tables.reading import Reading

    missing = Missing.of(words.pop("missing"), tells=bool(words.get("with_truth")), is_option=True, several=True)
    said = {name: words.pop(name) for name in READING if name != "missing"}
    return Reading(**said, missing=missing)


def reads_file(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes no plan the options of a file: its parameter `reading` is filled with them."""

    @wraps(command)
    def run(**words: Any) -> None:
        reading = reading_of(words)
        command(**words, reading=reading)

    kind = inspect.Parameter.KEYWORD_ONLY
    own = [each for each in inspect.signature(command).parameters.values() if each.name != "reading"]
    shared = [inspect.Parameter(name, kind, default=None, annotation=each) for name, each in READING.items()]
    taking = [*(parameter.replace(kind=kind) for parameter in own), *shared]
    taking.sort(key=lambda parameter: parameter.name == "as_json")
    run.__signature__ = inspect.Signature(taking)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in taking}
    del run.__wrapped__
    return run


WHOSE: dict[str, tuple[str, Any]] = {
    "user": ("at_most", _option("Repeat users: the file's column that says whose a row is.", "C")),
    "by": ("groups", _option("By group: the file's column of groups, which stay private.", "C")),
}
"""Columns of a file beside its values, for commands that read one: the option that each goes with, and its own."""


def bits_of(seed: int | None) -> "RandomBits":
    """The operating system's randomness, or a repeatable source if a seed is given."""
    from shuffledp.randomness import RandomBits

    return RandomBits.secure() if seed is None else RandomBits.seeded(seed)


def takes_plan(
    *of: str,
    protocol: Literal["argument", "option"] = "argument",
    domain: Collection[str] = tuple(DOMAIN),
    without: Collection[str] = ("noise",),
    days: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a plan: a file, or a protocol with everything that may be asked of it.

    The command's first parameter, which must be called `asked` or `plan`, is filled with an `Asked` or with its plan.
    A command with a parameter `file` also gets the options that say how a file is read.
    An option that the command declares itself is the command's own.

    Args:
        *of: the families that the command is for, all of them if none is named. Of several it is the one that
            has most of the options that were typed, and the first of those.
        protocol: how a family is named where all are taken.
        domain: options that say which values there are; all of this package's families if left out.
        without: options that the command does not have, of a plan's or of its own.
        days: whether limits may be days, which are numbers to the family.
    """
    # What a family of another package must be told is text.
    whose = f"{of[0]}: {{}}." if of else "{}"
    values = {name: DOMAIN.get(name, _option(whose.format(name), name.upper())) for name in with_both_ways(domain)}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        given, *declared = inspect.signature(command).parameters.values()
        own = [parameter for parameter in declared if parameter.name not in without]
        taken = {parameter.name for parameter in own}
        reads = "file" in taken
        options: dict[str, tuple[Any, Any]] = {
            **({} if of else {"protocol": (_PROTOCOL[protocol], None)}),
            "plan_file": (_PLAN_FILE, None),
            **REQUEST,
            **{name: (annotation, None) for name, annotation in values.items()},
            **{name: (own_option, None) for name, (beside, own_option) in WHOSE.items() if reads and beside in values},
        }
        how = {name: (each, None) for name, each in READING.items() if "file" in taken}
        options = {name: option for name, option in options.items() if name not in taken and name not in without}

        @wraps(command)
        def run(context: typer.Context, **words: Any) -> None:
            reading = reading_of(words) if how else None
            found = {name: words.pop(name) for name in options}
            read_limits(found)
            file, named = found.pop("plan_file", None), found.get("protocol")
            if file is None and named is not None and Path(named).is_file():
                raise ParameterError("protocol", named, "is a file", f"write --plan {named}")
            whose = {name: value for name in WHOSE if (value := found.pop(name, None)) is not None}
            said = {name: value for name, value in found.items() if value != options[name][1]}
            if file is not None and said:
                name, value = next(iter(said.items()))
                # A plan decides everything: options beside it would be silently ignored.
                raise ParameterError(name, value, "is decided by --plan", "leave it out, or make another plan")
            typed = {name: value for name, value in said.items() if name in values}
            typed, in_days = _as_known(typed, of or (named or "binary-sum",), days=days)
            asked = Asked(
                file,
                named or (_fitting(of, typed) if of else "binary-sum"),
                {name: value for name, value in found.items() if name in REQUEST},
                typed,
                of,
                reading=reading,
                whose=whose,
                said=Said(context),
                days=in_days,
            )
            command(asked if given.name == "asked" else asked.plan(), **words)

        kind = inspect.Parameter.KEYWORD_ONLY
        shared = [
            inspect.Parameter(n, kind, default=default, annotation=a) for n, (a, default) in (how | options).items()
        ]
        context = inspect.Parameter("context", kind, annotation=typer.Context)
        taking = [context, *(parameter.replace(kind=kind) for parameter in own), *shared]
        taking.sort(key=lambda parameter: parameter.name == "as_json")
        run.__signature__ = inspect.Signature(taking)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in taking}
        del run.__wrapped__
        run.with_options = lambda more: takes_plan(  # type: ignore[attr-defined]
            *of, protocol=protocol, domain=(*domain, *more), without=without, days=days
        )(command)
        return run

    return decorate


def _as_known(
    typed: dict[str, Any], families: Sequence[str], *, days: bool
) -> "tuple[dict[str, Any], DayRange | None]":
    """What was typed, with the limits of values in the way that these families know; and the days that they are."""
    from shuffledp.protocols.catalogue import PROTOCOLS

    known = [name for each in families if each in PROTOCOLS for name in names_of_options(PROTOCOLS[each])]
    return in_numbers(in_one_way(typed, known), days=days)


def _fitting(families: Sequence[str], typed: Collection[str]) -> str:
    """The first of these families that has most of the options that were typed."""
    if len(families) == 1:
        return families[0]
    from shuffledp.protocols.catalogue import PROTOCOLS

    return max(families, key=lambda name: len({*typed} & {*names_of_options(PROTOCOLS[name])}))


def as_command(function: Callable[..., None], name: str | None) -> Any:
    """A function as a command of this name, outside of all groups."""
    made = typer.Typer(add_completion=False, rich_markup_mode="rich")
    made.command(name)(function)
    command = typer.main.get_command(made)
    command.name = name
    return command


class OpenCommand(typer.core.TyperCommand):
    """A command that takes every family: where one of another package is named, its own options are known, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line; an option that is not known is looked for in the family that is named."""
        known = {option for parameter in self.params for option in parameter.opts}
        if any(word.startswith("--") and word.partition("=")[0] not in known for word in args):
            from shuffledp.protocols.catalogue import PROTOCOLS

            named = [word for each in args for word in each.split("=", 1) if word in PROTOCOLS]
            more = [name for word in named[:1] for name in names_of_options(PROTOCOLS[word]) if name not in DOMAIN]
            opened = as_command(self.callback.with_options(more), self.name)  # type: ignore[union-attr]
            # For this one command line: the next may name another family.
            ctx.command = opened
            return list(opened.parse_args(ctx, args))
        return super().parse_args(ctx, args)
