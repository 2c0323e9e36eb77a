"""`shuffledp keys`: the analyzer's key pair and a token for each role."""

from pathlib import Path
from typing import Annotated

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, next_steps, print_json, show

Folder = Annotated[Path, typer.Argument(help="A new folder.", metavar="FOLDER")]


def keys(folder: Folder, as_json: options.AsJson = False) -> None:
    """Make the keys of a service: one pair for the analyzer, a token for each role."""
    from shuffledp.randomness import RandomBits
    from shuffledp.service.keys import PRIVATE, PUBLIC, SIGNING, TOKENS, VERIFYING, make_keys, token_name
    from shuffledp.service.tokens import ADMIN, ENROL, HOP, OPEN, READ, ROLES

    public = make_keys(folder, bits=RandomBits.secure())
    files = [PRIVATE, PUBLIC, SIGNING, VERIFYING, TOKENS, *map(token_name, ROLES)]
    if as_json:
        print_json({"schema": 1, "folder": str(folder), "public_key": public.text, "files": files})
        return
    who = {
        PRIVATE: "the analyzer only; who has it can read every message, so never the shuffler",
        PUBLIC: "everybody: it goes into every task and campaign",
        SIGNING: "the analyzer only: it signs the models of campaigns",
        VERIFYING: "everybody: it goes into every campaign, and devices check models with it",
        TOKENS: "shuffler and analyzer: all tokens, to compare with",
        token_name(ENROL): "clients, to report",
        token_name(HOP): "the shuffler, to send batches on",
        token_name(READ): "whoever may see the estimates",
        token_name(ADMIN): "the operator, to add tasks",
        token_name(OPEN): "machines that open batches for the analyzer, which have its private key, too",
    }
    show(facts(f"Keys in {folder}: who needs which file", list(who.items())))
    plan = "plan counter --users 20000 --shufflers 4 --epsilon 1 --delta 1e-6 --noise coins -o plan.json"
    next_steps(
        [
            ("make a plan", plan),
            ("then a task", f"task create --plan plan.json --keys {folder} -o task.json"),
            ("or a learner on devices", "campaign create --help"),
        ]
    )
