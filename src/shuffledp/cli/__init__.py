"""The command `shuffledp`: one file a command; this one is the door, with the exit codes."""

import io
import sys
from collections.abc import Sequence
from typing import NoReturn

from shuffledp.errors import ShuffleDPError

DONE, BUG, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 2 bad input, 3 a claim refuted, 1 a bug, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # A screen that lacks a letter of somebody's name shows its number instead of failing.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(words)
    except KeyboardInterrupt:
        # Some interrupts arrive as they are, and most as the code: it depends on where they find the work.
        code = INTERRUPTED
    if code == INTERRUPTED:
        from shuffledp.cli.output import fail

        fail("interrupted, and no file is half-written.", as_json="--json" in words)
    sys.exit(code)


def _run(words: list[str]) -> int:
    from shuffledp.cli.app import USAGE_ERROR, built
    from shuffledp.cli.output import fail

    as_json = "--json" in words
    try:
        _check_once(words)
        return int(built()(words, standalone_mode=False, prog_name="shuffledp") or DONE)
    except ShuffleDPError as error:
        fail(str(error), getattr(error, "parameter", None), getattr(error, "value", None), as_json=as_json)
        return BAD_INPUT
    except USAGE_ERROR as error:
        from shuffledp.cli.usage import refusal

        fail(*refusal(error, words), as_json=as_json)
        return BAD_INPUT
    except BrokenPipeError:
        # Whoever read this has had enough: there is nobody to tell.
        return BROKEN_PIPE
    except Exception as error:
        if _was_interrupted(error):
            return INTERRUPTED
        import traceback

        from shuffledp.files import is_of_the_system

        if isinstance(error, OSError) and is_of_the_system(error):
            where, why = error.filename or "a file", error.strerror or str(error)
            fail(f"file must be usable ({why}), got {where}: mend that, then run it again.", "file", as_json=as_json)
            return BAD_INPUT

        traceback.print_exc()
        fail(
            f"{type(error).__name__}: {error}. This is a bug; please report it as CONTRIBUTING.md says, "
            "with the command and the text above.",
            as_json=as_json,
        )
        return BUG


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether an error comes of an interrupt: a library that was met by one may raise an error of its own instead."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _check_once(words: list[str]) -> None:
    """Refuse a file's option that is given twice: of two files one would not be written, in silence."""
    from shuffledp.errors import ParameterError

    typed = words[: words.index("--")] if "--" in words else words
    named = ["--out" if word == "-o" else word.partition("=")[0] for word in typed]
    for option in ("--out", "--picture", "--csv"):
        if named.count(option) > 1:
            problem, way_out = "must be given once", "a picture and a table have --picture and --csv beside -o"
            raise ParameterError(option[2:], f"it {named.count(option)} times", problem, way_out)
