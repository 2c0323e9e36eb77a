"""What a running sum adds up, on the command line: options, files, words."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from shuffledp.continual.plan import CounterPlan
    from shuffledp.protocols.domains import summed as domains
    from shuffledp.protocols.domains.domain import Categories as NamedCategories
    from shuffledp.protocols.domains.summed import SummedDomain


class Kind(StrEnum):
    """What every user has."""

    bits = "bits"
    reals = "reals"
    vectors = "vectors"
    categories = "categories"


Values = Annotated[Kind, typer.Option("--values", help="0 or 1; numbers in [0, 1]; vectors; or categories 0..N-1.")]
Dimension = Annotated[int | None, typer.Option("--dimension", help="vectors: numbers in a vector.", metavar="D")]
Radius = Annotated[float | None, typer.Option("--radius", help="vectors: the longest vector.", metavar="R")]
Categories = Annotated[int | None, typer.Option("--categories", help="categories: how many there are.", metavar="N")]

_BELONGS_TO = {
    "dimension": Kind.vectors,
    "radius": Kind.vectors,
    "categories": Kind.categories,
    "domain": Kind.categories,
    "other": Kind.categories,
}
_NEEDED = ("dimension", "radius", "categories")


@dataclass(frozen=True, slots=True)
class AskedValues:
    """The kind of values and its own options; one of another kind is refused, not ignored."""

    kind: Kind
    dimension: int | None = None
    radius: float | None = None
    categories: int | None = None
    domain: str | None = None
    other: str | None = None

    def __post_init__(self) -> None:
        from shuffledp.errors import ParameterError

        if self.kind is Kind.bits and self.domain is not None:
            # Bits are the default: whoever names categories means those.
            object.__setattr__(self, "kind", Kind.categories)
        for name, value in self.given.items():
            if _BELONGS_TO[name] is not self.kind:
                way_out = f"leave it out, or choose --values {_BELONGS_TO[name].value}"
                raise ParameterError(name, value, f"is not an option of --values {self.kind.value}", way_out)
        if self.other is not None and self.domain is None:
            raise ParameterError("other", self.other, "needs a list of names", "add --domain a,b,c")
        if self.dimension == 1:
            raise ParameterError("dimension", 1, "must be at least 2", "one number is --values reals, scaled to [0, 1]")

    @property
    def given(self) -> dict[str, Any]:
        """The options beside the kind that were given."""
        options = {
            "dimension": self.dimension,
            "radius": self.radius,
            "categories": self.categories,
            "domain": self.domain,
            "other": self.other,
        }
        return {name: value for name, value in options.items() if value is not None}

    def check_complete(self, *, width_known: bool = False) -> None:
        """Refuse a kind that lacks an option; a file's width may stand for the dimension."""
        from shuffledp.errors import ParameterError

        for name in _NEEDED:
            kind = _BELONGS_TO[name]
            known = (name == "dimension" and width_known) or (name == "categories" and self.domain is not None)
            if kind is self.kind and name not in self.given and not known:
                raise ParameterError(
                    name,
                    None,
                    f"must be given for --values {kind.value}",
                    f"add --{name}, or --plan with a plan's file",
                )

    @property
    def running_domain(self) -> "domains.OneHot":
        """The categories by name, or only how many there are."""
        from shuffledp.cli.domains import asked_categories
        from shuffledp.protocols.domains import summed as domains

        named = None if self.domain is None else asked_categories(self.domain, self.categories, self.other)
        return domains.OneHot(self.categories or 0) if named is None else domains.OneHot.of(named)

    def plan(self, **asked: Any) -> "CounterPlan":
        """The best plan for such values."""
        from shuffledp.continual.plan import CounterPlan

        self.check_complete()
        if self.kind is Kind.reals:
            return CounterPlan.plan_reals(**asked)
        if self.kind is Kind.vectors:
            return CounterPlan.plan_vectors(dimension=self.dimension, radius=self.radius, **asked)  # type: ignore[arg-type]
        if self.kind is Kind.categories:
            return CounterPlan.plan(domain=self.running_domain, **asked)
        return CounterPlan.plan(**asked)


def read_values(
    file: Path, kind: str, column: str | None, columns: str | None, named: "NamedCategories | None" = None
) -> Any:
    """One column of the file, the codes of one where categories have names, or a matrix where values are vectors."""
    from shuffledp.errors import ParameterError

    if named is not None:
        from shuffledp.cli.domains import read_codes

        if columns is not None:
            raise ParameterError("columns", columns, f"are for vectors, not for {kind}", "use --column")
        return read_codes(file, column, named)
    if kind == Kind.vectors:
        from shuffledp.tables.matrices import read_matrix

        if column is not None:
            raise ParameterError("column", column, "is one column; a vector has several", "use --columns A,B,C")
        return read_matrix(file, None if columns is None else column_names(columns))
    from shuffledp.tables.columns import read_column

    if columns is not None:
        raise ParameterError("columns", columns, f"are for vectors, not for {kind}", "use --column")
    return read_column(file, column)


def column_names(columns: str) -> list[str]:
    """The names between commas."""
    return [name.strip() for name in columns.split(",")]


def coordinate_names(domain: "SummedDomain", columns: str | None = None) -> list[str]:
    """What a person calls the coordinates: a column's name, a vector's from 1, categories from 0."""
    if domain.kind == Kind.categories:
        named = named_categories(domain)
        return named.names() if named else [f"category {number}" for number in range(domain.coordinates)]
    if columns is not None:
        return column_names(columns)
    return [f"coordinate {number}" for number in range(1, domain.coordinates + 1)]


def named_categories(domain: "SummedDomain") -> "NamedCategories | None":
    """What the coordinates are called, where that is known."""
    from shuffledp.protocols.domains.summed import OneHot

    return domain.named if isinstance(domain, OneHot) else None


def estimate_columns(domain: "SummedDomain") -> list[str]:
    """A table's columns of estimates: numbered as vectors' coordinates are, from 1, or as categories are, from 0."""
    if domain.coordinates == 1:
        return ["estimate"]
    if named := named_categories(domain):
        return [f"estimate_{name}" for name in named.names()]
    first = 0 if domain.kind == Kind.categories else 1
    return [f"estimate_{number}" for number in range(first, first + domain.coordinates)]


@dataclass(frozen=True, slots=True)
class Words:
    """A running sum in words: what it is, whose, its total, and where a bound holds."""

    running: str
    of: str
    total: str
    each: str = ""


def words_for(domain: "SummedDomain") -> Words:
    """How the domain's running sum is spoken of."""
    if domain.kind == Kind.reals:
        return Words("running sum", "users' numbers in [0, 1]", "sum")
    if domain.kind == Kind.vectors:
        radius, every = domain.parameters["radius"], " in every coordinate"
        of = f"users' vectors of {domain.coordinates:,} numbers, at most {radius:g} long"
        return Words("running sum of vectors", of, "sum", every)
    if domain.kind == Kind.categories:
        of = f"users in {domain.coordinates:,} categories"
        return Words("running histogram", of, "histogram", " in every category")
    return Words("running count", "users", "count")


def options_for(domain: "SummedDomain") -> str:
    """The options that ask for this domain again, with a blank before them; none for bits."""
    asked = {
        Kind.bits: "",
        Kind.reals: " --values reals",
        Kind.vectors: " --values vectors --dimension {dimension} --radius {radius!r}",
        Kind.categories: " --values categories --categories {count}",
    }
    if named := named_categories(domain):
        from shuffledp.cli.domains import domain_options

        return f" {domain_options(named)}"
    return asked[Kind(domain.kind)].format(**domain.parameters)
