"""`shuffledp explain`: why a plan is private, and against whom."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from shuffledp.cli import options
from shuffledp.cli.cascade_output import behind_relay, cascade_document, cascade_tables, check_hops_asked
from shuffledp.cli.output import collusions_listed, collusions_of, facts, heading, print_json, show, table
from shuffledp.cli.progress import working
from shuffledp.cli.token_output import share_of, token_tables

if TYPE_CHECKING:
    from shuffledp.protocols.plan import Plan


@options.takes_plan()
def explain(
    plan: "Plan",
    hops: Annotated[
        int | None, typer.Option("--hops", help="Through a cascade of 2 or 3: who learns what together.", metavar="H")
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option("--tokens", help="Of an issuer, one a person: how many one hand may hold.", metavar="N"),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Why a plan is private: the pair of distributions, every term of delta, what each collusion reveals."""
    check_hops_asked(hops)
    with working("asking the accountant", shown=not as_json):
        guarantee, collusions = plan.guarantee(), plan.collusions()
    if as_json:
        print_json(
            {
                **heading(plan),
                "honest_fraction": plan.honest_fraction,
                "pair": guarantee.pair.describe(),
                "dominates_because": guarantee.dominates_because,
                "theory_page": guarantee.theory_page,
                "delta_terms": [asdict(term) for term in guarantee.terms],
                "delta_proved": guarantee.delta,
                "collusions": collusions_of(collusions, plan.privacy.epsilon),
                "lying_client": plan.lying_client,
                "rests_on": plan.rests_on,
                "neighbours": {"kind": plan.privacy.neighbours, "in_words": _neighbours(plan)},
                "unchecked_claims": list(plan.unchecked_claims),
                "fingerprint": plan.fingerprint,
                **({} if hops is None else {"cascade": cascade_document(plan, hops)}),
                **({} if tokens is None else {"tokens": share_of(plan, tokens).document()}),
            }
        )
        return
    from shuffledp.protocols.presentation import ListingRow

    proved = ListingRow(("proved", f"{guarantee.delta:.3g}", f"at most the {plan.privacy.delta:g} claimed"), apart=True)
    summed = [*((term.name, f"{term.value:.3g}", term.why) for term in guarantee.terms), proved]
    why = "where it comes from"
    terms = table("Every term of delta", ("term", "delta", why), summed, words=(why,))
    who = collusions_listed("What each collusion reveals", collusions, plan.privacy.epsilon)
    claim = (
        f"Whatever takes the place of {plan.replaced}, among {plan.users:,} users, no event becomes more than "
        f"e^{plan.privacy.epsilon:g} times likelier, but for {plan.privacy.delta:g}."
    )
    rows = [
        ("claim", claim),
        *(("warning", caution) for caution in plan.cautions),
        ("neighbours", _neighbours(plan)),
        ("pair", guarantee.pair.describe()),
        ("why it dominates", guarantee.dominates_because),
        ("proof", guarantee.theory_page),
        ("it rests on", plan.rests_on),
        *(("claimed by its maker", claim) for claim in plan.unchecked_claims),
    ]
    title = f"Why {plan.protocol} by {plan.method} is private"
    together = [*cascade_tables(plan, hops or 0), *token_tables(plan, tokens)]
    show(facts(title, rows), terms, who, *together, f"One lying client {plan.lying_client}.", behind_relay(hops or 0))


def _neighbours(plan: "Plan") -> str:
    """What the promise means to whoever is used to people that are added or removed."""
    stronger, most = plan.privacy.added_or_removed, plan.domain.most_rows
    distance = (
        "a change-one distance of 1, or a symmetric distance of 2 between tables of equal size"
        if most is None
        else f"a symmetric distance of up to {2 * most:,} between tables of rows, all of them one person's"
    )
    return (
        f"{plan.replaced}: that is replaced, the number of users being public: in OpenDP's terms {distance}. "
        "It follows from a promise of epsilon "
        f"{stronger.epsilon:.4g} and delta {stronger.delta:.2g} for one person added or removed, as replacing is both"
    )
