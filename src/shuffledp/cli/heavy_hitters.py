"""`shuffledp heavy-hitters`: the most frequent strings of a column, in a domain nobody can list."""

import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import target
from shuffledp.cli.output import facts, print_json, show, table
from shuffledp.cli.progress import working

Top = Annotated[int, typer.Option("--top", help="Strings to find, at most.", metavar="K")]
Length = Annotated[
    int, typer.Option("--length", help="Bytes of a string that count; longer ones are cut.", metavar="L")
]
Alphabet = Annotated[
    str | None, typer.Option("--alphabet", help="Symbols strings are made of; printable ASCII.", metavar="ABC")
]
Keep = Annotated[int | None, typer.Option("--keep", help="Prefixes that survive a level, at most.", metavar="N")]


def heavy_hitters(
    file: options.File,
    column: options.Column = None,
    top: Top = 10,
    length: Length = 8,
    alphabet: Alphabet = None,
    keep: Keep = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    honest_fraction: options.HonestFraction = 1.0,
    max_messages: options.MaxMessages = None,
    fast: options.Fast = False,
    with_truth: options.WithTruth = False,
    seed: options.Seed = None,
    as_json: options.AsJson = False,
) -> None:
    """The most frequent strings of a file's column, each user in one group of a prefix tree."""
    import numpy as np

    from shuffledp.protocols.catalogue import PROTOCOLS
    from shuffledp.simulation.heavy_hitters import search_heavy_hitters
    from shuffledp.tables.texts import read_texts

    texts = read_texts(file, column)
    people, privacy = target(len(texts), epsilon, delta)
    search: Any = PROTOCOLS["heavy-hitters"].plan(
        users=people,
        privacy=privacy,
        length=length,
        top=top,
        alphabet=alphabet,
        keep=keep,
        honest_fraction=honest_fraction,
        max_messages=max_messages,
    )
    distinct = search.as_bytes(texts.distinct)
    is_cut = np.char.str_len(np.char.encode(texts.distinct, "utf-8")) > length
    cut = int(is_cut[texts.where].sum())
    strings = distinct[texts.where]
    most = 0

    def tell(state: Any) -> None:
        nonlocal most
        most = max(most, search.ask(state).messages_per_user_max)

    started = time.perf_counter()
    bits = options.bits_of(seed)
    with working("asking level after level", shown=not as_json):
        found = search_heavy_hitters(search, strings, bits=bits, fast=fast, progress=tell)
    seconds = time.perf_counter() - started
    # The truth is nobody's to see unless somebody asks for it: without it, what is printed is private.
    shows_truth = with_truth or seed is not None
    names, counts = np.unique(strings, return_counts=True)
    truth = {name.decode(errors="replace"): int(count) for name, count in zip(names, counts, strict=True)}
    rows = [asdict(each) | {"truth": truth.get(each.string, 0) if shows_truth else None} for each in found]
    true_top = sorted(truth.items(), key=lambda item: (-item[1], item[0]))[:top]
    if as_json:
        print_json(
            {
                "schema": 1,
                "protocol": "heavy-hitters",
                "users": people,
                "epsilon": privacy.epsilon,
                "delta": privacy.delta,
                "length": length,
                "top": top,
                "cut": cut if shows_truth else None,
                "users_a_level": search.group_size(1),
                "messages_per_user_max": most,
                "found": rows,
                "true_top": [{"string": name, "count": count} for name, count in true_top] if shows_truth else None,
                "fidelity": "law" if fast else "messages",
                "simulated": not bits.is_secure,
                "seconds": seconds,
            }
        )
        return
    cells = (
        (
            repr(row["string"]),
            f"{row['count']:,.0f}",
            f"{row['lower']:,.0f} .. {row['upper']:,.0f}",
            f"±{row['noise_bound']:,.0f}",
            f"±{row['sampling_bound']:,.0f}",
            *((f"{row['truth']:,}",) if shows_truth else ()),
        )
        for row in rows
    )
    headings = ("string", "count", "interval", "noise", "sampling", *(("truth",) if shows_truth else ()))
    missed = [name for name, _ in true_top if name not in {row["string"] for row in rows}]
    of_these = ", ".join(missed) or "none"
    facts_rows = [
        ("asked", f"the {top} most frequent of {people:,} users' strings"),
        ("privacy", f"epsilon {privacy.epsilon:g}, delta {privacy.delta:g}: everybody reports once, at one level"),
        ("groups", f"{search.group_size(1):,} users at each of {length} levels, up to {most} messages each"),
        ("intervals", "noise fails in at most 5% of runs, sampling in at most 5%; counts are scaled to all users"),
        ("found", f"{len(rows)}" + (f"; of the true top {len(true_top)}, missed: {of_these}" if shows_truth else "")),
        ("ran", f"{'by law' if fast else 'message by message'} in {seconds:.2f} s"),
    ]
    if not bits.is_secure:
        facts_rows.append(("protects", "nobody: seeded noise can be repeated; leave --seed out"))
    if cut and shows_truth:
        facts_rows.append(("cut", f"{cut:,} strings were longer than {length} bytes"))
    show(
        facts("Frequent strings, privately", facts_rows), table("Frequent strings", headings, cells, folded=("string",))
    )
