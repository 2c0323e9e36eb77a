"""The commands together, in the groups of `shuffledp --help`."""

from functools import cache
from typing import Annotated, Any, cast

import typer

from shuffledp.cli.audit import audit
from shuffledp.cli.batch import batch_app
from shuffledp.cli.campaign import campaign_app
from shuffledp.cli.count import count
from shuffledp.cli.demo import demo_app
from shuffledp.cli.difference import difference
from shuffledp.cli.doctor import doctor
from shuffledp.cli.estimate import estimate
from shuffledp.cli.evaluate import evaluate
from shuffledp.cli.explain import explain
from shuffledp.cli.fit import fit
from shuffledp.cli.heavy_hitters import heavy_hitters
from shuffledp.cli.histogram import histogram
from shuffledp.cli.keys import keys_app
from shuffledp.cli.ledger import ledger_app
from shuffledp.cli.mean import private_mean
from shuffledp.cli.optimize import plan_optimize
from shuffledp.cli.options import OpenCommand
from shuffledp.cli.papers import add_old_names, papers_app
from shuffledp.cli.plan import plan_app
from shuffledp.cli.predict import predict
from shuffledp.cli.protocols import protocols
from shuffledp.cli.quantile import quantile
from shuffledp.cli.report import report
from shuffledp.cli.serve import serve_app
from shuffledp.cli.serve_issuer import serve_issuer
from shuffledp.cli.simulate import simulate
from shuffledp.cli.store import store_app
from shuffledp.cli.sum import private_sum
from shuffledp.cli.task import task_app
from shuffledp.cli.token import token_app
from shuffledp.cli.uniformity import uniformity
from shuffledp.cli.variance import private_variance
from shuffledp.cli.work import work_app

USAGE_ERROR: type[Exception] = cast("type[Exception]", typer.BadParameter.__mro__[2])
"""What typer raises for a wrong command line."""

app = typer.Typer(
    name="shuffledp",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
plan_app.command("optimize")(plan_optimize)
serve_app.command("issuer")(serve_issuer)

COMMANDS: dict[str, dict[str, Any]] = {
    "Answers from a file": {
        "sum": private_sum,
        "mean": private_mean,
        "variance": private_variance,
        "histogram": histogram,
        "quantile": quantile,
        "count": count,
        "heavy-hitters": heavy_hitters,
        "difference": difference,
        "test-uniform": uniformity,
        "simulate": simulate,
    },
    "Models": {"fit": fit, "predict": predict, "evaluate": evaluate},
    "Plans and proofs": {
        "plan": plan_app,
        "protocols": protocols,
        "explain": explain,
        "audit": audit,
        "ledger": ledger_app,
    },
    "Live": {
        "demo": demo_app,
        "keys": keys_app,
        "task": task_app,
        "campaign": campaign_app,
        "token": token_app,
        "serve": serve_app,
        "work": work_app,
        "store": store_app,
        "report": report,
        "estimate": estimate,
        "doctor": doctor,
    },
    "Files of messages": {"batch": batch_app},
    "Papers": {"papers": papers_app},
}
"""Every command by its name, in the panels of the help text."""

_TAKE_EVERY_FAMILY = ("simulate", "explain", "protocols", "audit")
for panel, commands in COMMANDS.items():
    for name, command in commands.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=panel)
        else:
            kind = OpenCommand if name in _TAKE_EVERY_FAMILY else None
            app.command(name, cls=kind, rich_help_panel=panel)(command)
add_old_names(app)


@cache
def built() -> Any:
    """All commands, built once: that takes as long as a small command itself."""
    return typer.main.get_command(app)


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
    """Differential privacy in the shuffle model: statistics from people's devices.

    A shuffler mixes messages that it cannot read, an analyzer reads them without their senders.
    The two must not collude, and enough of the people must follow the protocol.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
