"""`shuffledp ledger`: a population's privacy budget on disk."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, print_json, show, table
from shuffledp.privacy import Privacy

if TYPE_CHECKING:
    from shuffledp.accounting.ledger import Ledger, Left
    from shuffledp.protocols.plan import Plan

ledger_app = typer.Typer(help="Keep a population's privacy budget: open, show, spend, close.")

File = Annotated[Path, typer.Argument(help="The ledger's file.", metavar="FILE")]
Population = Annotated[str, typer.Option(help="Whose budget this is.", metavar="NAME")]
Epsilon = Annotated[float, typer.Option(help="The budget for everything together.", metavar="E")]
Delta = Annotated[float, typer.Option(help="The probability left over, for everything.", metavar="D")]


@ledger_app.command("open")
def open_ledger(
    file: File, population: Population, epsilon: Epsilon, delta: Delta, as_json: options.AsJson = False
) -> None:
    """Grant a population a budget, once."""
    from shuffledp.accounting.ledger import Ledger

    Ledger.open(file, population, Privacy(epsilon, delta))
    _report(file, as_json=as_json)


@ledger_app.command("show")
def show_ledger(file: File, as_json: options.AsJson = False) -> None:
    """The budget, everything that was asked, what is spent and what is left."""
    _report(file, as_json=as_json)


@ledger_app.command("spend", cls=options.OpenCommand)
@options.takes_plan(protocol="option")
def spend(plan: "Plan", ledger: File, as_json: options.AsJson = False) -> None:
    """Record a plan before it is run; refused, with what is left, if it would pass the budget."""
    from datetime import UTC, datetime

    from shuffledp.protocols.ledger_entries import entry_of

    _report(ledger, lambda budget: budget.spend(entry_of(plan, datetime.now(UTC))), as_json=as_json)


@ledger_app.command("close")
def close(file: File, as_json: options.AsJson = False) -> None:
    """Let nothing more be asked of this population."""
    _report(file, lambda budget: budget.close(), as_json=as_json)


def _report(file: Path, change: "Callable[[Ledger], Any]" = lambda budget: None, *, as_json: bool) -> None:
    """Change a ledger, if it is to be changed, and say what it holds then."""
    from shuffledp.accounting.ledger import Ledger

    budget = Ledger.load(file)
    change(budget)
    left = budget.left()
    if as_json:
        print_json(_document(budget, left))
        return
    account = budget.account
    said = [
        ("budget", f"epsilon {account.budget.epsilon:g}, delta {account.budget.delta:g}"),
        ("state", f"{account.state}, version {account.version}"),
        ("spent", f"epsilon {left.epsilon_spent:.4g} at delta {account.budget.delta:g}"),
        ("left", _in_words(left)),
    ]
    show(facts(f"The budget of {account.population}", said))
    if account.entries:
        rows = (
            (
                entry.time[:16].replace("T", " "),
                entry.description,
                f"{entry.users:,}",
                f"{entry.claim.epsilon:g}",
                f"{entry.claim.delta:g}",
                entry.fingerprint[:8],
            )
            for entry in account.entries
        )
        headings = ("when (UTC)", "what", "users", "epsilon", "delta", "plan")
        show(table("Asked so far", headings, rows, left=("what",), folded=("what",)))


def _in_words(left: "Left") -> str:
    if left.question is None:
        return "nothing more can be asked"
    question = f"epsilon {left.question.epsilon:g}, delta {left.question.delta:g}"
    return f"one more question of {question}, or several smaller ones"


def _document(budget: "Ledger", left: "Left") -> dict[str, Any]:
    from shuffledp.accounting.ledger import SCHEMA, entry_document

    account, more = budget.account, left.question
    question = None if more is None else {"epsilon": more.epsilon, "delta": more.delta}
    return {
        "schema": SCHEMA,
        "version": account.version,
        "population": account.population,
        "epsilon": account.budget.epsilon,
        "delta": account.budget.delta,
        "state": account.state,
        "entries": [entry_document(entry) for entry in account.entries],
        "spent": {"epsilon": left.epsilon_spent, "delta": left.delta_spent},
        "left": {"epsilon": left.epsilon, "question": question},
    }
