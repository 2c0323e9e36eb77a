"""`shuffledp plan`: the noise, the messages and the error, before any data. Sub-commands come from the catalogue."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import Asked, names_of_options
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.output import facts, next_steps, print_json, question, show, write_plan
from shuffledp.cli.progress import working
from shuffledp.cli.said import YOUR_FILE
from shuffledp.cli.side_by_side import method_rows
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.protocols.family import Choice
    from shuffledp.protocols.plan import Plan


class Families(typer.core.TyperGroup):
    """Commands of its own, and one for every family of the catalogue, which is imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The families' names, and those of the group's own commands."""
        from shuffledp.protocols.catalogue import PROTOCOLS

        return [*PROTOCOLS, *self.commands]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or None."""
        from shuffledp.protocols.catalogue import PROTOCOLS

        if cmd_name in self.commands or cmd_name not in PROTOCOLS:
            return self.commands.get(cmd_name)
        return options.as_command(_command(cmd_name), cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named; for a name that there is not, the nearest there is."""
        from difflib import get_close_matches

        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            near = get_close_matches(args[0].replace("_", "-"), self.list_commands(ctx), n=1)
            if near:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)


plan_app = typer.Typer(cls=Families, help="Plan a protocol: noise, messages and error, before any data.")


def _command(name: str) -> Any:
    """The command that plans one family, with the family's own options."""
    from shuffledp.protocols.catalogue import PROTOCOLS

    family = PROTOCOLS[name]
    # Of several shufflers there is a schedule to draw, and the noise is each batch's.
    scheduled = any(parameter.name == "shufflers" for parameter in family.domain)
    left_out = ("plan_file", "constants", "method") if scheduled else ("plan_file", "noise", "picture")
    made = options.takes_plan(name, domain=names_of_options(family), without=left_out)(_plan)
    made.__doc__ = family.summary
    return made


def _plan(
    asked: Asked, picture: options.Picture = None, out: options.PlanOut = None, as_json: options.AsJson = False
) -> None:
    # Of several shufflers there is a schedule to draw.
    scheduled = any(parameter.name == "shufflers" for parameter in asked.family.domain)
    kept = KeptFiles.at(
        out=out,
        picture=picture,
        reads=asked.reads,
        no_picture="" if scheduled else "cannot be drawn: only a counter's plan has a schedule",
        no_table="cannot be a table: a plan is one JSON document",
        documents=(),
    )
    picture, out = kept.picture, kept.document
    if asked.method in asked.family.comparisons:
        _compare(asked, out, as_json=as_json)
        return
    with working("comparing the methods", shown=not as_json):
        choice = asked.choice()
        found = choice.plan
        rows = method_rows(asked, choice) if found.lists_methods else None
        document = choice.document() | ({} if rows is None else {"methods": rows})
    if picture is not None:
        _draw(found, picture)
    write_plan(found, out)
    if as_json:
        print_json(document)
        return
    said = [
        ("asked", question(found)),
        ("protected against", _against(found.honest_fraction)),
        # Methods that have a table below need no words.
        ("method", _reasons(choice) if rows is None else choice.why.partition("; ")[0]),
        *found.facts(),
        ("more messages", choice.more),
        ("picture", picture),
        ("written to", out),
    ]
    compared = found.compared() if rows is None else found.methods_compared(rows)
    show(facts(f"{found.title}: {found.protocol} by {found.method}", said), compared)
    typed, by_file = asked.said, None if out is None else f"--plan {shlex.quote(str(out))}"
    next_steps(
        [
            ("keep the plan", typed.again("-o plan.json") if out is None else None),
            (
                "run it on made-up data",
                typed.other("simulate", found, "--synthetic") if by_file is None else f"simulate {by_file} --synthetic",
            ),
            ("your own data", typed.other(found.file_command, found, file=YOUR_FILE, saved=out)),
            ("why it is private", typed.other("explain", found) if by_file is None else f"explain {by_file}"),
            *(_live_steps(by_file) if by_file is not None and asked.request["live"] else ()),
        ]
    )


def _live_steps(by_file: str) -> list[tuple[str, str]]:
    """From a plan that was kept to devices that report: the analyzer's keys, and the task that devices are given."""
    return [
        ("keys, once", "keys keys"),
        ("a task for devices", f"task create {by_file} --keys keys -o task.json"),
    ]


def _draw(found: Any, picture: Path) -> None:
    """Which shuffler holds which users when, and what a user adds to batches that overlap."""
    from shuffledp.pictures.running import draw_schedule
    from shuffledp.pictures.windows import draw_windows

    title, parts = found.layout.in_words, found.window_parts()
    if parts:
        draw_windows(picture, found.spans(), parts, title)
    else:
        draw_schedule(picture, found.spans(), title)


def _compare(asked: Asked, out: Path | None, *, as_json: bool) -> None:
    """A method that protects nobody: numbers to compare with, no plan."""
    name, request = asked.method, asked.request
    for option in ("honest_fraction", "max_messages", "live", "constants"):
        if request[option] != options.REQUEST[option][1]:
            problem = f"is not an option of the comparison with {name}"
            raise ParameterError(option, request[option], problem, "leave it out")
    if out is not None:
        raise ParameterError("out", out, f"needs a method that can be run; {name} is for comparison", "leave it out")
    document = asked.compared(name)
    if as_json:
        print_json(document)
        return
    noise = document["noise"]["standard_deviation"]
    rows = [
        ("what it is", "every user adds Gaussian noise for itself, and shuffling amplifies that"),
        ("a user's noise", f"standard deviation {noise:.4g} in every number, made of floats"),
        ("alone it is", f"epsilon {document['local_epsilon']:.3g}, delta {document['local_delta']:.3g}"),
        ("standard error", f"{document['standard_error']:.4g}"),
    ]
    show(facts(f"For comparison only: {asked.protocol} by {name} (P_Amp)", rows))
    next_steps([("what can be run instead", asked.said.again(without=("method",)))])


def _reasons(choice: "Choice[Plan]") -> str:
    """Why this method, without what more messages would buy, which has a line of its own."""
    return choice.why if choice.more is None else choice.why.removesuffix(f"; {choice.more}")


def _against(honest_fraction: float) -> str:
    if honest_fraction == 1:
        return "an analyzer that sees every shuffled message"
    return f"an analyzer that sees every shuffled message and colludes with {1 - honest_fraction:.3g} of the users"
