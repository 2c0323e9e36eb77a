"""`shuffledp papers linucb FILE`: what every linear policy would have earned on a log."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from shuffledp.cli.experiment_shared import Going, Told, flat, listed

if TYPE_CHECKING:
    from shuffledp.experiments.linucb_log import LogResult, LogRow

_EPSILON, _DELTA = 1.0, 1e-6


def log_told(
    going: Going,
    file: Path,
    *,
    epsilon: float | None,
    delta: float | None,
    arms: int | None,
    smallest: float | None,
    seed: int,
) -> Told:
    """Every policy on a log, with the exact noise that it would have live."""
    from shuffledp.experiments.linucb_log import policies_on_log
    from shuffledp.privacy import Privacy

    promise = Privacy(_EPSILON if epsilon is None else epsilon, _DELTA if delta is None else delta)
    asked = {"privacy": promise, "arms": arms, "smallest": smallest, "seed": seed}
    result = going.measured("replaying", policies_on_log, path=file, **asked)
    rows = [row for row in result.rows if row.value is not None]
    title = f"Mean reward a round on {file.name}, {result.confidence:.0%} intervals of this run, {promise}"
    values = listed(title, "policy | reward | low | high | users | users a slot", rows, _cells)
    refused = [f"{row.policy}: {row.refused}" for row in result.rows if row.refused]
    given = {"epsilon": epsilon, "delta": delta, "arms": arms, "smallest": smallest, "seed": seed}
    said = "".join(f" --{name} {value}" for name, value in given.items() if value is not None)
    return Told(
        document={
            "rows": [flat(row) for row in result.rows],
            "logged": asdict(result.logged),
            "smallest": result.smallest,
            "arms": result.arms,
            "seed": seed,
        },
        tables=[values] if rows else [],
        rows=result.rows,
        words=[
            f"The log itself: {result.logged} from {result.logged.rounds:,} rounds with {result.arms} arms.",
            f"A policy meets a round with probability {result.smallest:.3g}: it must agree, and a fair coin keep it.",
            *refused,
        ],
        again=[
            ("see it", f"papers linucb {shlex.quote(str(file))}{said} --picture rewards.png"),
            ("worlds", "papers linucb --figure 1"),
        ],
        draw=lambda picture: _draw(result, picture, file.name),
    )


def _cells(row: "LogRow") -> str:
    return f"{row.policy} | {row.value:.4f} | {row.low:.4f} | {row.high:.4f} | {row.users:,} | {row.slot_users:,}"


def _draw(result: "LogResult", picture: Path, name: str) -> None:
    import numpy as np

    from shuffledp.pictures.curves import DrawnLine, draw_lines

    lines = []
    for policy, rewards in result.rewards.items():
        times = np.unique(np.linspace(1, len(rewards), 200).astype(np.int64))
        lines.append(DrawnLine(name=policy, x=times, y=np.cumsum(rewards)[times - 1] / times))
    panel = f"{name}: mean reward so far, one run each"
    draw_lines(picture, [{panel: lines}], against="users so far", measures="mean reward", logarithmic=False)
