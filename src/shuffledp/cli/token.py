"""`shuffledp token`: invitations for people, and tokens that their issuer signs without seeing them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, next_steps, print_json, show
from shuffledp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from shuffledp.service.admission.private_tokens import Gate
    from shuffledp.service.admission.requesting import PendingToken

token_app = typer.Typer(help="Invite people, or have an issuer sign their tokens without seeing them: invite, fetch.")

Out = Annotated[Path, typer.Option("-o", "--out", help="A new file, for its owner only.", metavar="FILE")]
_VERSION = 1


@token_app.command("invite")
def invite(
    people: Annotated[int, typer.Argument(help="How many.", metavar="N")], out: Out, as_json: options.AsJson = False
) -> None:
    """Make invitations, a secret a line: one for each person that an issuer is to sign a token for."""
    from shuffledp.files import write_secret
    from shuffledp.randomness import RandomBits
    from shuffledp.service.admission.issuing import new_invitations

    if people < 1:
        raise ParameterError("people", people, "must be 1 or more", "say how many are invited")
    _check_new(out)
    write_secret(out, "".join(f"{each}\n" for each in new_invitations(people, bits=RandomBits.secure())), 0o600)
    if as_json:
        print_json({"schema": 1, "out": str(out), "invitations": people})
        return
    show(f"{people:,} invitations in {out}: hand out one a person, each by itself.")
    next_steps([("sign tokens for them", f"serve issuer --keys ISSUER --invitations {out} --store issuer.db")])


@token_app.command("fetch")
def fetch(
    task: Annotated[Path, typer.Option("--task", help="The file of a task or a campaign.", metavar="FILE")],
    issuer: Annotated[str, typer.Option(help="Where its issuer is.", metavar="URL")],
    invitations: Annotated[
        Path, typer.Option(help="A file with an invitation a line; a token is fetched for each.", metavar="FILE")
    ],
    out: Out,
    patience: options.Patience = 60.0,
    as_json: options.AsJson = False,
) -> None:
    """Fetch a token for each invitation: the issuer signs it blindly, and cannot recognize it when it is used.

    What was drawn is kept beside FILE until all tokens are there: after an interruption the same command goes on.
    Report some time later, so that the time of a report does not say whose it is.
    """
    from shuffledp.cli.servers import calls_to
    from shuffledp.files import write_secret
    from shuffledp.service.admission.issuing import read_invitations
    from shuffledp.service.admission.private_tokens import in_base64url
    from shuffledp.service.admission.requesting import fetch_token

    _check_new(out)
    gate, listed = _gate(task), read_invitations(invitations)
    kept = out.with_name(f"{out.name}.pending")
    drawn = _drawn(kept, gate, len(listed))
    tokens = []
    for invitation, pending in zip(listed, drawn, strict=True):
        with calls_to(issuer, "issuer", invitation, patience) as calls:
            tokens.append(fetch_token(calls, gate, pending))
    write_secret(out, "".join(f"{in_base64url(token.data)}\n" for token in tokens), 0o600)
    kept.unlink()
    if as_json:
        print_json(
            {"schema": 1, "task_id": gate.task_id, "issuer": gate.issuer.name, "out": str(out), "tokens": len(tokens)}
        )
        return
    rows = [("task", gate.task_id), ("issuer", f"{gate.issuer.name}: it signed, and cannot recognize what")]
    many = "1 token" if len(tokens) == 1 else f"{len(tokens):,} tokens"
    show(facts(f"{many} in {out}", rows))
    next_steps([("report", f"report VALUE --task {task} --shuffler URL --tokens {out}")])


def read_tokens(path: Path) -> list[bytes]:
    """The tokens of a file that `shuffledp token fetch` wrote, one a line.

    Raises:
        ParameterError: it cannot be read.
        DataError: a line is no token.
    """
    from shuffledp.service.admission.private_tokens import TOKEN_BYTES, from_base64url

    try:
        found = [from_base64url(line) for line in path.read_text("ascii").split()]
    except OSError:
        raise ParameterError("tokens", str(path), "must be a file that can be read", "check the path") from None
    except UnicodeDecodeError:
        found = []
    if not found or any(len(token) != TOKEN_BYTES for token in found):
        raise DataError("tokens", str(path), "must hold a token a line", "fetch them with `shuffledp token fetch`")
    return found


def _check_new(out: Path) -> None:
    if out.exists():
        raise ParameterError("out", str(out), "must be a new file", "name another: what it holds is used once")
    if not out.parent.is_dir():
        raise ParameterError("out", str(out), "must be in a directory that exists", f"create {out.parent}")


def _gate(file: Path) -> "Gate":
    """Whose tokens lead in to the task or campaign of a file."""
    from shuffledp.service.rounds import gate_of, routing_of_task

    try:
        task_id, routing = routing_of_task(file.read_text("utf-8").strip())
    except (OSError, UnicodeDecodeError):
        raise ParameterError("task", str(file), "must be a file that can be read", "check the path") from None
    gate = gate_of(routing, task_id)
    if gate is None:
        problem, way_out = "must name an issuer", "report with --token-file enrol.token, or create it with --issuer"
        raise ParameterError("task", str(file), problem, way_out)
    return gate


def _drawn(kept: Path, gate: "Gate", people: int) -> "list[PendingToken]":
    """Tokens that wait for their issuer: those of an interrupted command, or new ones, which are on disk before use."""
    from shuffledp.files import other_version, settle_name, write_secret
    from shuffledp.randomness import RandomBits
    from shuffledp.service.admission.requesting import PendingToken

    if kept.exists():
        try:
            document: Any = json.loads(kept.read_bytes())
            version = document["version"]
            known = (version, document["task_id"], len(document["pending"])) == (_VERSION, gate.task_id, people)
            found = [PendingToken.from_document(each) for each in document["pending"]] if known else []
        except (OSError, ValueError, LookupError, TypeError):
            version, found = _VERSION, []
        if version != _VERSION:
            raise other_version("pending.version", version, _VERSION, "name another -o")
        if not found:
            problem = f"must be of this task, for {people:,} people"
            way_out = "name another -o, or take the invitations that it was begun with"
            raise DataError("pending", str(kept), problem, way_out)
        return found
    bits = RandomBits.secure()
    drawn = [PendingToken.draw(gate, bits=bits) for _ in range(people)]
    document = {"version": _VERSION, "task_id": gate.task_id, "pending": [each.document() for each in drawn]}
    write_secret(kept, json.dumps(document) + "\n", 0o600)
    settle_name(kept)
    return drawn
