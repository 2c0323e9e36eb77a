"""Options that several commands share, each declared once, and the plan that a file or options ask for."""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shuffledp.errors import ParameterError, ShuffleDPError
from shuffledp.privacy import Privacy

if TYPE_CHECKING:
    from shuffledp.protocols.domains.domain import Categories
    from shuffledp.protocols.family import Choice, Family
    from shuffledp.protocols.plan import Plan
    from shuffledp.randomness import RandomBits

AnalyzerUrl = Annotated[str | None, typer.Option("--analyzer", help="Where the analyzer is.", metavar="URL")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Column = Annotated[str | None, typer.Option("--column", help="The file's column of values.", metavar="C")]
Columns = Annotated[
    str | None, typer.Option("--columns", help="Vectors: the file's columns; all if left out.", metavar="A,B,C")
]
Clip = Annotated[bool, typer.Option("--clip", help="Bring values into the plan's range, and count them.")]
Delta = Annotated[float | None, typer.Option("--delta", help="The probability left over, well below 1/N.", metavar="D")]
Epsilon = Annotated[float | None, typer.Option("--epsilon", help="The privacy target; smaller is safer.", metavar="E")]
Fast = Annotated[bool, typer.Option("--fast", help="Draw the estimate from its own law, without messages.")]
File = Annotated[Path, typer.Argument(help="CSV, Parquet or .npy: a row a person.", metavar="FILE", show_default=False)]
FixedSeed = Annotated[int, typer.Option("--seed", help="Another number, other data and noise.", metavar="S")]
HonestFraction = Annotated[
    float, typer.Option("--honest-fraction", help="Users assumed to follow the protocol.", metavar="G")
]
MaxMessages = Annotated[
    int | None, typer.Option("--max-messages", help="Messages a user may send at most.", metavar="K")
]
OptionalFile = Annotated[
    Path | None, typer.Argument(help="CSV, Parquet or .npy: a row a person.", metavar="[FILE]", show_default=False)
]
Other = Annotated[
    str | None, typer.Option("--other", help="The category of all values outside a list of names.", metavar="NAME")
]
Patience = Annotated[float, typer.Option("--patience", help="Seconds to try again for.", metavar="S")]
Picture = Annotated[Path | None, typer.Option("--picture", help="Draw a PNG or SVG.", metavar="FILE")]
PlanOut = Annotated[Path | None, typer.Option("-o", "--out", help="Write the plan to this file.", metavar="FILE")]
Seed = Annotated[int | None, typer.Option("--seed", help="A repeatable simulation; protects nobody.", metavar="S")]
ShufflerUrl = Annotated[str | None, typer.Option("--shuffler", help="Where the shuffler is.", metavar="URL")]
Synthetic = Annotated[bool, typer.Option("--synthetic", help="Made-up data instead of a file.")]
TaskFile = Annotated[Path, typer.Option("--task", help="The task's file.", metavar="FILE")]
Users = Annotated[int | None, typer.Option("--users", help="How many people report.", metavar="N")]
WithTruth = Annotated[
    bool, typer.Option("--with-truth", help="Show the truth, too: for trying it out. --seed does the same.")
]

_PLAN_FILE = Annotated[
    Path | None, typer.Option("--plan", help="A plan made with `shuffledp plan ... -o`.", metavar="FILE")
]
_WHAT = "What to compute, if there is no --plan: binary-sum unless it is named."
_PROTOCOL = {
    "argument": Annotated[str | None, typer.Argument(help=_WHAT, metavar="[PROTOCOL]", show_default=False)],
    "option": Annotated[str | None, typer.Option("--protocol", help=_WHAT, metavar="NAME")],
}
_NOISE = Literal["auto", "laplace", "coins", "skellam"]

REQUEST: dict[str, tuple[Any, Any]] = {
    "users": (Users, None),
    "epsilon": (Epsilon, None),
    "delta": (Delta, None),
    "method": (
        Annotated[str, typer.Option("--method", help="auto, or one of `shuffledp protocols`.", metavar="M")],
        "auto",
    ),
    "noise": (Annotated[_NOISE, typer.Option("--noise", "--method", help="The noise of every batch.")], "auto"),
    "honest_fraction": (HonestFraction, 1.0),
    "max_messages": (MaxMessages, None),
    "constants": (
        Annotated[Literal["exact", "paper"], typer.Option("--constants", help="Exact noise, or the paper's own.")],
        "exact",
    ),
}
"""What every protocol may be asked for, with what it is if it is left out; `noise` is a counter's word for method."""


def _text(name: str, what: str, metavar: str, kind: Any = str) -> Any:
    return Annotated[kind | None, typer.Option(f"--{name.replace('_', '-')}", help=what, metavar=metavar)]


DOMAIN: dict[str, Any] = {
    "domain": _text(
        "domain",
        "Categories: a,b,c; LOW:HIGH (numbers or dates); a file, a name a line; hash:CELLS[:SALT]. Ranges: LOW:HIGH; "
        "two axes: LOW:HIGHxLOW:HIGH.",
        "DOMAIN",
    ),
    "categories": _text("categories", "Categories: how many, numbered from 0.", "N", int),
    "other": Other,
    "steps": _text("steps", "ranges: put reals on a public grid of so many cells.", "N", int),
    "branching": _text("branching", "ranges: children of a node; 2 is dyadic.", "R", int),
    "low": _text("low", "The smallest value of sums and means.", "A", float),
    "high": _text("high", "The largest value of sums and means.", "B", float),
    "dimension": _text("dimension", "Vectors: numbers in a vector.", "D", int),
    "radius": _text("radius", "Vectors: the longest vector.", "R", float),
    "rotation": _text("rotation", "vector-sum: rotate by public signs of this seed.", "S", int),
    "largest_weight": _text("largest_weight", "weighted-mean: how much one user may weigh at most.", "W", float),
    "length": _text("length", "heavy-hitters: bytes of a string that count; longer ones are cut.", "L", int),
    "top": _text("top", "heavy-hitters: strings to find, at most.", "K", int),
    "alphabet": _text("alphabet", "heavy-hitters: symbols strings are made of; printable ASCII.", "ABC"),
    "keep": _text("keep", "heavy-hitters: prefixes that survive a level, at most.", "N", int),
    "distance": _text("distance", "distribution-test: the total variation distance that must be seen.", "A", float),
    "against": _text(
        "against", "distribution-test: a file of probabilities, one a category or NAME,P; uniform if left out.", "FILE"
    ),
    "false_alarm": _text("false_alarm", "distribution-test: the probability to reject a true claim.", "P", float),
    "certificate": Annotated[
        Literal["simulated", "proved"] | None,
        typer.Option("--certificate", help="distribution-test: whether its threshold is simulated or proved."),
    ],
    "public_seed": _text(
        "public_seed", "distribution-test: the public coins of compressed, drawn before the data.", "S", int
    ),
    "values": Annotated[
        Literal["bits", "reals", "vectors", "categories"] | None,
        typer.Option("--values", help="counter: 0 or 1; numbers in [0, 1]; vectors; or categories. Bits by default."),
    ],
    "shufflers": _text("shufflers", "counter: how many work concurrently.", "K", int),
    "confidence": _text("confidence", "counter: of the bound over the whole horizon; 0.95 by default.", "C", float),
    "estimator": Annotated[
        Literal["auto", "completed", "combined"] | None,
        typer.Option("--estimator", help="counter: batches added up, or two that close together combined."),
    ],
    "bound": Annotated[
        Literal["proved", "certified"] | None,
        typer.Option("--bound", help="counter: proved, or measured on the noise itself (slower, smaller)."),
    ],
}
"""What says which values users have, and how a family counts them; none has a default here."""

# Several options describe one parameter of a family.
_TYPED_AS = {"categories": ("domain", "categories", "other"), "domain": ("domain", "steps")}


def bits_of(seed: int | None) -> "RandomBits":
    """The operating system's randomness, or a repeatable source if a seed is given."""
    from shuffledp.randomness import RandomBits

    return RandomBits.secure() if seed is None else RandomBits.seeded(seed)


def target(users: int | None, epsilon: float | None, delta: float | None) -> "tuple[int, Privacy]":
    """How many users, and the privacy; each must be given."""
    missing = [name for name, value in (("users", users), ("epsilon", epsilon), ("delta", delta)) if value is None]
    if missing or users is None or epsilon is None or delta is None:
        raise ParameterError(missing[0], None, "must be given", f"add --{missing[0]}, or --plan with a plan's file")
    return users, Privacy(epsilon, delta)


def one_of_file_and_synthetic(file: Path | None, synthetic: bool, **columns: str | None) -> None:
    """Refuse neither and both of a file and made-up data, and columns where there is no file."""
    if synthetic == (file is not None):
        way_out = "name a CSV, Parquet or .npy file, or make data up"
        raise ParameterError("file", file, "or --synthetic must be given, one of them", way_out)
    for name, value in columns.items():
        if synthetic and value is not None:
            raise ParameterError(name, value, "is a file's; there is none beside --synthetic", "leave it out")


def options_of(family: "Family[Any]") -> dict[str, Any]:
    """The options that say what a family must be told; those of another package's family are texts.

    Args:
        family: any family of the catalogue.

    Returns:
        Annotated types for `takes_plan`, by the names of the options.
    """
    parameters = [parameter.name for parameter in family.domain]
    names = dict.fromkeys(
        option
        for name in parameters
        # Where categories are named by --domain, nothing else is.
        if not (name == "domain" and "categories" in parameters)
        for option in _TYPED_AS.get(name, (name,))
    )
    return {name: DOMAIN.get(name, _text(name, f"{family.name}: {name}.", name.upper())) for name in names}


@dataclass(frozen=True)
class Asked:
    """A plan's file, or a family with the options of a request and of the users' values; not both.

    Attributes:
        file: the plan's file; None if options ask for the plan.
        protocol: the name of the family.
        request: the options that every family takes.
        typed: the options that say which values there are, as they were typed; without those that were left out.
        fixed: whether a plan must be of this very family.
        categories: a list of categories that stands for typed options.
    """

    file: Path | None
    protocol: str
    request: Mapping[str, Any]
    typed: Mapping[str, Any] = field(default_factory=dict)
    fixed: bool = False
    categories: "Categories | None" = None

    @property
    def method(self) -> str:
        """The method asked for, or auto; a counter's is its noise."""
        return str(self.request.get("method") or self.request.get("noise") or "auto")

    @cached_property
    def family(self) -> "Family[Any]":
        """The family; an unknown one is refused."""
        from shuffledp.protocols.catalogue import PROTOCOLS

        family = PROTOCOLS.get(self.protocol)
        if family is None:
            raise ParameterError(
                "protocol", self.protocol, f"must be one of {', '.join(PROTOCOLS)}", "choose one of them"
            )
        return family

    @cached_property
    def loaded(self) -> "Plan | None":
        """The plan of the file; None if there is no file."""
        from shuffledp.protocols.catalogue import load_plan

        if self.file is None:
            return None
        plan = load_plan(self.file)
        if self.fixed:
            self.family.check_own(plan)
        return plan

    @cached_property
    def domain(self) -> dict[str, Any]:
        """What the options say about users' values, as the family takes it; an option of another one is refused."""
        from shuffledp.cli.domains import asked_axes, asked_categories, probabilities_in
        from shuffledp.protocols.domains.categories import as_categories

        known = options_of(self.family)
        for name, value in self.typed.items():
            if name not in known:
                way_out = "leave it out, or choose another protocol"
                raise ParameterError(name, value, f"is not an option of {self.protocol}", way_out)
        found = dict(self.typed)
        if "other" in known:
            asked = asked_categories(*(found.pop(name, None) for name in _TYPED_AS["categories"]))
            categories = asked if self.categories is None else self.categories
            if categories is not None:
                found["categories"] = categories
            elif any(each.name == "categories" and each.way_out for each in self.family.domain):
                way_out = "add --domain a,b,c, or LOW:HIGH, or a file with a name a line, or hash:1000"
                raise ParameterError("domain", None, "must say which categories there are, whoever has which", way_out)
            if "against" in found:
                found["against"] = probabilities_in(Path(found["against"]), as_categories(categories))
        elif "domain" in known:
            found["domain"] = asked_axes(found.get("domain"), found.pop("steps", None))
        return found

    @property
    def values(self) -> str:
        """The options that say which values there are, as they can be typed again."""
        import shlex

        words = (f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in self.typed.items())
        return " ".join(words)

    def but(self, **typed: Any) -> "Asked":
        """The same with further options, as if they had been typed."""
        return replace(self, typed={**self.typed, **typed})

    def with_file(
        self, file: Path, column: str | None, columns: str | None = None, *, clip: bool = False
    ) -> "tuple[Plan, Any, int]":
        """The plan, the values of a file as the plan takes them, and how many had to be brought into its domain.

        Args:
            file: CSV, Parquet or .npy, with a row a person.
            column: the file's only column that is read.
            columns: several columns, where a person's value has several numbers.
            clip: whether values outside the domain are brought into it.
        """
        from shuffledp.cli.domains import read_values, refuse_data
        from shuffledp.protocols.domains.domain import Categories

        more: dict[str, Any] = {}
        if self.loaded is not None:
            named, in_rows = self.loaded.domain.named, self.loaded.domain.is_row
            words = self.loaded.domain.reads == "words"
            values = read_values(file, column, columns, named=named, in_rows=in_rows, words=words)
        else:
            refuse_data(self.typed.get("domain"), file)
            known, lengths = self._known(), ("dimension", "radius")
            named = found if isinstance(found := known.get("categories"), Categories) else None
            in_rows = any(name in known for name in lengths) or len(known.get("domain", ())) > 1
            values = read_values(file, column, columns, named=named, in_rows=in_rows)
            users = self.request.get("users")
            more = {"users": len(values) if users is None else users}
            if in_rows and "domain" not in known:
                more["dimension"] = known.get("dimension", values.shape[1])
        plan = self.plan(**more)
        self._check_rows(plan, len(values))
        # Codes of categories were made while the file was read; nothing can be outside of them.
        own, clipped = plan.domain.clip_own_values(values) if clip and named is None else (values, 0)
        return plan, plan.check_values(own if named is not None else plan.encode(own)), clipped

    def _known(self) -> dict[str, Any]:
        """What is said about the users' values; the dimension may be left to a file."""
        try:
            return self.family.read_domain(self.domain)
        except ParameterError as missing:
            if missing.parameter != "dimension" or missing.value is not None:
                raise
            return self.domain

    def _check_rows(self, plan: "Plan", rows: int) -> None:
        try:
            plan.check_reports(rows)
        except ShuffleDPError:
            way_out = "make a plan for as many users as the file has rows"
            raise ParameterError("rows", rows, f"must be the plan's {plan.users} users", way_out) from None

    def target(self, **more: Any) -> "tuple[int, Privacy]":
        """How many users, and the privacy; each must be given."""
        asked = {**self.request, **more}
        return target(*(asked.get(name) for name in ("users", "epsilon", "delta")))

    def compared(self, method: str) -> dict[str, Any]:
        """A method that protects nobody, in numbers."""
        users, privacy = self.target()
        given = self.family.read_domain(self.domain)
        found: dict[str, Any] = self.family.comparisons[method](users=users, privacy=privacy, **given)
        return found

    def choice(self, **more: Any) -> "Choice[Plan]":
        """The plan that the options ask for, and why this one.

        Args:
            **more: what a file tells that the options leave out, such as the number of users.
        """
        users, privacy = self.target(**more)
        asked = {"method": self.method, **self.request, **self.domain, **more}
        asked = {name: value for name, value in asked.items() if name not in ("epsilon", "delta", "noise")}
        found: Choice[Plan] = self.family.choose(**asked | {"users": users, "privacy": privacy})
        return found

    def plan(self, **more: Any) -> "Plan":
        """The plan from its file, or the one that the options ask for."""
        return self.choice(**more).plan if self.loaded is None else self.loaded


def takes_plan(
    of: str | None = None,
    *,
    protocol: Literal["argument", "option"] = "argument",
    domain: Mapping[str, Any] | Collection[str] | None = None,
    without: Collection[str] = ("noise",),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a plan: a file, or a protocol with everything that may be asked of it.

    The command's first parameter, which must be called `asked` or `plan`, is filled with an `Asked` or with its plan.
    An option that the command declares itself is the command's own.

    Args:
        of: the only family that the command is for; None if it takes all.
        protocol: how a family is named where all are taken.
        domain: options that say which values there are; all if left out.
        without: options that the command does not have.
    """
    names = DOMAIN if domain is None else domain
    values = names if isinstance(names, Mapping) else {name: DOMAIN[name] for name in names}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        given, *own = inspect.signature(command).parameters.values()
        taken = {parameter.name for parameter in own}
        options: dict[str, tuple[Any, Any]] = {
            **({} if of is not None else {"protocol": (_PROTOCOL[protocol], None)}),
            "plan_file": (_PLAN_FILE, None),
            **REQUEST,
            **{name: (annotation, None) for name, annotation in values.items()},
        }
        options = {name: option for name, option in options.items() if name not in taken and name not in without}

        @wraps(command)
        def run(**words: Any) -> None:
            found = {name: words.pop(name) for name in options}
            file, named = found.pop("plan_file", None), found.pop("protocol", None)
            said = {name: value for name, value in found.items() if value != options[name][1]}
            if file is not None:
                _refuse_beside_plan(({} if named is None else {"protocol": named}) | said)
            asked = Asked(
                file,
                of or named or "binary-sum",
                {name: found[name] for name in REQUEST if name in found},
                {name: value for name, value in said.items() if name in values},
                of is not None,
            )
            command(asked if given.name == "asked" else asked.plan(), **words)

        kind = inspect.Parameter.KEYWORD_ONLY
        shared = [inspect.Parameter(n, kind, default=default, annotation=a) for n, (a, default) in options.items()]
        parameters = [parameter.replace(kind=kind) for parameter in own]
        last = [parameter for parameter in parameters if parameter.name == "as_json"]
        first = [parameter for parameter in parameters if parameter.name != "as_json"]
        run.__signature__ = inspect.Signature([*first, *shared, *last])  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in (*first, *shared, *last)}
        del run.__wrapped__
        return run

    return decorate


def _refuse_beside_plan(options: Mapping[str, Any]) -> None:
    """A plan decides everything: options beside it would be silently ignored, so they are refused."""
    for name, value in options.items():
        raise ParameterError(name, value, "is decided by --plan", "leave it out, or make another plan")
