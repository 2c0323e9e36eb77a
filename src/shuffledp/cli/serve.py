"""`shuffledp serve`: a shuffler, an analyzer, both, a whole cascade, or a relay, for as long as one likes."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from shuffledp.cli.serve_making import (
    Layered,
    make_analyzer,
    make_folder,
    make_shuffler,
    run_servers,
    texts_of,
)
from shuffledp.cli.servers import fill_watch, token_for
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.service.serving import Server

serve_app = typer.Typer(help="Run a shuffler, an analyzer, both, a cascade, or a relay, until interrupted.")

Keys = Annotated[Path, typer.Option(help="The folder of keys; a shuffler reads its tokens only.", metavar="FOLDER")]
Tasks = Annotated[list[Path] | None, typer.Option(help="A task to serve; repeat it for more.", metavar="FILE")]
Campaigns = Annotated[list[Path] | None, typer.Option(help="A campaign to serve; repeat it for more.", metavar="FILE")]
Store = Annotated[
    str, typer.Option(help="The database, made if it is new: a file, or postgresql://...", metavar="FILE|ADDRESS")
]
Host = Annotated[str, typer.Option(help="Another address than this machine's own needs TLS.", metavar="A")]
TlsCert = Annotated[Path | None, typer.Option(help="A certificate, PEM.", metavar="FILE")]
TlsKey = Annotated[Path | None, typer.Option(help="Its key, PEM.", metavar="FILE")]
Lease = Annotated[float, typer.Option(help="How long a seat waits for its report.", metavar="S")]
Port = Annotated[int, typer.Option(help="Where to listen.", metavar="P")]
Uds = Annotated[Path | None, typer.Option(help="A socket's file instead of a port, for a proxy here.", metavar="FILE")]
BehindProxy = Annotated[bool, typer.Option("--behind-proxy", help="TLS ends at a proxy in front: plain HTTP anywhere.")]
MaxRate = Annotated[float | None, typer.Option(help="Requests a second of one role's token.", metavar="R")]
Page = Annotated[
    Literal["auto", "login", "off"],
    typer.Option(help="The page for browsers: asks for the token unless it is this machine's own, always, or none."),
]
MaxAtOnce = Annotated[int | None, typer.Option(help="Requests of one role's token under way at once.", metavar="N")]

AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(help="A web page that browsers may call it from; repeat it for more.", metavar="ORIGIN"),
]


@serve_app.command("shuffler")
def serve_shuffler(
    store: Store,
    keys: Keys,
    analyzer: Annotated[
        str,
        typer.Option("--analyzer", "--next", help="Where batches go: the analyzer or the next hop.", metavar="URL"),
    ],
    task: Tasks = None,
    campaign: Campaigns = None,
    hop: Annotated[
        int | None,
        typer.Option("--hop", help="Which hop of a cascade this is, from 1, with its --keys.", metavar="N"),
    ] = None,
    next_token: Annotated[
        Path | None, typer.Option(help="The token of the next server for hops; of --keys if left out.", metavar="FILE")
    ] = None,
    port: Port = 8001,
    host: Host = "127.0.0.1",
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    uds: Uds = None,
    behind_proxy: BehindProxy = False,
    max_rate: MaxRate = None,
    max_at_once: MaxAtOnce = None,
    allow_origin: AllowOrigin = None,
    lease_seconds: Lease = 60.0,
) -> None:
    """Seats, reports and batches: mixes what it cannot read."""
    from shuffledp.service.limits import Limits
    from shuffledp.service.origins import Origins
    from shuffledp.service.serving import Address

    address = Address(host=host, port=port, tls_cert=tls_cert, tls_key=tls_key, uds=uds, behind_proxy=behind_proxy)
    limits, origins = Limits(max_rate, max_at_once), Origins.of(allow_origin)

    def make(undo: ExitStack) -> "Server":
        from shuffledp.cli.foreign_keys import check_next_hop, doubt_of_tokens
        from shuffledp.service.tokens import HOP

        layer, token = Layered.of(hop, keys), token_for(HOP, keys, next_token)
        texts = texts_of(task, campaign)
        check_next_hop(analyzer, token, hop, texts)
        made = make_shuffler(store, keys, analyzer, texts, address, lease_seconds, limits, layer, token, origins, undo)
        if doubt := doubt_of_tokens(analyzer, token):
            typer.echo(f"warning: {doubt}", err=True)
        return made

    run_servers({"shuffler" if hop is None else f"hop {hop}": (address, make)})


@serve_app.command("analyzer")
def serve_analyzer(
    store: Store,
    keys: Keys,
    task: Tasks = None,
    campaign: Campaigns = None,
    port: Port = 8002,
    host: Host = "127.0.0.1",
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    uds: Uds = None,
    behind_proxy: BehindProxy = False,
    max_rate: MaxRate = None,
    max_at_once: MaxAtOnce = None,
    allow_origin: AllowOrigin = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="A budget that whatever is served is charged to.", metavar="FILE"),
    ] = None,
    page: Page = "auto",
    fill_from: Annotated[
        str | None,
        typer.Option(help="The shuffler, or hop 1: the page shows how full its batches are.", metavar="URL"),
    ] = None,
    fill_token: Annotated[
        Path | None, typer.Option(help="The shuffler's token for read; of --keys if left out.", metavar="FILE")
    ] = None,
) -> None:
    """Opens full batches, adds each up once, publishes estimates."""
    from shuffledp.service.limits import Limits
    from shuffledp.service.origins import Origins
    from shuffledp.service.serving import Address

    address = Address(host=host, port=port, tls_cert=tls_cert, tls_key=tls_key, uds=uds, behind_proxy=behind_proxy)
    limits, origins = Limits(max_rate, max_at_once), Origins.of(allow_origin)

    def make(undo: ExitStack) -> "Server":
        fills = fill_watch(fill_from, keys, fill_token)
        return make_analyzer(store, keys, texts_of(task, campaign), address, limits, ledger, origins, page, undo, fills)

    run_servers({"analyzer": (address, make)}, page=None if page == "off" else address.url)


@serve_app.command("all")
def serve_all(
    folder: Annotated[Path, typer.Option("--folder", help="Where both databases are.", metavar="FOLDER")],
    keys: Keys,
    task: Tasks = None,
    campaign: Campaigns = None,
    port: Port = 8001,
    allow_origin: AllowOrigin = None,
    lease_seconds: Lease = 60.0,
) -> None:
    """Both servers in one process, the analyzer on the next port: for development, as nobody is then separate."""
    from shuffledp.service.origins import Origins
    from shuffledp.service.serving import Address

    shuffler, analyzer, origins = Address(port=port), Address(port=port + 1), Origins.of(allow_origin)

    def texts() -> list[str]:
        return texts_of(task, campaign)

    def the_shuffler(undo: ExitStack) -> "Server":
        store = str(folder / "shuffler.db")
        return make_shuffler(store, keys, analyzer.url, texts(), shuffler, lease_seconds, origins=origins, undo=undo)

    def the_analyzer(undo: ExitStack) -> "Server":
        served = texts()
        make_folder(folder, undo)
        store, fills = str(folder / "analyzer.db"), fill_watch(shuffler.url, keys)
        return make_analyzer(store, keys, served, analyzer, origins=origins, undo=undo, fills=fills)

    run_servers({"analyzer": (analyzer, the_analyzer), "shuffler": (shuffler, the_shuffler)}, page=analyzer.url)


@serve_app.command("cascade")
def serve_cascade(
    folder: Annotated[Path, typer.Option("--folder", help="Where all databases are.", metavar="FOLDER")],
    keys: Annotated[Path, typer.Option(help="The analyzer's folder of keys.", metavar="FOLDER")],
    hop: Annotated[
        list[Path], typer.Option("--hop", help="A hop's folder of keys; repeat it, first hop first.", metavar="FOLDER")
    ],
    task: Tasks = None,
    campaign: Campaigns = None,
    port: Port = 8001,
    allow_origin: AllowOrigin = None,
    lease_seconds: Lease = 60.0,
) -> None:
    """All hops of a cascade and the analyzer in one process, on ports that follow each other: for a trial only."""
    from shuffledp.service.hops import LEAST_HOPS, MOST_HOPS
    from shuffledp.service.keys import TOKENS, load_tokens
    from shuffledp.service.origins import Origins
    from shuffledp.service.serving import Address
    from shuffledp.service.tokens import HOP

    if not LEAST_HOPS <= len(hop) <= MOST_HOPS:
        problem = f"must be given {LEAST_HOPS} or {MOST_HOPS} times"
        raise ParameterError("hop", f"given {len(hop)} times", problem, "serve all runs one shuffler")
    addresses = [Address(port=port + place) for place in range(len(hop) + 1)]
    folders, origins = [*hop, keys], Origins.of(allow_origin)

    def the_hop(number: int, undo: ExitStack) -> "Server":
        own, following = addresses[number - 1], addresses[number]
        store, token = str(folder / f"hop-{number}.db"), load_tokens(folders[number] / TOKENS).secrets[HOP]
        layer = Layered.of(number, hop[number - 1])
        texts = texts_of(task, campaign)
        # Pages report to the first hop only.
        seen = origins if number == 1 else None
        made = (store, hop[number - 1], following.url, texts, own, lease_seconds, None, layer, token, seen, undo)
        return make_shuffler(*made)

    def the_analyzer(undo: ExitStack) -> "Server":
        served = texts_of(task, campaign)
        make_folder(folder, undo)
        store, fills = str(folder / "analyzer.db"), fill_watch(addresses[0].url, hop[0])
        return make_analyzer(store, keys, served, addresses[-1], origins=origins, undo=undo, fills=fills)

    hops = {f"hop {number}": (addresses[number - 1], partial(the_hop, number)) for number in range(len(hop), 0, -1)}
    run_servers({"analyzer": (addresses[-1], the_analyzer), **hops})


@serve_app.command("relay")
def serve_relay(
    gateway: Annotated[str, typer.Option(help="The shuffler, or another gateway, that it carries to.", metavar="URL")],
    port: Port = 8004,
    host: Host = "127.0.0.1",
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    uds: Uds = None,
    behind_proxy: BehindProxy = False,
    allow_origin: AllowOrigin = None,
) -> None:
    """Carries sealed reports to one gateway, which then sees no addresses; it logs and keeps nothing: for a trial."""
    from shuffledp.service.oblivious.relay import gateway_url, relay_app
    from shuffledp.service.origins import Origins
    from shuffledp.service.serving import Address, uvicorn_server

    address = Address(host=host, port=port, tls_cert=tls_cert, tls_key=tls_key, uds=uds, behind_proxy=behind_proxy)
    url, origins = gateway_url(gateway), Origins.of(allow_origin)

    def the_relay(undo: ExitStack) -> "Server":
        return uvicorn_server(relay_app(url, origins=origins), address)

    run_servers({"relay": (address, the_relay)}, silent=True)
