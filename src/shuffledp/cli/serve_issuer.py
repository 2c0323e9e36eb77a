"""`shuffledp serve issuer`: signs one token a person, for trials and small groups."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shuffledp.cli.serve import AllowOrigin, BehindProxy, Host, Port, TlsCert, TlsKey, Uds
from shuffledp.cli.serve_making import run_servers
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.service.serving import Server


def serve_issuer(
    keys: Annotated[Path, typer.Option(help="The issuer's folder of keys.", metavar="FOLDER")],
    invitations: Annotated[Path, typer.Option(help="People: an invitation, a secret, a line.", metavar="FILE")],
    store: Annotated[Path, typer.Option(help="Who was signed for, made if it is new.", metavar="FILE")],
    each: Annotated[int, typer.Option(help="Tokens of one person: the visits of a campaign.", metavar="N")] = 1,
    port: Port = 8003,
    host: Host = "127.0.0.1",
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    uds: Uds = None,
    behind_proxy: BehindProxy = False,
    allow_origin: AllowOrigin = None,
) -> None:
    """Signs one token a person without seeing it: for trials; in earnest whoever knows the users does it."""
    from shuffledp.service.origins import Origins
    from shuffledp.service.serving import Address

    if each < 1:
        raise ParameterError("each", each, "must be 1 or more", "one is for a task")
    address = Address(host=host, port=port, tls_cert=tls_cert, tls_key=tls_key, uds=uds, behind_proxy=behind_proxy)
    origins = Origins.of(allow_origin)

    def make(undo: ExitStack) -> "Server":
        from shuffledp.randomness import RandomBits
        from shuffledp.service.admission.issuer_app import IssuerServer, issuer_app
        from shuffledp.service.admission.issuer_keys import load_issuer, load_issuer_key
        from shuffledp.service.admission.issuing import IssuerDesk, open_issuer_store, people_of, read_invitations
        from shuffledp.service.serving import uvicorn_server

        people = people_of(read_invitations(invitations))
        desk = IssuerDesk(load_issuer(keys), load_issuer_key(keys), people, RandomBits.secure(), each)
        opened = open_issuer_store(store)
        undo.callback(opened.close)
        return uvicorn_server(issuer_app(IssuerServer(desk, opened), origins), address)

    run_servers({"issuer": (address, make)})
