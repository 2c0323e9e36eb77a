"""`shuffledp keys`: key pairs of the analyzer or a hop, and tokens; new ones with an overlap, old ones destroyed."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, next_steps, print_json, show
from shuffledp.errors import ParameterError


class MakingGroup(typer.core.TyperGroup):
    """A group whose first command may be left out: `shuffledp keys FOLDER` makes keys."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line; without a command they are those of `make`."""
        named = next((word for word in args if not word.startswith("-")), None)
        if named not in self.commands and (named is not None or not {"-h", "--help"} & set(args)):
            args = ["make", *args]
        return super().parse_args(ctx, args)


keys_app = typer.Typer(
    cls=MakingGroup,
    help="Make the keys of a service in a new FOLDER; then rotate and retire them: make, gateway, rotate, retire.",
)

NewFolder = Annotated[Path, typer.Argument(help="A new folder.", metavar="FOLDER")]
Folder = Annotated[Path, typer.Argument(help="The folder of keys.", metavar="FOLDER")]
ForIssuer = Annotated[
    str | None, typer.Option("--issuer", help="Of whoever signs people's tokens: its host name.", metavar="NAME")
]
Expires = Annotated[
    str | None,
    typer.Option(help="The key's last day, or days from today: no task or report afterwards.", metavar="DATE|DAYS"),
]
ForGateway = Annotated[bool, typer.Option("--gateway", help="The shuffler's keys for what relays bring instead.")]
ForHop = Annotated[bool, typer.Option("--hop", help="Of one hop of a cascade, made by whoever runs it.")]


@keys_app.command("make")
def make(
    folder: NewFolder,
    hop: ForHop = False,
    issuer: ForIssuer = None,
    expires: Expires = None,
    as_json: options.AsJson = False,
) -> None:
    """Make the keys of a service: one pair for the analyzer, or for a hop of a cascade, and a token for each role.

    With --issuer: those of whoever says who may take part in one task or campaign.
    """
    if issuer is not None:
        for other, said in (("hop", hop), ("expires", expires is not None)):
            if said:
                problem = f"and --{other} must not both be given"
                raise ParameterError(
                    "issuer", issuer, problem, "make a folder for each; an issuer's key ends with its task"
                )
        _make_issuers(folder, issuer, as_json=as_json)
        return
    from shuffledp.randomness import RandomBits
    from shuffledp.service.expiry import last_day
    from shuffledp.service.keys import make_hop_keys, make_keys

    last = None if expires is None else last_day(expires)
    public = (make_hop_keys if hop else make_keys)(folder, bits=RandomBits.secure(), expires=last)
    who = _for_a_hop() if hop else _for_the_analyzer()
    if as_json:
        made = {"schema": 1, "folder": str(folder), "public_key": public.text, "files": list(who)}
        print_json(made if last is None else {**made, "expires": last})
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


def _make_issuers(folder: Path, name: str, *, as_json: bool) -> None:
    from shuffledp.randomness import RandomBits
    from shuffledp.service.admission.issuer_keys import make_issuer_keys
    from shuffledp.service.keys import ISSUER_PRIVATE, ISSUER_PUBLIC

    made = make_issuer_keys(folder, name, bits=RandomBits.secure())
    who = {
        ISSUER_PRIVATE: "the issuer only: who has it can let in as many false people as they like",
        ISSUER_PUBLIC: "everybody: it goes into one task or campaign, and into no other",
    }
    if as_json:
        print_json({"schema": 1, "folder": str(folder), "issuer": made.document(), "files": list(who)})
        return
    show(facts(f"An issuer's keys in {folder}: who needs which file", list(who.items())))
    next_steps(
        [
            ("name it in a task", f"task create --plan plan.json --keys KEYS --issuer {folder} -o task.json"),
            ("invite people", "token invite N -o invitations.txt"),
            ("sign for them", f"serve issuer --keys {folder} --invitations invitations.txt --store issuer.db"),
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


@keys_app.command("gateway")
def gateway(folder: Folder, as_json: options.AsJson = False) -> None:
    """Make the shuffler with these keys a gateway for relays: a key pair more, and the file that clients are given."""
    from shuffledp.service.oblivious.gateway_keys import make_gateway_key

    _tell_gateway(folder, make_gateway_key(folder), as_json=as_json)


def _tell_gateway(folder: Path, config: Any, *, as_json: bool) -> None:
    """What became of a gateway's keys, and who needs which file."""
    from shuffledp.service.keys import GATEWAY, GATEWAY_CONFIGS

    older = [file.name for file in GATEWAY.files(folder) if "-" in file.name]
    if as_json:
        said = {"public_key": config.public.text, "key_id": config.key_id, "file": GATEWAY_CONFIGS}
        print_json({"schema": 1, "folder": str(folder), **said, "older_keys": older})
        return
    rows = [
        (GATEWAY.private, "the shuffler only; who has it and sees what a relay carries reads it, ciphertexts inside"),
        (GATEWAY_CONFIGS, "everybody, and everybody the same: with the application, never through the relay"),
        ("key", f"{config.public.text}, number {config.key_id}"),
        ("older keys", f"{', '.join(older)}: taken, too, until they are retired" if older else None),
        ("now", "start the shuffler again: servers read keys when they start"),
    ]
    show(facts(f"A gateway's keys in {folder}", rows))
    relay = "serve relay --gateway http://127.0.0.1:8001"
    report = f"report 1 --relay http://127.0.0.1:8004 --gateway-keys {folder}/{GATEWAY_CONFIGS} --task FILE"
    retire = [("when everybody has the new file", f"keys retire {folder} --gateway")] if older else []
    next_steps([*retire, ("try a relay", relay), ("report through it", f"{report} --shuffler URL --token-file FILE")])


@keys_app.command("rotate")
def rotate(
    folder: Folder,
    tokens: Annotated[bool, typer.Option("--tokens", help="The tokens instead of the key pairs.")] = False,
    gateway: ForGateway = False,
    expires: Expires = None,
    as_json: options.AsJson = False,
) -> None:
    """Make new keys current; tasks of the older ones are served, and older tokens taken, until they are retired."""
    from shuffledp.randomness import RandomBits
    from shuffledp.service.expiry import last_day
    from shuffledp.service.keys import ANALYZER, MODELS, is_hops
    from shuffledp.service.rotation import rotate_keys, rotate_tokens

    bits, last = RandomBits.secure(), None if expires is None else last_day(expires)
    _check_one(tokens, gateway)
    if gateway:
        from shuffledp.service.oblivious.gateway_keys import rotate_gateway_key

        if last is not None:
            problem = "must be left out: a gateway's key has no last day"
            raise ParameterError("expires", expires, problem, "rotate and retire it instead")
        _tell_gateway(folder, rotate_gateway_key(folder), as_json=as_json)
        return
    if tokens:
        if last is not None:
            raise ParameterError("expires", expires, "must be left out: tokens have no last day", "retire them instead")
        older = {role: len(some) for role, some in rotate_tokens(folder, bits=bits).older.items()}
        if as_json:
            print_json({"schema": 1, "folder": str(folder), "older_tokens": older})
            return
        rows = [
            ("tokens", f"new for {', '.join(older)}; older ones are taken, too"),
            *(_after_new_tokens_of_a_hop() if is_hops(folder) else _after_new_tokens()),
        ]
        show(facts(f"New tokens in {folder}", rows))
        next_steps([("when everybody has a new one", f"keys retire {folder} --tokens")])
        return
    public = rotate_keys(folder, bits=bits, expires=last)
    files = [file.name for kind in (ANALYZER, MODELS) for file in kind.files(folder) if "-" in file.name]
    if as_json:
        print_json({"schema": 1, "folder": str(folder), "public_key": public.text, "older_keys": files})
        return
    rows = [
        ("new tasks", f"are encrypted to {public.text}"),
        ("last day", last or "none: --expires gives a key one"),
        ("older keys", f"{', '.join(files)}: tasks that name them are served until they end"),
        ("now", "start the analyzer again; copy analyzer.pub and models.pub to where tasks are created"),
    ]
    show(facts(f"New keys in {folder}", rows))
    retire = f"keys retire {folder} --store ANALYZER_STORE"
    next_steps([("when tasks of the older keys have ended", retire)])


def _after_new_tokens() -> list[tuple[str, str]]:
    return [
        ("now", "start the analyzer again, then the shuffler: servers read tokens when they start"),
        ("then", "give the new enrol.token to devices, read.token to readers, admin.token to the operator"),
        ("at last", "retire the older ones, and start both servers again"),
    ]


def _after_new_tokens_of_a_hop() -> list[tuple[str, str]]:
    return [
        ("now", "start this hop again: servers read tokens when they start"),
        ("then", "give the new hop.token to the hop before this one, or of hop 1 the new enrol.token to devices"),
        ("at last", "retire the older ones, and start this hop again"),
    ]


@keys_app.command("retire")
def retire(
    folder: Folder,
    store: Annotated[
        list[str] | None,
        typer.Option(help="A store of an analyzer with these keys; repeat it for all.", metavar="FILE|ADDRESS"),
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option(help="An older key's file; all of them if left out.", metavar="NAME")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Though a task was created for one that is in none of the stores.")
    ] = False,
    tokens: Annotated[bool, typer.Option("--tokens", help="The older tokens instead of the older keys.")] = False,
    gateway: ForGateway = False,
    as_json: options.AsJson = False,
) -> None:
    """Destroy older keys, unless a task still needs one; the analyzer must not run meanwhile."""
    from shuffledp.service.key_notes import created_tasks
    from shuffledp.service.rotation import retire_keys, retire_tokens

    _check_one(tokens, gateway)
    if gateway:
        from shuffledp.service.oblivious.gateway_keys import retire_gateway_keys

        _tell_retired(folder, retire_gateway_keys(folder).destroyed, as_json=as_json)
        return
    if tokens:
        count = retire_tokens(folder)
        if as_json:
            print_json({"schema": 1, "folder": str(folder), "tokens": count})
            return
        show(f"{count} older tokens are forgotten: servers refuse them when they are started again.")
        return
    if not store:
        way_out = "name every store of an analyzer that has these keys, or --tokens"
        raise ParameterError("store", None, "must be given: it says which keys are needed", way_out)
    for name in key or ():
        if not (folder / name).is_file() or "-" not in name or not name.endswith(".key"):
            raise ParameterError(
                "key", name, f"must be an older key's file in {folder}", "leave it out for all of them"
            )
    with ExitStack() as held:
        # Held while keys are destroyed: nobody is given a task meanwhile that would need one.
        done = retire_keys(folder, _needed(held, store, {} if force else created_tasks(folder)), key or ())
    if done.kept:
        who = "; ".join(f"{file} by {_listed(needs)}" for file, needs in done.kept.items())
        way_out = "let it finish, or end it with `shuffledp store end`; --key NAME retires another"
        if _ELSEWHERE in who:
            way_out = f"name every analyzer's store, or hand that task over; --force if it is not used; {way_out}"
        raise ParameterError("folder", str(folder), f"must have older keys that nothing needs, not {who}", way_out)
    _tell_retired(folder, done.destroyed, as_json=as_json)


def _check_one(tokens: bool, gateway: bool) -> None:
    if tokens and gateway:
        raise ParameterError("gateway", True, "and --tokens are two things", "run it once for each")


def _tell_retired(folder: Path, destroyed: tuple[str, ...], *, as_json: bool) -> None:
    if as_json:
        print_json({"schema": 1, "folder": str(folder), "destroyed": list(destroyed)})
        return
    rows = [("destroyed", ", ".join(destroyed) or "none: there are no older keys")]
    if destroyed:
        rows.append(("copies", "destroy them, too: in backups, and on other machines"))
    show(facts(f"Older keys in {folder}", rows))


def _listed(needs: tuple[str, ...], most: int = 3) -> str:
    more = f" and {len(needs) - most} more" if len(needs) > most else ""
    return ", ".join(needs[:most]) + more


_ELSEWHERE = "which is in none of these stores"


def _needed(held: ExitStack, addresses: list[str], created: dict[str, str]) -> dict[str, list[str]]:
    """What still needs which key, by the text of its public half.

    Args:
        held: holds the stores as long as it lasts.
        addresses: of analyzers' stores.
        created: the keys of tasks that were created, by the tasks' ids: those that no store has may be about to begin.
    """
    from contextlib import closing

    from shuffledp.service.analyzer.needing import needed_keys
    from shuffledp.service.store import open_analyzer_store

    needed: dict[str, list[str]] = {}
    for address in addresses:
        opened = held.enter_context(closing(_existing(address, open_analyzer_store)))
        for key, who in opened.read(needed_keys).items():
            needed.setdefault(key, []).extend(who)
        created = {name: key for name, key in created.items() if name not in opened.read(_tasks)}
    for name, key in created.items():
        needed.setdefault(key, []).append(f"task {name[:12]}, {_ELSEWHERE}")
    return needed


def _tasks(records: Any) -> Any:
    """Every task that a store has, or had: that it was stays known."""
    return records.tasks()


def _existing(address: str, open_store: Any) -> Any:
    """A store that is there: a new one needs no keys, and would say so."""
    from shuffledp.service.store import inspect_store

    if not inspect_store(address).is_analyzers:
        raise ParameterError("store", address, "must be an analyzer's", "the shuffler's says nothing about keys")
    return open_store(address)
