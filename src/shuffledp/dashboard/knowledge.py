"""What the page can and cannot know about a person, and what privacy has cost, in words."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shuffledp.accounting.ledger import Ledger
from shuffledp.dashboard.elements import Html, element, facts, joined, section, table
from shuffledp.errors import ShuffleDPError
from shuffledp.privacy import Privacy
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.presentation import collusion_rows

NO_FILL = (
    "How full the shuffler's open batches are is not shown: the analyzer hears of a batch when it is full and mixed. "
    "To count along while people come would tell it when they come."
)
FILL = (
    "About how full the shuffler's open batches are, as the shuffler says it: every ten seconds, in tenths, and never "
    "in steps of fewer than ten people. A bar that moves says that somebody came in those ten seconds, and not who; "
    "this analyzer is not told the exact number, nor when anybody came."
)


def about_a_person(plan: Plan, people: int, privacy: Privacy, *, shows_fill: bool = False) -> Html:
    """What this analyzer, and whoever reads its page, can find out about one person.

    Args:
        plan: what a person reports by.
        people: how many there are.
        privacy: what each is promised for everything that is asked.
        shows_fill: whether the shuffler is asked how full its batches are.
    """
    can = [
        f"That {people:,} people were asked for, and how many of them are in a full batch.",
        "Numbers about all of them together, with noise that their devices added.",
        f"Of one person at most as much as epsilon {privacy.epsilon:g} and delta {privacy.delta:g} allow: whatever "
        f"takes the place of {plan.replaced}, nothing on this page becomes more than e^{privacy.epsilon:g} times "
        f"likelier, but for {privacy.delta:g}.",
        *([FILL] if shows_fill else []),
    ]
    cannot = [
        "Who reported, from where, or when: a batch arrives when it is full, in random order, without names, addresses "
        "or times.",
        "Which messages belong together, or what any one person answered.",
        *([] if shows_fill else [NO_FILL]),
    ]
    rests = [
        f"This holds as long as the shuffler and the analyzer do not work together, and {_followed(plan)}.",
        *([] if plan.rests_on is None else [f"It rests on this, too: {plan.rests_on}."]),
        *plan.unchecked_claims,
    ]
    return section(
        "What this page can and cannot know about a person",
        element("h3", "It can know"),
        element("ul", [element("li", each) for each in can]),
        element("h3", "It cannot know"),
        element("ul", [element("li", each) for each in cannot]),
        [element("p", each) for each in rests],
    )


def _followed(plan: Plan) -> str:
    if plan.honest_fraction == 1:
        return "everybody follows the protocol"
    return f"{plan.honest_fraction:.0%} of the people follow the protocol"


def collusions_table(plan: Plan) -> Html:
    """What parties would learn of a person if they worked together."""
    rows = collusion_rows(plan.collusions(), plan.privacy.epsilon)
    return collusions_section(rows)


def collusions_section(rows: Iterable[tuple[str, str, str]]) -> Html:
    """A section on what a collusion would learn, from rows of who, which epsilon is left, and in words."""
    listed = table("Which epsilon is left", ("who", "epsilon", "in words"), rows, left=(True, False, True))
    return section("What a collusion would learn", listed)


def spending(privacy: Privacy, ledger: Path | None, what: str) -> Html:
    """What the question costs each person, and what is left of the population's budget where there is one."""
    rows: list[tuple[str, Any]] = [
        (
            "Spent here",
            f"epsilon {privacy.epsilon:g}, delta {privacy.delta:g}: for the whole {what}, by each person once",
        )
    ]
    if ledger is None:
        rows.append(("Left", "no ledger is served: nobody keeps account of what these people are asked elsewhere"))
    else:
        rows += _budget(ledger)
    return section("Privacy spent and left", facts(rows))


def _budget(path: Path) -> list[tuple[str, Any]]:
    try:
        ledger = Ledger.load(path)
    except ShuffleDPError:
        return [("Left", "the ledger cannot be read now: ask the operator")]
    account, left = ledger.account, ledger.left()
    question = left.question
    more = "nothing more can be asked"
    if question is not None:
        more = (
            f"one more question of epsilon {question.epsilon:g} and delta {question.delta:g}, or several smaller ones"
        )
    return [
        ("Whose budget", account.population),
        ("Budget", f"epsilon {account.budget.epsilon:g}, delta {account.budget.delta:g}, {account.state}"),
        ("Spent in all", f"epsilon {left.epsilon_spent:.4g}, by {len(account.entries):,} questions"),
        ("Left", f"epsilon {left.epsilon:.4g}: {more}"),
    ]


def costs(messages: int, bytes_max: int, bytes_mean: float) -> Html:
    """What a person's device sends."""
    mean = "" if bytes_mean >= bytes_max else f", {bytes_mean:,.0f} on average"
    return joined(
        [
            facts(
                [
                    ("Messages a person", f"at most {messages:,}"),
                    ("Bytes a person", f"at most {bytes_max:,}{mean}, encrypted; whatever the answer is"),
                ]
            )
        ]
    )
