"""What a command is asked for: a plan's file, or a family with options; and a file's values as that plan takes them."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.cli.said import Said
from shuffledp.errors import ParameterError, ShuffleDPError
from shuffledp.files import is_there
from shuffledp.privacy import Privacy

if TYPE_CHECKING:
    from shuffledp.cli.days import DayRange
    from shuffledp.cli.early import EarlyEngine
    from shuffledp.cli.file_values import FileSource, FileValues
    from shuffledp.cli.people import Unlike
    from shuffledp.protocols.domains.domain import Categories
    from shuffledp.protocols.family import Choice, Family
    from shuffledp.protocols.plan import Plan
    from shuffledp.tables.missing import Missing
    from shuffledp.tables.reading import Reading

# Several options describe one parameter of a family.
_TYPED_AS = {
    "categories": ("domain", "categories", "other"),
    "domain": ("domain", "steps"),
    "groups": ("groups", "other_group"),
}


def target(users: int | None, epsilon: float | None, delta: float | None) -> tuple[int, Privacy]:
    """How many users, and the privacy; each must be given."""
    if users is epsilon is delta is None:
        way_out = "add --plan FILE, or --users, --epsilon and --delta"
        raise ParameterError("users", "nothing", "must be given", way_out)
    for name, value in (("users", users), ("epsilon", epsilon), ("delta", delta)):
        if value is None:
            raise ParameterError(name, None, "must be given", f"add --{name}, or --plan with a plan's file")
    return users, Privacy(epsilon, delta)  # type: ignore[return-value, arg-type]


def names_of_options(family: "Family[Any]") -> tuple[str, ...]:
    """The options that say what a family must be told about its users' values."""
    parameters = [parameter.name for parameter in family.domain]
    # Where categories are named by --domain, nothing else is.
    told = [name for name in parameters if not (name == "domain" and "categories" in parameters)]
    told += [name for both in family.variants for name in both.split("+") if name not in told]
    return tuple(dict.fromkeys(option for name in told for option in _TYPED_AS.get(name, (name,))))


@dataclass(frozen=True)
class Asked:
    """A plan's file, or a family with the options of a request and of the users' values; not both.

    Attributes:
        file: the plan's file; None if options ask for the plan.
        protocol: the name of the family.
        request: the options that every family takes.
        typed: the options that say which values there are, as they were typed; without those that were left out.
        fixed: the families of which a plan's file must be; any if there are none.
        categories: a list of categories that stands for typed options.
        reading: how a file is read, and what people without a value report; None where no file is.
        said: all that was typed, for hints.
        whose: columns of a file that say whose a row is, by the names of their options.
        days: the range of days that the limits are, where a column of days is read as numbers; None otherwise.
    """

    file: Path | None
    protocol: str
    request: Mapping[str, Any]
    typed: Mapping[str, Any] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()
    categories: "Categories | None" = None
    reading: "Reading | None" = None
    said: Said = field(default_factory=Said)
    whose: Mapping[str, str] = field(default_factory=dict)
    days: "DayRange | None" = None

    @property
    def method(self) -> str:
        """The method asked for, or auto; a counter's is its noise."""
        return str(self.request.get("method") or self.request.get("noise") or "auto")

    @property
    def reads(self) -> tuple[Path | str | None, ...]:
        """Files that the options name, beside the people's: nothing may be written over them."""
        return self.file, *(self.typed.get(name) for name in ("domain", "against"))

    @cached_property
    def family(self) -> "Family[Any]":
        """The family; an unknown one is refused."""
        from shuffledp.protocols.catalogue import PROTOCOLS

        family = PROTOCOLS.get(self.protocol)
        if family is None:
            problem = f"must be one of {', '.join(PROTOCOLS)}"
            raise ParameterError("protocol", self.protocol, problem, "choose one of them")
        return family.for_what(self.typed)

    @cached_property
    def loaded(self) -> "Plan | None":
        """The plan of the file; None if there is no file."""
        from shuffledp.protocols.catalogue import load_plan

        if self.file is None:
            return None
        plan = load_plan(self.file)
        if self.fixed:
            self._check_own(plan)
        return plan

    def _check_own(self, plan: "Plan") -> None:
        """Refuse a plan of another family than the command's."""
        from shuffledp.protocols.catalogue import PROTOCOLS

        refusals = []
        for name in self.fixed:
            try:
                return PROTOCOLS[name].check_own(plan)
            except ParameterError as refusal:
                refusals.append(refusal)
        raise refusals[0]

    @cached_property
    def domain(self) -> dict[str, Any]:
        """What the options say about users' values, as the family takes it; an option of another one is refused."""
        from shuffledp.cli.domains import asked_axes, asked_categories, probabilities_in
        from shuffledp.cli.people import asked_groups
        from shuffledp.protocols.domains.categories import as_categories
        from shuffledp.protocols.domains.public_values import with_missing
        from shuffledp.protocols.family import AT_MOST, ROW_A_PERSON

        known = names_of_options(self.family)
        for name, value in self.typed.items():
            if name not in known:
                way_out = ROW_A_PERSON if name == AT_MOST.name else "leave it out, or choose another protocol"
                raise ParameterError(name, value, f"is not an option of {self.protocol}", way_out)
        found = dict(self.typed)
        if "groups" in known:
            groups = asked_groups(found.pop("groups", None), found.pop("other_group", None))
            found |= {} if groups is None else {"groups": groups}
        if "other" in known:
            asked = asked_categories(*(found.pop(name, None) for name in _TYPED_AS["categories"]))
            categories = asked if self.categories is None else self.categories
            if categories is not None:
                found["categories"] = categories
                if self.reading is not None and self.reading.missing.rule == "other":
                    found["categories"] = with_missing(as_categories(categories), self.reading.missing)
            elif any(each.name == "categories" and each.way_out for each in self.family.domain):
                way_out = "add --domain a,b,c, or LOW:HIGH, or a file with a name a line, or hash:1000"
                raise ParameterError("domain", None, "must say which categories there are, whoever has which", way_out)
            if "against" in found:
                found["against"] = probabilities_in(Path(found["against"]), as_categories(found.get("categories")))
        elif "domain" in known:
            found["domain"] = asked_axes(found.get("domain"), found.pop("steps", None))
        return found

    @property
    def values(self) -> str:
        """The options that say which values there are, as they can be typed again."""
        typed = {name: f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in self.typed.items()}
        if "domain" in typed and self.reading is not None and self.reading.missing.rule == "other":
            # One more category than was typed may be there, for people without a value.
            typed = {"domain": self.domain["categories"].options, **typed | {"domain": "", "other": ""}}
        return " ".join(filter(None, typed.values()))

    def with_data_as_domain(self, file: Path, column: str | None, *, public: bool) -> "Asked":
        """As asked, where the domain is said to be what occurs in the file itself: it is read, if that is no secret."""
        from shuffledp.cli.domains import is_from_data, occurring

        domain = self.typed.get("domain")
        if domain is None or not is_from_data(domain, file):
            return self
        found = occurring(file, column, domain, self.typed.get("other"), public=public, reading=self.reading)
        return replace(self, typed={}, categories=found)

    def with_file(
        self,
        file: Path,
        column: str | None,
        columns: str | None = None,
        *,
        clip: bool = False,
    ) -> "tuple[Plan, Any, Unlike]":
        """The plan, the values of a file as the plan takes them, and how many of them count otherwise than they are.

        Args:
            file: CSV, Parquet or .npy, with a row a person.
            column: the file's only column that is read.
            columns: several columns, where a person's value has several numbers.
            clip: whether values outside the domain are brought into it.
        """
        from shuffledp.cli.people import Rows, Unlike

        said = self._file_values(file, column, columns, clip=clip)
        values = said.own(self.reading)
        rows = Rows.of(file, self.whose.get("user"), self._at_most, reading=self.reading)
        # A plan takes seconds: a row that is in no group is found before.
        groups = said.group_codes(self.reading)
        people = len(values) if rows is None else rows.people
        plan = self._plan_for(
            said, people, values.shape[1] if said.in_rows else 1, "rows" if rows is None else "people"
        )
        checked, clipped = said.checked(plan, values, groups, rows)
        return plan, checked, Unlike(clipped) if rows is None else Unlike(clipped, rows.left_out, len(values))

    def in_pieces(
        self,
        file: Path | None,
        column: str | None,
        columns: str | None,
        *,
        clip: bool,
        least: int,
        early: "EarlyEngine | None" = None,
    ) -> "tuple[Plan, FileSource] | None":
        """As `with_file`, where a file of more than so many rows can be read in pieces; None where it cannot.

        Args:
            file: CSV, Parquet or .npy, with a row a person.
            column: the file's only column that is read.
            columns: several columns, where a person's value has several numbers.
            clip: whether values outside the domain are brought into it.
            least: files of no more rows are read whole.
            early: begins with its processes as soon as it is known how many rows there are.
        """
        from shuffledp.cli.file_values import FileSource, cut_for, first_piece

        if file is None or self.reading is None or self.whose.get("user") or self._at_most is not None:
            return None
        # A row of text has two bytes, or its owner no value.
        if file.suffix.lower() not in (".parquet", ".npy") and is_there(file) and file.stat().st_size <= 2 * least:
            return None
        said = self._file_values(file, column, columns, clip=clip)
        found = cut_for(said, self.reading)
        if found is None or found.rows <= least:
            return None
        # What a piece is like is seen before a plan, which takes seconds, is made.
        width = said.own(first_piece(found, self.reading)).shape[1] if said.in_rows else 1
        if early is not None:
            early.begin(found.rows, FileSource, *self.family.methods.values())
        plan = self._plan_for(said, found.rows, width, "rows")
        return plan, FileSource(said, found, self.reading, plan)

    @property
    def reads_words(self) -> bool:
        """Whether a value is a text in the file."""
        reads = self.family.reads if self.loaded is None else self.loaded.domain.row.reads
        return reads == "words" or self.days is not None

    @property
    def users(self) -> int:
        """How many users are asked for, where that was said."""
        return self.loaded.users if self.loaded is not None else int(self.request.get("users") or 0)

    @property
    def _at_most(self) -> int | None:
        """How many rows of one person count; None where a row is a person."""
        found: int | None = self.typed.get("at_most") if self.loaded is None else self.loaded.domain.most_rows
        return found

    def _file_values(self, file: Path, column: str | None, columns: str | None, *, clip: bool) -> "FileValues":
        """What is read of a file for the plan that is asked for; what is wrong with the question is refused."""
        from shuffledp.cli.domains import columns_read, refuse_data
        from shuffledp.cli.file_values import FileValues
        from shuffledp.cli.people import check_groups
        from shuffledp.protocols.domains.domain import Categories
        from shuffledp.protocols.domains.public_values import check_public, with_missing

        known: dict[str, Any] = {}
        reads: str
        if self.loaded is not None:
            domain = self.loaded.domain.row
            named, in_rows, reads = domain.named, domain.is_row, domain.reads
            if named is not None and self.reading is not None:
                with_missing(named, self.reading.missing, grows=False)
        else:
            # What is wrong with the question is said before anything that is wrong with the data.
            self.target(users=1)
            check_groups(self.whose.get("by"), known="groups" in self.typed)
            refuse_data(self.typed.get("domain"), file)
            known = self._known()
            named = found if isinstance(found := known.get("categories"), Categories) else None
            # An axis of days is a column of words, whatever else the family reads.
            axes = known.get("domain", ())
            reads = getattr(axes[0], "reads", self.family.reads) if axes else self.family.reads
            in_rows = reads == "rows" or "dimension" in known or "radius" in known or len(known.get("domain", ())) > 1
        words = (reads if self.days is None else "words") == "words"
        if self.reading is not None:
            asked = columns_read(file, column, columns, in_rows=in_rows, reading=self.reading)
            for name in asked:
                check_public(self.reading.missing.of_column(name), named, words=words)
            self._public(self.reading.missing, asked)
        listed = known.get("groups") if self.loaded is None else self.loaded.domain.group_list
        return FileValues(file, column, columns, named, in_rows, words, self.days, clip, self.whose.get("by"), listed)

    def _plan_for(self, said: "FileValues", people: int, width: int, what: str) -> "Plan":
        """The plan for so many people of a file, each with so many numbers; `what` is what the file has of them."""
        from shuffledp.cli.domains import columns_read
        from shuffledp.protocols.domains.public_values import check_public_number

        users = self.request.get("users")
        more = {"users": people if users is None else users}
        if self.loaded is None and said.in_rows and self.family.reads != "rows":
            known = self._known()
            if "domain" not in known:
                more["dimension"] = known.get("dimension", width)
        plan = self.plan(**more)
        try:
            plan.check_reports(people)
        except ShuffleDPError:
            way_out = f"make a plan for as many users as the file has {what}"
            raise ParameterError(what, people, f"must be the plan's {plan.users} users", way_out) from None
        if self.reading is not None and said.named is None:
            columns = columns_read(said.file, said.column, said.columns, in_rows=said.in_rows, reading=self.reading)
            check_public_number(self._public(self.reading.missing, columns), plan.domain, columns)
        return plan

    def _public(self, missing: "Missing", columns: "list[str | None]") -> "Missing":
        """What people without a value report; a public day as the number that it is read as."""
        return missing if self.days is None else self.days.public(missing.of_column(columns[0]))

    def with_data(
        self,
        file: Path | None,
        column: str | None,
        columns: str | None,
        seed: int | None,
        *,
        synthetic: bool,
        clip: bool,
    ) -> "tuple[Plan, Any, Unlike]":
        """As `with_file`, or with made-up values where there is no file; neither and both are refused."""
        from shuffledp.cli.people import Unlike
        from shuffledp.simulation.environments.synthetic import synthetic_values

        if synthetic == (file is not None):
            way_out = "name a CSV, Parquet or .npy file, or make data up"
            raise ParameterError("file", file, "or --synthetic must be given, one of them", way_out)
        if file is not None:
            return self.with_file(file, column, columns, clip=clip)
        for name, value in (("column", column), ("columns", columns), *self.whose.items(), *self.said_of_files):
            if value is not None:
                raise ParameterError(name, value, "is a file's; there is none beside --synthetic", "leave it out")
        plan = self.plan()
        return plan, plan.check_values(synthetic_values(plan, seed=seed)), Unlike()

    def at_first(self, file: Path | None) -> str:
        """What goes on before anybody reports, in words: a plan that is loaded is chosen already."""
        read = "making data up" if file is None else f"reading {file.name}"
        return read if self.loaded is not None else f"{read} and choosing a method"

    @property
    def said_of_files(self) -> list[tuple[str, str]]:
        """The options that say how a file is read, each with its value."""
        return [] if self.reading is None else list(self.reading.said.items())

    def _known(self) -> dict[str, Any]:
        """What is said about the users' values; the dimension may be left to a file."""
        try:
            return self.family.read_domain(self.domain)
        except ParameterError as missing:
            if missing.parameter != "dimension" or missing.value is not None:
                raise
            return self.domain

    def target(self, **more: Any) -> tuple[int, Privacy]:
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
