"""What a table's measurement is: numbers with intervals, lines with fitted exponents, rows as data."""

from collections.abc import Sequence
from dataclasses import InitVar, asdict, dataclass, field
from typing import Any, Literal

from shuffledp.experiments.common import fitted_slope

Model = Literal["local", "shuffle", "central"]
MODELS: tuple[Model, ...] = ("local", "shuffle", "central")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A number with its 95% interval, and how many runs it is from.

    >>> str(Measured(value=5.84, low=5.5, high=6.2, runs=200))
    '5.84 (5.50 to 6.20)'
    """

    value: float
    low: float
    high: float
    runs: int

    def __str__(self) -> str:
        return f"{figure(self.value)} ({figure(self.low)} to {figure(self.high)})"


def figure(number: float) -> str:
    """Three digits, and thousands with commas.

    >>> figure(12345.6), figure(0.01234), figure(5.0), figure(0)
    ('12,346', '0.0123', '5.00', '0')
    """
    if number == 0:
        return "0"
    size = abs(number)
    if size >= 100:
        return f"{number:,.0f}"
    if size >= 0.001:
        return f"{number:.{2 if 1 <= size < 10 else 1 if size >= 10 else 3 if size >= 0.1 else 4}f}"
    return f"{number:.2e}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPower:
    """The slope of a straight line through logarithms, with Student's 95% interval, beside the survey's."""

    value: float
    low: float
    high: float
    claimed: float | None
    """None where the survey gives no power, but a constant or a logarithm."""

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, slots=True)
class Line:
    """One protocol's error or sample size against one quantity, with its exponent by least squares on logarithms.

    >>> points = [Measured(value=v, low=v, high=v, runs=1) for v in (2.0, 20.0, 200.0)]
    >>> Line("local", "noise", "users", (1, 10, 100), points, claimed=1.0).power
    '1.00'
    """

    model: Model
    name: str
    against: str
    x: Sequence[float]
    points: Sequence[Measured]
    exponent: FittedPower | None = field(init=False, default=None)
    """None where there are too few points, or one that is not above 0."""
    measures: str = "error"
    bounds: Sequence[float] = ()
    """What is proved of each point; empty where nothing is."""
    claimed: InitVar[float | None] = None
    """The survey's exponent, if it gives a power."""

    def __post_init__(self, claimed: float | None) -> None:
        object.__setattr__(self, "x", tuple(map(float, self.x)))
        if len(self.x) >= 3 and all(point.value > 0 for point in self.points):
            fit = fitted_slope(self.x, [point.value for point in self.points])
            power = FittedPower(value=fit.slope, low=fit.low, high=fit.high, claimed=claimed)
            object.__setattr__(self, "exponent", power)

    @property
    def power(self) -> str:
        """The fitted exponent in a sentence."""
        return "?" if self.exponent is None else f"{self.exponent.value:.2f}"

    def at(self, x: float) -> Measured:
        """The point measured at x."""
        return self.points[self.x.index(x)]


Cell = Measured | float | int | str | None


def number(cell: Cell) -> float:
    """What was measured, or what is claimed, without its interval."""
    return cell.value if isinstance(cell, Measured) else float(cell)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a table: what the survey says, and what was measured here."""

    name: str
    survey: dict[str, str]
    """Column of the survey's table, and its O() or Omega()."""
    source: str = ""
    cells: dict[str, Cell] = field(default_factory=dict)
    lines: tuple[Line, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of the survey, measured."""

    number: int
    title: str
    how: str
    """What was measured and how, in a few sentences."""
    rows: tuple[Row, ...]
    sees: str
    """What one sees, from the numbers themselves."""
    bars: tuple[tuple[str, str, str], ...] = ()
    """For the picture: a title, the cell that was measured and the cell that is claimed, method by method."""


def document(table: Table) -> dict[str, Any]:
    """A table as JSON: no NaN, no Infinity."""
    return {name: value for name, value in asdict(table).items() if name != "bars"}
