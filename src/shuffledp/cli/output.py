"""What a person sees and what a machine reads."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from shuffledp.protocols.histogram.base import HistogramPlan
    from shuffledp.protocols.plan import Plan


def plain(value: Any) -> Any:
    """The value as strict JSON allows it: no NaN or Infinity, numbers as numbers, the rest as text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)


def print_json(document: Mapping[str, Any]) -> None:
    """One object on standard output and nothing else."""
    sys.stdout.write(json.dumps(plain(document), indent=2, allow_nan=False) + "\n")


def fail(message: str, parameter: str | None = None, value: Any = None, *, as_json: bool) -> None:
    """One line: on standard error for a person, as an object on standard output for a machine."""
    if as_json:
        print_json({"error": {"message": message, "parameter": parameter, "value": value}})
    else:
        typer.echo(f"shuffledp: {message}", err=True)


def facts(title: str, rows: Sequence[tuple[str, str]]) -> "Table":
    """A table of names and values."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_header=False, title_style="bold")
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return table


def show(*renderables: Any) -> None:
    """Print tables and text."""
    from rich.console import Console

    # People's own words come out as they are: a category named [bold] or :smile: is no markup.
    console = Console(highlight=False, soft_wrap=False, markup=False, emoji=False)
    for renderable in renderables:
        console.print(renderable)


def plan_options(plan: "Plan", max_messages: int | None = None, domain: str | None = None) -> str:
    """The options that make this plan again; the domain of a histogram as it was typed, if that is known."""
    privacy = plan.privacy
    words = [f"--users {plan.users} --epsilon {privacy.epsilon!r} --delta {privacy.delta!r} --method {plan.method}"]
    noise = plan.noise
    words.append(value_options(plan, domain))
    if noise.get("rotation") is not None:
        words.append(f"--rotation {noise['rotation']}")
    if max_messages is not None:
        words.append(f"--max-messages {max_messages}")
    if plan.honest_fraction != 1:
        words.append(f"--honest-fraction {plan.honest_fraction!r}")
    if plan.constants != "exact":
        words.append(f"--constants {plan.constants}")
    return " ".join(word for word in words if word)


def value_options(plan: "Plan", domain: str | None = None) -> str:
    """The options that say which values there are."""
    from shuffledp.protocols.distinct_elements import Parities
    from shuffledp.protocols.histogram.base import HistogramPlan
    from shuffledp.protocols.ranges.base import RangesPlan

    if isinstance(plan, HistogramPlan | Parities):
        from shuffledp.cli.domains import domain_options

        return domain_options(plan.categories, domain)
    if isinstance(plan, RangesPlan):
        return plan.domain_options
    return " ".join(f"--{name} {value!r}" for name, value in plan.domain_document.items())


def asked(plan: "Plan") -> str:
    """The question in words."""
    privacy = plan.privacy
    return f"{plan.question}, epsilon {privacy.epsilon:g}, delta {privacy.delta:g}"


def next_steps(steps: Sequence[tuple[str, str]]) -> None:
    """What to try next: a word about it, and the command as it can be typed here."""
    import shutil
    from pathlib import Path

    typed = sys.argv[0] if Path(sys.argv[0]).name == "shuffledp" else "shuffledp"
    program = "shuffledp" if shutil.which("shuffledp") == typed else typed
    width = max(len(what) for what, _ in steps)
    typer.echo("Next:")
    for what, arguments in steps:
        typer.echo(f"  {what:<{width}}  {program} {arguments}")


def what_a_user_sends(plan: "Plan") -> str:
    """Messages and bits in words."""
    unit = "bit" if plan.bits_per_message == 1 else "bits"
    most, mean = plan.messages_per_user_max, plan.messages_per_user_mean
    if plan.protocol == "histogram" and mean != most:
        return f"{mean:,.3g} messages on average, at most {most:,}, of {plan.bits_per_message} {unit} each"
    return f"{most:,} messages of {plan.bits_per_message} {unit} each"


def comparison(plan: "Plan") -> "Table":
    """The plan's noise beside a trusted curator's, the paper's constants' and the local model's."""
    from rich import box
    from rich.table import Table

    from shuffledp.protocols.histogram.base import HistogramPlan

    if isinstance(plan, HistogramPlan):
        return _worst_bins(plan)
    reference = plan.reference()
    laplace = reference.get("central_laplace_standard_error")
    curators = [("trusted curator", reference["central_standard_error"])]
    if laplace is not None:
        curators = [("trusted curator, Laplace", laplace), ("trusted curator, Gaussian", curators[0][1])]
    rows: list[tuple[str, float | None, str]] = [
        *((name, error, "one party sees all") for name, error in curators),
        (f"this plan ({plan.method})", plan.standard_error, "nobody sees any"),
        (
            "the paper's own constants",
            reference["paper_standard_error"],
            "as this plan",
        ),
        ("local model", reference["local_standard_error"], "no shuffler"),
    ]
    table = Table(title="Noise beside three references", title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    table.add_column("who adds it", no_wrap=True)
    table.add_column("standard error", justify="right")
    table.add_column("this plan is", justify="right")
    table.add_column("whom one trusts", style="dim")
    for name, error, trust in rows:
        ratio = "" if error is None or error == plan.standard_error else _ratio(error / plan.standard_error)
        table.add_row(name, "not proved here" if error is None else f"{error:,.4g}", ratio, trust)
    return table


def _worst_bins(plan: "HistogramPlan") -> "Table":
    """How far off the worst category may be, beside a trusted curator's and the local model's."""
    from rich import box
    from rich.table import Table

    from shuffledp.cli.histogram_methods import local_method

    reference = plan.reference()
    rows: list[tuple[str, float | None, str]] = [
        ("trusted curator", reference["central_l_inf_error"], "one party sees all"),
        (f"this plan ({plan.method})", plan.error_bound, "nobody sees any"),
        (f"local: {local_method(plan)}", reference["local_l_inf_error"], "no shuffler"),
    ]
    table = Table(title="The worst category, 95%", title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    table.add_column("who adds noise", no_wrap=True)
    table.add_column("off by at most", justify="right")
    table.add_column("this plan is", justify="right")
    table.add_column("whom one trusts", style="dim")
    for name, error, trust in rows:
        ratio = "" if error is None or error == plan.error_bound else _ratio(error / plan.error_bound)
        table.add_row(name, "-" if error is None else f"{error:,.4g}", ratio, trust)
    return table


def _ratio(times: float) -> str:
    if 0.995 < times < 1.005:
        return "as good"
    return f"{times:,.3g}x better" if times > 1 else f"{1 / times:,.3g}x worse"
