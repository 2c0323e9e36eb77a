"""`shuffledp explain`: why a plan is private, and against whom."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from shuffledp.cli import options
from shuffledp.cli.output import facts, heading, print_json, show, table

if TYPE_CHECKING:
    from shuffledp.protocols.plan import Plan


@options.takes_plan()
def explain(plan: "Plan", as_json: options.AsJson = False) -> None:
    """Why a plan is private: the pair of distributions, every term of delta, what each collusion reveals."""
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
                "collusions": [asdict(each) for each in collusions],
                "lying_client": plan.lying_client,
                "fingerprint": plan.fingerprint,
            }
        )
        return
    from shuffledp.protocols.presentation import ListingRow

    proved = ListingRow(("proved", f"{guarantee.delta:.3g}", f"at most the {plan.privacy.delta:g} claimed"), apart=True)
    terms = table(
        "Every term of delta",
        ("term", "delta", "where it comes from"),
        [*((term.name, f"{term.value:.3g}", term.why) for term in guarantee.terms), proved],
        words=("where it comes from",),
    )
    who = table(
        "What each collusion reveals",
        ("who", "epsilon", "in words"),
        (
            (
                each.parties,
                "unbounded" if each.epsilon is None else f"{each.epsilon:.4g}",
                each.in_words
                + ("" if each.paper_epsilon is None else f" (the paper's rule: {each.paper_epsilon:.4g})"),
            )
            for each in collusions
        ),
        words=("in words",),
    )
    claim = (
        f"Whatever one of the {plan.users:,} users' values is replaced by, no event becomes more than "
        f"e^{plan.privacy.epsilon:g} times likelier, but for {plan.privacy.delta:g}."
    )
    rows = [
        ("claim", claim),
        ("pair", guarantee.pair.describe()),
        ("why it dominates", guarantee.dominates_because),
        ("proof", guarantee.theory_page),
    ]
    title = f"Why {plan.protocol} by {plan.method} is private"
    show(facts(title, rows), terms, who, f"One lying client {plan.lying_client}.")
