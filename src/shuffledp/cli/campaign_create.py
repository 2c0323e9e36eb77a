"""`shuffledp campaign create KIND`: plans a learner, says what it will cost, and writes the campaign's file."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import target
from shuffledp.cli.campaign_fit import create_fit
from shuffledp.cli.campaign_making import AllowUnbounded, CampaignOut, DropAfter, MakingOptions, make_campaign
from shuffledp.cli.progress import working
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.learn.bandits.linear.counted import CountedPolicy

create_app = typer.Typer(help="Make a campaign of a kind: arms, linucb, thompson, fit or statistic.")
create_app.command("fit")(create_fit)

Batches = Literal["fixed", "doubling"]
ArmsMethod = Literal["coins", "rr", "shares"]

Dimension = Annotated[
    int | None, typer.Option("--dimension", "--features", help="Numbers that describe an offer.", metavar="D")
]
Visits = Annotated[int, typer.Option(help="How often one person may take part, all of it paid for.", metavar="M")]
ModelAge = Annotated[int, typer.Option(help="Slots that a model may be old; the bound counts them.", metavar="A")]
Nonnegative = Annotated[
    bool, typer.Option("--nonnegative", help="No two offers' features have a negative product: less noise.")
]
Shufflers = Annotated[int | None, typer.Option(help="How many work concurrently; 4 by default.", metavar="K")]
BatchUsers = Annotated[int | None, typer.Option("--batch", help="One shuffler, batches of so many.", metavar="B")]
Confidence = Annotated[float, typer.Option(help="Of the regret bound, over the whole horizon.", metavar="C")]


@create_app.command("arms")
def create_arms(
    keys: options.KeysFolder,
    out: CampaignOut,
    arms: Annotated[int | None, typer.Option(help="How many there are, numbered from 0.", metavar="K")] = None,
    users: options.Users = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    method: Annotated[ArmsMethod, typer.Option(help="coins and rr: no liar can spoil them.")] = "coins",
    visits: Visits = 1,
    batches: Annotated[Batches, typer.Option(help="Of one size, or each larger than the last.")] = "doubling",
    batch: Annotated[int | None, typer.Option(help="People of a batch, or of the first.", metavar="B")] = None,
    honest_fraction: options.HonestFraction = 1.0,
    drop_after: DropAfter = None,
    hop: options.HopKeys = None,
    issuer: options.IssuerFile = None,
    allow_unbounded: AllowUnbounded = False,
    ledger: options.LedgerFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Which of a few arms is best: everybody is shown the arm of the newest model, and reports a reward."""
    from shuffledp.learn.bandits.arms.doubling_batches import DoublingBatches
    from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches

    people, privacy = target(users, epsilon, delta)
    if arms is None:
        raise ParameterError("arms", None, "must be given", "add --arms, how many there are to choose from")
    making = MakingOptions(keys, out, drop_after, allow_unbounded, ledger, as_json, hop, issuer)
    making.check()
    kind: Any = {"fixed": FixedBatches, "doubling": DoublingBatches}[batches]
    size = {"fixed": "batch", "doubling": "first_batch"}[batches]
    given = {"method": method, "visits": visits, "honest_fraction": honest_fraction, size: batch}
    with working("planning batches", shown=not as_json):
        policy = kind(arms=arms, horizon=people, privacy=privacy, **given)
    make_campaign(policy, making)


@dataclass(frozen=True)
class _LinearOptions:
    """What both linear bandits are asked."""

    users: int | None
    dimension: int | None
    epsilon: float | None
    delta: float | None
    shufflers: int | None
    batch: int | None
    visits: int
    model_age: int
    nonnegative: bool
    confidence: float

    def policy(self, choice: str) -> "CountedPolicy":
        from shuffledp.learn.bandits.linear.concurrent import ConcurrentLinUCB
        from shuffledp.learn.bandits.linear.setting import LinearSetting
        from shuffledp.learn.bandits.linear.shuffle_vec import ShuffleVecLinUCB

        people, privacy = target(self.users, self.epsilon, self.delta)
        if self.dimension is None:
            raise ParameterError("dimension", None, "must be given", "add --dimension, the numbers of an offer")
        if self.batch is not None and self.shufflers not in (None, 1):
            problem = "and --shufflers must not both be given"
            raise ParameterError("batch", self.batch, problem, "batches of one size are for one shuffler")
        setting = LinearSetting(
            users=people, dimension=self.dimension, nonnegative=self.nonnegative, confidence=self.confidence
        )
        made: CountedPolicy
        if self.batch is not None:
            made = ShuffleVecLinUCB.planned(setting, privacy, batch=self.batch, visits=self.visits)
        else:
            shufflers = 4 if self.shufflers is None else self.shufflers
            made = ConcurrentLinUCB.planned(setting, privacy, shufflers=shufflers, visits=self.visits)
        return replace(made, choice=choice, model_age=self.model_age)  # type: ignore[arg-type]


def _create_linear(asked: _LinearOptions, choice: str, making: MakingOptions) -> None:
    making.check()
    with working("planning noise and slots", shown=not making.as_json):
        policy = asked.policy(choice)
    make_campaign(policy, making)


@create_app.command("linucb")
def create_linucb(
    keys: options.KeysFolder,
    out: CampaignOut,
    users: options.Users = None,
    dimension: Dimension = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    shufflers: Shufflers = None,
    batch: BatchUsers = None,
    visits: Visits = 1,
    model_age: ModelAge = 0,
    nonnegative: Nonnegative = False,
    confidence: Confidence = 0.95,
    drop_after: DropAfter = None,
    hop: options.HopKeys = None,
    issuer: options.IssuerFile = None,
    allow_unbounded: AllowUnbounded = False,
    ledger: options.LedgerFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Which offers suit whom: devices choose by upper confidence bounds, whose regret is proved."""
    numbers = (users, dimension, epsilon, delta, shufflers, batch, visits, model_age, nonnegative, confidence)
    making = MakingOptions(keys, out, drop_after, allow_unbounded, ledger, as_json, hop, issuer)
    _create_linear(_LinearOptions(*numbers), "confidence", making)


@create_app.command("thompson")
def create_thompson(
    keys: options.KeysFolder,
    out: CampaignOut,
    users: options.Users = None,
    dimension: Dimension = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    shufflers: Shufflers = None,
    batch: BatchUsers = None,
    visits: Visits = 1,
    model_age: ModelAge = 0,
    nonnegative: Nonnegative = False,
    drop_after: DropAfter = None,
    hop: options.HopKeys = None,
    issuer: options.IssuerFile = None,
    allow_unbounded: AllowUnbounded = False,
    ledger: options.LedgerFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Which offers suit whom: every device draws what it believes and takes its best; the least regret measured."""
    numbers = (users, dimension, epsilon, delta, shufflers, batch, visits, model_age, nonnegative, 0.95)
    making = MakingOptions(keys, out, drop_after, allow_unbounded, ledger, as_json, hop, issuer)
    _create_linear(_LinearOptions(*numbers), "posterior", making)


@create_app.command("statistic")
def create_statistic(
    keys: options.KeysFolder,
    out: CampaignOut,
    plan_file: Annotated[
        Path, typer.Option("--plan", help="A plan made with `shuffledp plan ... -o`.", metavar="FILE")
    ],
    drop_after: DropAfter = None,
    hop: options.HopKeys = None,
    issuer: options.IssuerFile = None,
    allow_unbounded: AllowUnbounded = False,
    ledger: options.LedgerFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Any plan whose answer is public: a model after every release, which everybody may fetch and check."""
    from shuffledp.protocols.catalogue import load_plan

    making = MakingOptions(keys, out, drop_after, allow_unbounded, ledger, as_json, hop, issuer)
    making.check()
    make_campaign(load_plan(plan_file).learner(), making)
