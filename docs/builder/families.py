"""The reference of the families of protocols as reStructuredText, read from the families themselves."""

from typing import Any

from shuffledp.protocols.family import Family


def described(name: str, family: Family[Any]) -> str:
    """The entry of one family: what it answers, what must be said about people's values, its methods.

    Args:
        name: its public name in full, such as `shuffledp.BinarySum`.
        family: the family itself.
    """
    lines = [
        f".. py:data:: {name}",
        "   :type: ~shuffledp.protocols.family.Family",
        "",
        f"   {family.summary.replace('--', '')}",
        "",
    ]
    if family.domain:
        lines.append("   What `plan` must be told about people's values:")
        lines.append("")
        for parameter in family.domain:
            left_out = "" if parameter.way_out else " May be left out."
            lines.append(f"   - ``{parameter.name}``: {_plain(parameter.meaning or parameter.problem)}{left_out}")
        lines.append("")
    lines += [f"   Methods: {', '.join(f'``{each}``' for each in family.methods)}.", ""]
    lines += [
        f"   - ``{each}``: {_plain(_first(kind.__doc__))} (``{kind.__module__}.{kind.__name__}``)"
        for each, kind in family.methods.items()
    ]
    return "\n".join([*lines, ""])


def _first(told: str | None) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join((told or "").strip().partition("\n\n")[0].split())


def _plain(text: str) -> str:
    """A text in which nothing but backticks means anything to reStructuredText."""
    return text.replace("*", r"\*").replace("|", r"\|")
