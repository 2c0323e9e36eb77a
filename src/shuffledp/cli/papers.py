"""`shuffledp papers`: what the papers say, measured again, and their bounds side by side; and the names of before."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from shuffledp.cli.amplify import amplify
from shuffledp.cli.compare import compare
from shuffledp.cli.experiment import EXPERIMENTS

papers_app = typer.Typer(help="Measure again what the papers say, and compare their bounds.")
_PAPERS: dict[str, Any] = {**EXPERIMENTS, "compare": compare, "amplify": amplify}
for _name, _command in _PAPERS.items():
    papers_app.command(_name)(_command)


def _renamed(command: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """A command under its old name, which says its new one on standard error and is gone in the next version."""

    @wraps(command)
    def run(*words: Any, **options: Any) -> Any:
        told = f"shuffledp: `shuffledp {old}` is now `shuffledp {new}`; the old name ends with the next version."
        typer.echo(told, err=True)
        return command(*words, **options)

    for name in ("__signature__", "__annotations__"):
        if hasattr(command, name):
            setattr(run, name, getattr(command, name))
    return run


def add_old_names(app: typer.Typer) -> None:
    """Keep `experiment NAME`, `compare` and `amplify` as they were called before, hidden from the help."""
    experiments = typer.Typer(help="Now `shuffledp papers`.")
    for name, command in EXPERIMENTS.items():
        experiments.command(name)(_renamed(command, f"experiment {name}", f"papers {name}"))
    app.add_typer(experiments, name="experiment", hidden=True)
    for command in (compare, amplify):
        name = command.__name__
        app.command(name, hidden=True)(_renamed(command, name, f"papers {name}"))
