"""What was typed, as it can be typed again: in the same command, or in another one for the same plan."""

import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.privacy import Privacy

if TYPE_CHECKING:
    from shuffledp.protocols.plan import Plan

YOUR_FILE = "YOUR.csv"
"""Where a hint leaves the name of a file to whoever types it."""

# What says how an answer is shown and kept, and not which plan it is.
_SHOWN = ("as_json", "out", "picture", "table", "with_truth", "seed", "fast", "top", "names", "every")
# Where it is computed.
_WHERE = ("engine", "memory", "processes", "master")
# How a file is read says nothing about a plan, but for what people without a value report.
_READ = ("delimiter", "decimal", "encoding", "sql")
# What a hint says in its own way.
_TOLD = ("protocol", "users", "plan_file", "file", "column", "columns", "synthetic", "user", "by")
# What may be left out of one command and must be said in another.
_LEFT_OUT = ("dimension", "length", "top", "false_alarm", "shufflers")


def target_options(privacy: Privacy) -> str:
    """An epsilon and a delta as they are typed."""
    return f"--epsilon {privacy.epsilon!r} --delta {privacy.delta!r}"


def own_columns(plan: "Plan") -> str:
    """How the columns of somebody's own file are named."""
    domain = plan.domain
    values = "--columns A,B,C" if domain.row.is_row else "--column C"
    whose = "" if domain.most_rows is None else " --user U"
    return values + whose + ("" if domain.group_list is None else " --by G")


@dataclass(frozen=True)
class Said:
    """The command that runs, and the parameters that were typed, in the order in which the command declares them.

    Attributes:
        context: the command line's own account of what it read; None where nothing was typed, as in a test.
    """

    context: Any = None

    def _typed(self) -> Iterator[tuple[Any, Any]]:
        """Each parameter that was typed, and its value."""
        context = self.context
        for parameter in () if context is None else context.command.params:
            source = context.get_parameter_source(parameter.name)
            if source is not None and source.name == "COMMANDLINE":
                yield parameter, context.params[parameter.name]

    @property
    def command(self) -> str:
        """The command's name, with its groups'."""
        return str(self.context.command_path).partition(" ")[2]

    def again(self, *more: str, without: Collection[str] = ()) -> str:
        """What was typed, for the same data.

        Args:
            *more: words to add.
            without: names of parameters to leave out.
        """
        left_out = {"as_json", *without}
        words = [_words(parameter, value) for parameter, value in self._typed() if parameter.name not in left_out]
        return _joined(self.command, *words, *more)

    def only(self, *names: str) -> str:
        """What was typed for these parameters, with a space before it; "" for nothing."""
        words = [_words(parameter, value) for parameter, value in self._typed() if parameter.name in names]
        return f" {_joined(*words)}" if words else ""

    def other(
        self, command: str, plan: "Plan", *more: str, file: str | None = None, saved: Path | None = None
    ) -> str | None:
        """Another command for the same plan, with every option that it has, too; None if it cannot take the plan.

        Args:
            command: its name, with its groups'.
            plan: what the options ask for; None of its numbers need be typed but the users.
            *more: words to add.
            file: the name of a file, where the other command reads one; the columns are left to whoever types it.
            saved: where the plan has been written, if it has: a command that takes a file of it is given that.
        """
        target = self.context.find_root().command
        for word in command.split():
            target = target.get_command(self.context, word)
        known = {parameter.name: parameter for parameter in target.params}
        options = {option for parameter in target.params for option in parameter.opts}
        typed = [(parameter, value) for parameter, value in self._typed() if parameter.name not in (*_SHOWN, *_WHERE)]
        kept = next((str(value) for parameter, value in typed if parameter.name == "plan_file"), None)
        if saved is not None and "plan_file" in known:
            kept = str(saved)
        words = [command, *([file, own_columns(plan)] if file is not None else [])]
        if kept is not None:
            # A plan's file says everything, and is for its own number of people.
            return None if "plan_file" not in known else _joined(*words, f"--plan {shlex.quote(kept)}", *more)
        if "protocol" in known:
            by_option = any(option.startswith("-") for option in known["protocol"].opts)
            words.append(f"--protocol {plan.protocol}" if by_option else plan.protocol)
        if "users" in known and file is None:
            words.append(f"--users {plan.users}")
        left_out = {*_TOLD, *_READ, *(() if file is not None else ("clip",))}
        given = {parameter.name: value for parameter, value in typed}
        if "domain_is_public" in given or (given.get("missing") == "other" and "missing" not in known):
            # The domain was read from data, or has one more category for people without a value: what it is is said.
            left_out |= {"domain", "other", "domain_is_public"}
            words.append(plan.options)
            given |= dict.fromkeys(_LEFT_OUT)
            options -= set(shlex.split(plan.options))
        for parameter, value in typed:
            option = next((each for each in _longest_first(parameter) if each in options), None)
            if option is not None and parameter.name not in left_out:
                words.append(_words(parameter, value, option))
        # How many numbers a vector has may have been left to a file, and some commands have a default of their own.
        for name in _LEFT_OUT if file is None else ():
            if name in known and name not in given:
                words += _option_in(plan.options, f"--{name.replace('_', '-')}")
        return _joined(*words, *more)


def _longest_first(parameter: Any) -> list[str]:
    return sorted(parameter.opts, key=lambda option: -len(option))


def _words(parameter: Any, value: Any, option: str | None = None) -> str:
    """A parameter with its value as they are typed."""
    first = option or _longest_first(parameter)[0]
    if not first.startswith("-"):
        return shlex.quote(str(value))
    if isinstance(value, bool):
        return first if value else str(parameter.secondary_opts[0])
    if isinstance(value, list | tuple):
        return " ".join(f"{first} {shlex.quote(str(each))}" for each in value)
    return f"{first} {shlex.quote(str(value))}"


def _option_in(text: str, option: str) -> list[str]:
    """An option of a text of options, with its value."""
    words = shlex.split(text)
    return [f"{option} {shlex.quote(words[words.index(option) + 1])}"] if option in words else []


def _joined(*words: str) -> str:
    return " ".join(word for word in words if word)
