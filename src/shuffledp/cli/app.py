"""The commands together."""

from typing import Annotated, cast

import typer

from shuffledp.cli.amplify import amplify
from shuffledp.cli.audit import audit
from shuffledp.cli.compare import compare
from shuffledp.cli.count import count
from shuffledp.cli.demo import demo
from shuffledp.cli.difference import difference
from shuffledp.cli.doctor import doctor
from shuffledp.cli.estimate import estimate
from shuffledp.cli.experiment import experiment_app
from shuffledp.cli.explain import explain
from shuffledp.cli.fit import fit
from shuffledp.cli.heavy_hitters import heavy_hitters
from shuffledp.cli.histogram import histogram
from shuffledp.cli.keys import keys
from shuffledp.cli.ledger import ledger_app
from shuffledp.cli.optimize import plan_optimize
from shuffledp.cli.options import OpenCommand
from shuffledp.cli.plan import plan_app
from shuffledp.cli.protocols import protocols
from shuffledp.cli.quantile import quantile
from shuffledp.cli.report import report
from shuffledp.cli.serve import serve_app
from shuffledp.cli.simulate import simulate
from shuffledp.cli.task import task_app
from shuffledp.cli.uniformity import uniformity

USAGE_ERROR: type[Exception] = cast("type[Exception]", typer.BadParameter.__mro__[2])
"""What typer raises for a wrong command line."""

app = typer.Typer(
    name="shuffledp",
    help="Differential privacy in the shuffle model: plan, simulate, explain, audit.",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
plan_app.command("optimize")(plan_optimize)
groups = {"plan": plan_app, "ledger": ledger_app, "experiment": experiment_app, "serve": serve_app, "task": task_app}
for name, group in groups.items():
    app.add_typer(group, name=name)
for command in (
    *(demo, simulate, histogram, count, fit, quantile, heavy_hitters, difference, explain, protocols),
    *(compare, audit, amplify, keys, report, estimate, doctor),
):
    takes_every_family = command in (simulate, explain, protocols, audit)
    app.command(command.__name__.replace("_", "-"), cls=OpenCommand if takes_every_family else None)(command)
app.command("test-uniform")(uniformity)


def _show_version(wanted: bool) -> None:
    if wanted:
        from shuffledp import __version__

        typer.echo(f"shuffledp {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Differential privacy in the shuffle model: statistics from people's devices, with nobody trusted."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
