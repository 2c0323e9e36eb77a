"""The reference of the command line as Markdown, read from the commands themselves."""

import re
from collections.abc import Iterator
from typing import Any

from shuffledp.cli.app import COMMANDS, built

PROGRAM = "shuffledp"


def every_command() -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """The words that call each command that the help shows, the command, and the context of its help; groups first."""
    program = built()
    yield from _under(program, program.context_class(program, info_name=PROGRAM), (PROGRAM,))


def _in_order(names: list[str]) -> list[str]:
    """Names in the order in which the program lists them; whatever it does not list comes first."""
    listed = [name for panel in COMMANDS.values() for name in panel]
    return sorted(names, key=lambda name: listed.index(name) if name in listed else -1)


def _under(group: Any, context: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    for name in group.list_commands(context) if len(words) > 1 else _in_order(group.list_commands(context)):
        command = group.get_command(context, name)
        if not command.hidden:
            inner = command.context_class(command, parent=context, info_name=name)
            yield (*words, name), command, inner
            if hasattr(command, "list_commands"):
                yield from _under(command, inner, (*words, name))


def panels() -> dict[str, list[str]]:
    """The names of the commands in each group of `shuffledp --help`, in its order."""
    return {panel: list(commands) for panel, commands in COMMANDS.items()}


def page_of(panel: str) -> str:
    """The name of the page of a group of commands."""
    return panel.lower().replace(" ", "-")


def anchor_of(words: tuple[str, ...]) -> str:
    """Where a command is on its page."""
    return "-".join(words)


def table_of_commands() -> str:
    """Every command with what it does, by groups, with links to their pages."""
    whole = list(every_command())
    lines = []
    for panel, names in panels().items():
        lines += [f"**{panel}**", "", "| command | does |", "|---|---|"]
        for words, command, _ in whole:
            if words[1] in names and len(words) <= _depth(words[1]):
                link = f"[`{' '.join(words)}`](commands/{page_of(panel)}.md#{anchor_of(words)})"
                lines.append(f"| {link} | {_cell(_first(command.help))} |")
        lines.append("")
    return "\n".join(lines)


def _depth(name: str) -> int:
    """How many words of a command the table shows: protocols of `plan` are one line, the rest two words."""
    return 2 if name == "plan" else 4


def page(panel: str) -> str:
    """The sections of all commands of a group."""
    names = panels()[panel]
    sections = [_section(*each) for each in every_command() if each[0][1] in names]
    return "\n".join(sections)


def _section(words: tuple[str, ...], command: Any, context: Any) -> str:
    usage = re.sub(r"\s+", " ", command.get_usage(context)).removeprefix("Usage: ")
    lines = [
        f"({anchor_of(words)})=",
        f"{'#' * min(len(words), 4)} {' '.join(words)}",
        "",
        prose(command.help),
        "",
        "```text",
        usage,
        "```",
        "",
    ]
    records = [
        record
        for parameter in command.get_params(context)
        if not getattr(parameter, "hidden", False) and (record := parameter.get_help_record(context)) is not None
    ]
    if records:
        lines += ["| argument or option | means |", "|---|---|"]
        lines += [f"| `` {_cell(name)} `` | {_cell(prose(told))} |" for name, told in records]
        lines.append("")
    return "\n".join(lines)


def _first(told: str | None) -> str:
    """The first paragraph of a help text."""
    return prose(told).partition("\n\n")[0]


def prose(told: str | None) -> str:
    """A help text without the marks that only terminals understand, and nothing in it that Markdown would take."""
    plain = re.sub(r"\[/?(?:bold|italic|dim|cyan|green|red|yellow)\]", "", told or "")
    pieces = re.split(r"(`[^`]*`)", plain.replace("\b\n", "").replace("\f", ""))
    return "".join(piece if piece.startswith("`") else _quoted(piece) for piece in pieces).strip()


def _quoted(piece: str) -> str:
    """Words outside quotes: options are quoted, so that no line ends between their hyphens."""
    escaped = re.sub(r"([*_<>\[\]$#])", r"\\\1", piece)
    return re.sub(r"(?<![\w-])--[a-z][a-z-]*", r"`\g<0>`", escaped)


def _cell(text: str) -> str:
    """A text in one line of a table."""
    return re.sub(r"\s+", " ", text).replace("|", r"\|")
