"""What a cascade's parties see, alone and together, as tables and as JSON."""

from typing import TYPE_CHECKING, Any

from shuffledp.cli.output import table
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.protocols.plan import Plan


def check_hops_asked(hops: int | None) -> None:
    """Refuse a number of hops that no cascade has.

    Args:
        hops: as it was typed; None for one shuffler.
    """
    from shuffledp.service.hops import LEAST_HOPS, MOST_HOPS

    if hops is not None and not LEAST_HOPS <= hops <= MOST_HOPS:
        raise ParameterError("hops", hops, f"must be {LEAST_HOPS} or {MOST_HOPS}", "leave it out for one shuffler")


def cascade_tables(plan: "Plan", hops: int) -> list[Any]:
    """What parties learn who only look, and what a hop reveals that replaces messages.

    Args:
        plan: what people report by.
        hops: how many shufflers there are, one after another.
    """
    from shuffledp.service.coalitions import ALL, looking, replacing_some, telling

    words = ("in words",)
    seen = looking(plan, hops)
    told = [(each.learns, (_named(each.parties), _left(each.epsilon), each.in_words)) for each in telling(seen)]
    rows = [row for learns, row in told if learns != ALL]
    # With users, too: it is the same for all of these, as the accountant is asked about users only.
    shared = {(each.users, each.epsilon) for each in seen if each.users and each.in_any_order}
    rows += [
        (f"any above with the analyzer, and {users:.3g} of the users", _left(epsilon), "the other users' noise is left")
        for users, epsilon in sorted(shared, key=lambda row: row[0])
    ]
    rows += [row for learns, row in told if learns == ALL]
    learned = table(
        f"What the parties learn together by looking, with {hops} hops",
        ("who", "epsilon", "in words"),
        rows,
        words=words,
        folded=("who",),
        caption="Fewer of them learn no more: one honest hop is enough against all who only look.",
    )
    lost = [
        (f"{each.replaced:,} of {each.messages:,}", f"{each.honest_fraction:.3g}", _left(each.epsilon), each.in_words)
        for each in replacing_some(plan)
    ]
    replaced = table(
        "What the analyzer learns with a hop that replaces messages of a batch by its own",
        ("replaced", "honest share", "epsilon", "in words"),
        lost,
        words=words,
        caption="Their number stays: no honest hop notices. Hop 1 chooses whose stay; one behind an honest hop cannot.",
    )
    return [learned, replaced]


def cascade_document(plan: "Plan", hops: int) -> dict[str, Any]:
    """Every set of parties and what it learns, and what is left where messages are replaced."""
    from shuffledp.service.coalitions import looking, replacing_some

    return {
        "hops": hops,
        "looking": [each.document() for each in looking(plan, hops)],
        "replacing": [each.document() for each in replacing_some(plan)],
    }


def _named(parties: tuple[str, ...]) -> str:
    """The parties, with hops by their numbers.

    >>> _named(("network", "hop 1", "hop 3", "analyzer"))
    'network, hops 1 3, analyzer'
    """
    numbers = [party.partition(" ")[2] for party in parties if party.startswith("hop ")]
    hops = [f"hop{'s' if len(numbers) > 1 else ''} {' '.join(numbers)}"] if numbers else []
    first = [party for party in parties[:1] if party == "network"]
    return ", ".join([*first, *hops, *(party for party in parties[-1:] if party == "analyzer")])


def _left(epsilon: float | None) -> str:
    return "unbounded" if epsilon is None else f"{epsilon:.4g}"
