"""`shuffledp keys`: the analyzer's key pair, or a hop's, and a token for each role."""

from pathlib import Path
from typing import Annotated

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, next_steps, print_json, show

Folder = Annotated[Path, typer.Argument(help="A new folder.", metavar="FOLDER")]
ForHop = Annotated[bool, typer.Option("--hop", help="Of one hop of a cascade, made by whoever runs it.")]


def keys(folder: Folder, hop: ForHop = False, as_json: options.AsJson = False) -> None:
    """Make the keys of a service: one pair for the analyzer, or for a hop of a cascade, and a token for each role."""
    from shuffledp.randomness import RandomBits
    from shuffledp.service.keys import make_hop_keys, make_keys

    public = (make_hop_keys if hop else make_keys)(folder, bits=RandomBits.secure())
    who = _for_a_hop() if hop else _for_the_analyzer()
    if as_json:
        print_json({"schema": 1, "folder": str(folder), "public_key": public.text, "files": list(who)})
        return
    show(facts(f"Keys in {folder}: who needs which file", list(who.items())))
    if hop:
        serve = f"serve shuffler --hop N --keys {folder} --next URL --next-token hop.token --store hop.db --task FILE"
        create = f"task create --plan plan.json --keys KEYS --hop {folder} --hop OTHER -o task.json"
        next_steps([("name it in a task", create), ("serve it", serve)])
        return
    plan = "plan counter --users 20000 --shufflers 4 --epsilon 1 --delta 1e-6 --noise coins -o plan.json"
    next_steps(
        [
            ("make a plan", plan),
            ("then a task", f"task create --plan plan.json --keys {folder} -o task.json"),
            ("or a learner on devices", "campaign create --help"),
        ]
    )


def _for_the_analyzer() -> dict[str, str]:
    """Who needs which file of a service's folder."""
    from shuffledp.service.keys import PRIVATE, PUBLIC, SIGNING, TOKENS, VERIFYING, token_name
    from shuffledp.service.tokens import ADMIN, ENROL, HOP, OPEN, READ

    return {
        PRIVATE: "the analyzer only; who has it can read every message, so never the shuffler",
        PUBLIC: "everybody: it goes into every task and campaign",
        SIGNING: "the analyzer only: it signs the models of campaigns",
        VERIFYING: "everybody: it goes into every campaign, and devices check models with it",
        TOKENS: "shuffler and analyzer: all tokens, to compare with",
        token_name(ENROL): "clients, to report",
        token_name(HOP): "the shuffler, or the last hop, to send batches on",
        token_name(READ): "whoever may see the estimates",
        token_name(ADMIN): "the operator, to add tasks",
        token_name(OPEN): "machines that open batches for the analyzer, which have its private key, too",
    }


def _for_a_hop() -> dict[str, str]:
    """Who needs which file of a hop's folder."""
    from shuffledp.service.keys import HOP_PRIVATE, HOP_PUBLIC, TOKENS, token_name
    from shuffledp.service.tokens import ADMIN, ENROL, HOP, READ

    return {
        HOP_PRIVATE: "this hop only; who has the keys of all hops and the analyzer's sees whose messages are whose",
        HOP_PUBLIC: "everybody: it goes into every task and campaign of the cascade",
        TOKENS: "this hop only: all its tokens, to compare with",
        token_name(ENROL): "clients, to report, where this is hop 1",
        token_name(HOP): "the hop before this one, to send batches here",
        token_name(READ): "whoever may see how far it is",
        token_name(ADMIN): "this hop's operator, to add tasks",
    }
