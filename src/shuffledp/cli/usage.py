"""A command line that cannot be read, refused in one sentence: the option as it is typed, its value, the way out."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any

_MOST_LISTED = 8


def refusal(error: Exception, words: Sequence[str]) -> tuple[str, str | None, str | None]:
    """A usage error in one sentence, with the parameter and the value if it names them.

    Args:
        error: what the parser of the command line raised.
        words: the command line.
    """
    context = getattr(error, "ctx", None)
    see = f"see `{getattr(context, 'command_path', None) or 'shuffledp'} --help`"
    message = str(getattr(error, "message", error)).strip().rstrip(".")
    command, parameter = getattr(context, "command", None), getattr(error, "param", None)
    if stray := _stray_plan(command, words):
        return f"{stray} is a file: write --plan {stray}; {see}.", "plan", stray
    if unknown := getattr(error, "option_name", None):
        return _unknown_option(unknown, getattr(error, "possibilities", None) or (), words, see)
    if parameter is None:
        said = _of_commands(context, message)
        return (f"{said} S{see[1:]}." if said.endswith("?") else f"{said}: {see}."), None, None
    option = max(parameter.opts, key=len)
    name, value = option.lstrip("-").replace("-", "_"), _value_of(option, words)
    if not message or message.startswith("Missing"):
        return f"{name} must be given: add {_all_missing(command, parameter, words)}, {see}.", name, value
    problem, way_out = _plainly(message, value)
    got = "" if value is None else f", got {value}"
    return f"{name} {problem}{got}: {way_out}{see}.", name, value


def _plainly(message: str, value: str | None) -> tuple[str, str]:
    """What a validator says, as a person would, and a way out where there is one."""
    if "valid integer" in message:
        return "must be a whole number", ""
    if "valid number" in message or "valid float" in message:
        pointed = (value or "").replace(",", ".")
        is_comma = pointed != value and re.fullmatch(r"[-+]?\d*\.\d+(e[-+]?\d+)?", pointed, re.IGNORECASE)
        return "must be a number", f"write {pointed}; " if is_comma else ""
    if " is not one of " in message:
        choices = re.findall(r"'([^']*)'", message.partition(" is not one of ")[2])
        near = get_close_matches(value or "", choices, 1)
        return f"must be one of {', '.join(choices)}", f"did you mean {near[0]}? Or " if near else ""
    return f"is refused: {message.removeprefix('Value error, ')}", ""


def _unknown_option(
    option: str, near: Sequence[str], words: Sequence[str], see: str
) -> tuple[str, str | None, str | None]:
    value = _value_of(option, words)
    named = f"No such option: {option}" + ("" if value is None else f", got {value}")
    is_count = option == "--user" and "--users" in near and str(value).isdecimal()
    if option in ("--user", "--at-most") and not is_count:
        from shuffledp.protocols.family import ROW_A_PERSON

        return f"{named}: {ROW_A_PERSON}.", option, value
    meant = "--users" if is_count else near[0] if near else None
    return f"{named}: {'' if meant is None else f'did you mean {meant}? Or '}{see}.", option, value


def _of_commands(context: Any, message: str) -> str:
    """What is wrong with a command's name, and which there are."""
    command: Any = getattr(context, "command", None)
    known = list(command.list_commands(context)) if hasattr(command, "list_commands") else []
    if known and (not message or message.startswith("Missing command")):
        listed = ", ".join(known[:_MOST_LISTED]) + (" or another" if len(known) > _MOST_LISTED else "")
        return f"{context.info_name} must be told what: say one of {listed}"
    if found := re.match(r"No such command '(.*?)'", message):
        near = get_close_matches(found[1], known, 1)
        return f"No such command '{found[1]}'" + (f". Did you mean '{near[0]}'?" if near else "")
    return message or "this command line cannot be read"


def _all_missing(command: Any, first: Any, words: Sequence[str]) -> str:
    """Every option that must be given and is not, as it is typed; the first one may be an argument."""
    typed = {word.partition("=")[0] for word in words}
    required = [each for each in command.params if each.required and not typed & set(each.opts)]
    options = [each for each in required if each is first or any(opt.startswith("-") for opt in each.opts)]
    return " ".join(_typed(each) for each in options or [first])


def _typed(parameter: Any) -> str:
    option = max(parameter.opts, key=len)
    metavar = parameter.metavar or option.lstrip("-").upper()
    return f"{option} {metavar}" if option.startswith("-") else str(metavar)


def _value_of(option: str, words: Sequence[str]) -> str | None:
    """What was typed after an option, or joined to it."""
    joined = [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
    if joined:
        return joined[-1]
    return words[list(words).index(option) + 1] if option in words[:-1] else None


def _stray_plan(command: Any, words: Sequence[str]) -> str | None:
    """A JSON file that stands where no word belongs, in a command that would take it as --plan."""
    parameters = getattr(command, "params", ())
    options = {option for each in parameters for option in each.opts if option.startswith("-")}
    takes_word = any(not option.startswith("-") for each in parameters for option in each.opts)
    if "--plan" not in options or takes_word or "--plan" in words:
        return None
    strays = (word for before, word in pairwise(words) if not before.startswith("-"))
    return next((word for word in strays if word.endswith(".json") and Path(word).is_file()), None)


def whole_number(text: str) -> int:
    """A whole number as people type large ones.

    >>> whole_number("1e6"), whole_number("250")
    (1000000, 250)
    """
    if re.fullmatch(r"\d+(\.\d+)?[eE]\+?\d{1,2}", text.strip()) and float(text).is_integer():
        return int(float(text))
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a valid integer") from None
