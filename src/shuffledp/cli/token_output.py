"""What tokens say about how many people are honest, as a table and as JSON."""

from typing import TYPE_CHECKING, Any

from shuffledp.cli.output import facts

if TYPE_CHECKING:
    from shuffledp.protocols.plan import Plan
    from shuffledp.service.admission.private_tokens import Issuer
    from shuffledp.service.admission.shares import TokenShare


def share_of(plan: "Plan", tokens: int) -> "TokenShare":
    """How many of so many tokens are harmless in one hand, by a plan.

    Args:
        plan: what people report by.
        tokens: how many are issued, one a person.
    """
    from shuffledp.service.admission.shares import TokenShare
    from shuffledp.service.routing import Routing

    batch = min(Routing.of(plan.layout).messages)
    return TokenShare(tokens=tokens, users=plan.users, batch=batch, honest_fraction=plan.honest_fraction)


def token_tables(plan: "Plan", tokens: int | None) -> list[Any]:
    """What an attacker needs who holds some of the tokens; no table where none are issued."""
    if tokens is None:
        return []
    share = share_of(plan, tokens)
    most, part = share.attacker_most, f"{share.attacker_share:.2%} of those issued"
    held = (
        f"with m tokens fills at most m seats of a batch: up to {most:,} tokens, {part}, change nothing in the claim"
        if most
        else "with one token is more than the plan counts on: plan with --honest-fraction below 1"
    )
    few = f"must be at least the {share.users:,} users, or the task never fills"
    rows = [
        ("issued", f"{tokens:,} tokens, one a person" + ("" if share.fills else f": {few}")),
        (
            "the plan counts on",
            f"{share.honest_least:,} honest people in every batch of {share.batch:,}, its smallest: "
            f"honest fraction {share.honest_fraction:g}",
        ),
        ("an attacker", held),
        ("a flood", f"of {share.batch - 1:,} false people around one needs {share.batch - 1:,} tokens"),
        ("without an issuer", "it needs the one token for enrol, which everybody has"),
    ]
    return [facts("What tokens are good for", rows)]


def admission_row(issuer: "Issuer | None") -> tuple[str, str]:
    """Who is let in, for the facts of a task or a campaign."""
    if issuer is None:
        return "let in", "whoever has the token for enrol, as often as they like: for trials (--issuer names who may)"
    return "let in", f"whoever has a token of {issuer.name}, one a person, key {issuer.key.id.hex()[:16]}"
