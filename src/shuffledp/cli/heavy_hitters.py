"""`shuffledp heavy-hitters`: the most frequent strings of a column, in a domain nobody can list."""

import time
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.engine_options import HERE, EngineAsked, on_engine
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.output import SEEDED, WIDE, facts, heading, next_steps, print_json, show
from shuffledp.cli.progress import working
from shuffledp.cli.running import SMALL, check_whole, run_plan

Alphabet = Annotated[
    str | None,
    typer.Option(help="Symbols strings are made of; any text. Fewer symbols find rarer strings.", metavar="ABC"),
]


@options.takes_plan("heavy-hitters", domain=(), without=("users", "noise", "constants", "plan_file"))
@on_engine
def heavy_hitters(
    asked: Asked,
    file: options.File,
    column: options.Column = None,
    top: Annotated[int, typer.Option(help="Strings to find, at most.", metavar="K")] = 10,
    length: Annotated[int, typer.Option(help="Bytes of a string that count; longer ones end in …", metavar="L")] = 16,
    alphabet: Alphabet = None,
    keep: Annotated[int | None, typer.Option(help="Prefixes that survive a level, at most.", metavar="N")] = None,
    out: options.Out = None,
    csv: options.Csv = None,
    fast: options.Fast = False,
    with_truth: options.WithTruth = False,
    seed: options.Seed = None,
    engine: EngineAsked = HERE,
    as_json: options.AsJson = False,
) -> None:
    """The most frequent strings of a file's column, in a domain nobody can list, level by level of a prefix tree."""
    import numpy as np

    from shuffledp.protocols.presentation import Column, ListingRow
    from shuffledp.simulation.heavy_hitters import search_heavy_hitters
    from shuffledp.tables.texts import read_texts

    kept = KeptFiles.at(out=out, csv=csv, reads=(file,), no_picture="cannot be drawn: the answer is a list of strings")
    asked.target(users=1)
    given = {"length": length, "top": top, "alphabet": alphabet, "keep": keep}
    typed = {name: value for name, value in given.items() if value is not None}
    search: Any
    strings: Any = None
    with working(f"reading {file.name}", shown=not as_json):
        streamed = None
        if not (with_truth or fast):
            streamed = replace(asked, typed=typed).in_pieces(file, column, None, clip=False, least=SMALL)
        if streamed is None:
            check_whole(file, asked, engine, words=True)
            texts = read_texts(file, column, reading=asked.reading)
            search = replace(asked, typed=typed).plan(users=len(texts))
            strings = search.as_bytes(texts.distinct)[texts.where]
        else:
            search = streamed[0]
    planned = dict(search.facts())
    promise = planned["finds"]
    if not as_json:
        typer.echo(f"Finds {promise}.", err=True)
    most = levels = 0

    def tell(state: Any) -> None:
        nonlocal most, levels
        levels += 1
        most = max(most, search.ask(state).messages_per_user_max)

    started = time.perf_counter()
    bits = options.bits_of(seed)
    pieces = None
    if streamed is None:
        with working("asking level after level", shown=not as_json):
            found = search_heavy_hitters(search, strings, bits=bits, fast=fast, progress=tell)
    else:
        ran = run_plan(search, streamed[1], engine, seed=seed, fast=False, shown=not as_json, told=tell)
        found, pieces = ran.estimate.found, ran.pieces
    seconds = time.perf_counter() - started
    # The truth is nobody's to see unless somebody asks for it: without it, what is printed is private.
    true: dict[str, int] = {}
    cut = true_top = None
    if with_truth:
        names, counts = np.unique(strings, return_counts=True)
        true = {search.domain.name(name): int(count) for name, count in zip(names, counts, strict=True)}
        cut, true_top = int((np.char.str_len(strings) > length).sum()), search.true_value(strings)
    presented = search.present(search.estimate_of(found), true_top)
    document = {
        **heading(search, "method"),
        "length": length,
        "top": top,
        "cut": cut,
        "surely_found": search.surely_found,
        "groups": search.groups,
        "levels": levels,
        "messages_per_user_max": most,
        "found": [asdict(each) | {"truth": true.get(each.string, 0) if with_truth else None} for each in found],
        "true_top": true_top and [{"string": name, "count": count} for name, count in true_top.items()],
        "fidelity": "law" if fast else "messages",
        "simulated": not bits.is_secure,
        **({} if pieces is None else pieces.document),
        "seconds": seconds,
        "fingerprint": search.fingerprint,
        **kept.named,
    }
    kept.write(document, presented)
    if as_json:
        print_json(document)
        return
    (listing,) = presented.listings
    strings_first, *others = listing.columns
    listing = replace(listing, columns=(replace(strings_first, width=WIDE), *others))
    if true_top is not None:
        rows = zip(listing.rows, found, strict=True)
        with_true = tuple(ListingRow((*row.cells, f"{true.get(each.string, 0):,}")) for row, each in rows)
        listing = replace(listing, columns=(*listing.columns, Column("truth")), rows=with_true)
    missed = [name for name in true_top or () if name not in {each.string for each in found}]
    of_these = "" if true_top is None else f"; of the true top {len(true_top)}, missed: {', '.join(missed) or 'none'}"
    scaled = "; counts of the last group are scaled to all users" if search.groups > 1 else ""
    target = f"epsilon {search.privacy.epsilon:g}, delta {search.privacy.delta:g}"
    told = [
        ("asked", f"the {top} most frequent of {search.users:,} users' strings"),
        ("privacy", f"{target}: {search.who_reports}"),
        ("promised", promise),
        ("levels", f"{levels} asked, of {planned['levels']}; up to {most} messages a person and level"),
        ("intervals", f"all of them hold in 95% of runs{scaled}"),
        ("found", f"{len(found)}{of_these}"),
        ("trusted", search.trusted),
        ("ran", f"{'by law' if fast else 'message by message'}{(pieces and f', {pieces},') or ''} in {seconds:.2f} s"),
        ("protects", None if bits.is_secure else SEEDED),
        ("cut", f"{cut:,} strings were longer than {length} bytes" if cut else None),
        *kept.facts,
    ]
    show(listing, facts(search.title, told))
    next_steps(
        [
            ("what it promises", asked.said.other("plan heavy-hitters", search)),
            ("why it is private", asked.said.other("explain", search)),
        ]
    )
