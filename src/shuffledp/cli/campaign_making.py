"""From a learner to a campaign's file: what it costs is said first, and the budget is charged before it has a name."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.campaign_output import cost_of, costs_in_words, report_campaign
from shuffledp.cli.cascade_output import KeyFolders
from shuffledp.cli.output import facts, show
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.learn.live.rows import DeviceRows
    from shuffledp.protocols.learner import Learner
    from shuffledp.service.admission.private_tokens import Issuer
    from shuffledp.service.crypto import PublicKey

AllowUnbounded = options.AllowUnbounded
CampaignOut = Annotated[
    Path, typer.Option("-o", "--out", help="The campaign's file, a new one.", metavar="FILE", show_default=False)
]
DropAfter = Annotated[
    float | None, typer.Option(help="Go on without a round that is not full by then; else wait.", metavar="S")
]


@dataclass(frozen=True, slots=True)
class MakingOptions:
    """What every kind of campaign is asked beside its learner."""

    keys: Path
    out: Path
    drop_after: float | None
    allow_unbounded: bool
    ledger: Path | None
    as_json: bool
    hop: list[Path] | None = None
    issuer: Path | None = None

    def check(self) -> None:
        """Refuse what cannot be written or signed before anything is planned, which takes seconds."""
        from shuffledp.service.expiry import check_not_expired
        from shuffledp.service.keys import load_verifying_key
        from shuffledp.service.rotation import current_public_key

        self.hops()
        self.named()
        current_public_key(self.keys)
        check_not_expired(self.expires())
        load_verifying_key(self.keys)
        if self.out.exists():
            way_out = "name another: a campaign is never changed"
            raise ParameterError("out", str(self.out), "must be a new file", way_out)

    def expires(self) -> dict[str, str]:
        """The last days of those keys that expire."""
        from shuffledp.service.key_notes import load_expiries

        return load_expiries(self.keys, self.hop or ())

    def hops(self) -> "list[PublicKey]":
        """The keys of a cascade's hops; none for one shuffler."""
        from shuffledp.service.keys import load_hop_public_key

        return [load_hop_public_key(each) for each in self.hop or ()]

    def named(self) -> "Issuer | None":
        """Who says who may take part; None for whoever has the token for enrol."""
        from shuffledp.service.admission.issuer_keys import load_issuer

        return None if self.issuer is None else load_issuer(self.issuer)


def make_campaign(learner: "Learner[Any]", making: MakingOptions, rows: "DeviceRows | None" = None) -> None:
    """Write a learner's campaign, if its budget covers it, and say what it is and what to do next.

    Args:
        learner: planned, whatever it is.
        making: keys, file, budget and limits.
        rows: what devices make of their own columns, where they send gradients.
    """
    from shuffledp.accounting.ledger import Ledger
    from shuffledp.files import settle_name, whole_file
    from shuffledp.learn.live.described import described
    from shuffledp.randomness import RandomBits
    from shuffledp.service.campaign import Campaign
    from shuffledp.service.charging import entry_of_served
    from shuffledp.service.cost import MeasuredCost
    from shuffledp.service.keys import load_public_key, load_verifying_key
    from shuffledp.service.rotation import remember_task

    folder, out = making.keys, making.out
    made = Campaign.create(
        learner,
        load_public_key(folder),
        load_verifying_key(folder),
        bits=RandomBits.secure(),
        rows=rows,
        drop_after=making.drop_after,
        allow_unbounded=making.allow_unbounded,
        hops=making.hops(),
        issuer=making.named(),
        expires=making.expires(),
    )
    # As everybody will read it: what could not be read again is not written.
    made = Campaign.from_text(made.text)
    budget = None if making.ledger is None else Ledger.load(making.ledger)
    told = described(learner)
    cost = cost_of(made, told)
    measured = MeasuredCost.of(cost)
    if not making.as_json:
        # Before anything is written or spent: there is still time to plan otherwise.
        show(facts("What it will cost", costs_in_words(made, told, cost, measured)))
    with whole_file(out) as file:
        file.write(made.text.encode() + b"\n")
        if budget is not None:
            # Between writing and naming the file: if the budget refuses, there is no file; if it is there, it is paid.
            budget.spend(entry_of_served(made))
    settle_name(out)
    remember_task(folder, made.id, made.public_key)
    more = {"out": out, "ledger": making.ledger}
    folders = KeyFolders(folder, tuple(making.hop or ()))
    seconds = measured.document()
    report_campaign(made, file=out, as_json=making.as_json, more=more, measured=seconds, folders=folders)
