"""A question about a file's values, from the plan to the answer: what every command that answers one does alike.

What is in the data without noise (the truth, how far off an answer is, how many values were brought into the range,
how many messages these very values make) is there with `--with-truth` only. Made-up data may show its truth.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.early import EarlyEngine
from shuffledp.cli.engine_options import HERE, EngineAsked
from shuffledp.cli.output import SEEDED, heading, question
from shuffledp.cli.people import counted_rows
from shuffledp.cli.progress import working
from shuffledp.cli.running import (
    LARGE,
    LARGE_BY_LAW,
    MOST_MESSAGES,
    SMALL,
    Pieces,
    check_made_up,
    check_whole,
    held,
    run_plan,
    streams,
)

if TYPE_CHECKING:
    from shuffledp.engines.sources import Source
    from shuffledp.protocols.plan import Plan
    from shuffledp.protocols.presentation import Presentation, View


@dataclass(frozen=True, eq=False)
class Answered:
    """An answer with its plan, and what may be said of both.

    Attributes:
        asked: what was asked for.
        plan: which plan that was.
        estimate: the plan's answer.
        presented: the answer in words, tables and pictures.
        truth: what would be answered without privacy; None if nobody asked for it.
        clipped: how many values were brought into the range; None if nobody asked for it.
        rows: which rows count, in words, where people have several.
        left_out: how many rows do not count; None if nobody asked for it.
        messages: about how many messages the plan's users make.
        by_law: whether the answer was drawn from its own law, without messages.
        too_many: whether that was so because the messages would have been too many.
        seconds: how long it took.
        pieces: in how many pieces it was made, and by how many processes, in words; None where all was held at once.
    """

    asked: Asked
    plan: "Plan"
    estimate: Any
    presented: "Presentation"
    truth: Any
    clipped: int | None
    rows: str | None
    left_out: int | None
    messages: int
    by_law: bool
    too_many: bool
    seconds: float
    pieces: Pieces | None = None

    @property
    def shows_truth(self) -> bool:
        """Whether facts without noise may be shown."""
        return self.clipped is not None

    def document(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """The answer as JSON: what every command says, and in its middle what only this one does.

        Args:
            own: the command's own names and values.
        """
        plan, estimate = self.plan, self.estimate
        return {
            **heading(plan),
            **plan.domain_document,
            **own,
            "clipped": self.clipped,
            **({} if self.rows is None else {"rows_left_out": self.left_out}),
            "fidelity": "law" if self.by_law else "messages",
            "messages": 0 if self.by_law else self.messages,
            "simulated": estimate.simulated,
            **({} if self.pieces is None else self.pieces.document),
            "seconds": self.seconds,
            "reference": plan.reference(),
            "fingerprint": plan.fingerprint,
        }

    def facts(self, *after: tuple[str, Any], told: Sequence[tuple[str, str]] | None = None) -> list[tuple[str, Any]]:
        """The answer in words: what happened, how accurate it is, who is trusted with what.

        Args:
            *after: rows of the command's own, after the answer's.
            told: the answer's own rows, where the command has better ones than the plan.
        """
        plan, clipped = self.plan, self.clipped
        happened = "each device randomized its own value, a shuffler mixed the messages, the analyzer read the mix"
        about = "" if plan.messages_per_user_mean == plan.messages_per_user_max else "about "
        made = "made, shuffled and read" if self.pieces is None else f"made and tallied {self.pieces}"
        how = f"{about}{self.messages:,} messages {made}"
        if self.pieces is not None:
            happened = "each device randomized its own value, and all messages were tallied, which no mix changes"
        if self.by_law:
            how = "from its own law, without messages"
            how += "" if self.pieces is None else f", its data added up {self.pieces}"
            how += f" (all {self.messages:,} would take more than a minute)" if self.too_many else ""
        return [
            ("asked", question(plan)),
            ("what happened", "the answer was drawn from its law" if self.by_law else happened),
            ("rows that count", self.rows),
            ("each person sends", plan.sends),
            *(self.presented.facts if told is None else told),
            *after,
            ("trusted", plan.trusted),
            ("ran", f"{how} in {self.seconds:.2f} s"),
            ("protects", SEEDED if self.estimate.simulated else None),
            ("clipped", f"{clipped:,} values were brought into the range" if clipped else None),
        ]

    def spending(self, what: str) -> str:
        """The name of a hint that asks the same people again: it spends as much privacy once more."""
        epsilon = self.plan.privacy.epsilon
        return what if self.estimate.simulated else f"{what} (spends epsilon {epsilon:g} again)"

    def other(self, command: str, *more: str, file: str | None = None) -> str | None:
        """Another command for the same plan, as it can be typed."""
        return self.asked.said.other(command, self.plan, *more, file=file)


def answered(
    asked: Asked,
    file: Path | None,
    column: str | None = None,
    columns: str | None = None,
    *,
    synthetic: bool = False,
    clip: bool = False,
    fast: bool = False,
    seed: int | None = None,
    with_truth: bool = False,
    view: "Callable[[Plan], View | None] | None" = None,
    shown: bool = True,
    engine: EngineAsked = HERE,
) -> Answered:
    """Plan, run and present what is asked of a file's values, or of made-up ones.

    Args:
        asked: the plan's file, or the options of one.
        file: CSV, Parquet or .npy, with a row a person; None for made-up values.
        column: the file's column.
        columns: several columns, where a value has several numbers.
        synthetic: whether values are made up.
        clip: whether values outside the plan's range are brought into it.
        fast: whether the answer is drawn from its law.
        seed: makes a run repeatable, so that it protects nobody.
        with_truth: whether facts without noise may be shown.
        view: which part of the answer is shown, for this plan.
        shown: whether a person watches.
        engine: where the work is done, if it is much.
    """
    from shuffledp.engines.estimating import estimate_on

    # A seed that is none is refused before anything else.
    options.bits_of(seed)
    shows_truth = with_truth or synthetic
    with EarlyEngine(engine, estimate_on, LARGE_BY_LAW if fast else LARGE) as early:
        with working(asked.at_first(file), shown=shown):
            found = None if shows_truth else asked.in_pieces(file, column, columns, clip=clip, least=SMALL, early=early)
            if found is not None and not streams(found[0], fast=_by_law(found[0], fast)):
                found = None
            if found is None:
                if file is not None:
                    check_whole(file, asked, engine, words=asked.reads_words, columns=len((columns or "").split(",")))
                else:
                    check_made_up(asked.users, engine)
                plan, values, unlike = asked.with_data(file, column, columns, seed, synthetic=synthetic, clip=clip)
                source: Source = held(values)
            else:
                plan, source = found
        # By the plan and not by these values: how many messages they make is a fact about people.
        messages = round(plan.users * plan.messages_per_user_mean)
        by_law = _by_law(plan, fast)
        too_many = by_law and not fast
        looked_at = None if view is None else view(plan)
        ran = run_plan(plan, source, engine, seed=seed, fast=by_law, shown=shown, early=early)
    truth = plan.true_value(values) if shows_truth else None
    clipped, left_out = (unlike.clipped, unlike.left_out) if found is None else (ran.clipped, None)
    return Answered(
        asked=asked,
        plan=plan,
        estimate=ran.estimate,
        presented=plan.present(ran.estimate, truth, looked_at),
        truth=truth,
        clipped=clipped if shows_truth else None,
        rows=counted_rows(plan, unlike, file=file, shows_truth=shows_truth) if found is None else None,
        left_out=left_out if shows_truth else None,
        messages=round(plan.users * plan.mean_messages(values)) if shows_truth else messages,
        by_law=by_law,
        too_many=too_many,
        seconds=ran.seconds,
        pieces=ran.pieces,
    )


def _by_law(plan: "Plan", fast: bool) -> bool:
    """Whether the answer is drawn from its law: it was asked for, or messages would take too long."""
    return fast or plan.users * plan.messages_per_user_mean > MOST_MESSAGES
