"""Campaigns under everything that can happen to both servers (`harness.campaigns`); wrong ones are caught."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.campaigns import CampaignMachine
from harness.machine import run
from harness.model import WrongError
from shuffledp.service.analyzer.desk import AnalyzerDesk
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.models import unchecked_model
from shuffledp.service.rounds import split_round
from shuffledp.service.shuffler.commits import abandon
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.wire import CIPHERTEXT_BYTES

pytestmark = pytest.mark.usefixtures("in_the_clear")

SEEDS, STEPS = 5, 400


def campaigns(folder: Path, seed: int, **world: Any) -> Any:
    return run(folder, seed, STEPS, kind=CampaignMachine, most_waiting_bytes=10**5 * CIPHERTEXT_BYTES, **world).told


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(2, SEEDS))])
def test_models_are_numbered_kept_and_made_of_released_batches_alone(tmp_path: Path, seed: int) -> None:
    told = campaigns(tmp_path, seed)
    # A run in which nothing happened would prove nothing.
    assert told["models"] > 6 and told["acknowledged"] > 30, told
    assert sum(count for words, count in told.items() if "killed" in words) > 20, told


# --- wrong on purpose ------------------------------------------------------------------------


class ShowsBeforeCommit(AnalyzerServer):
    """Devices are shown a model when its statements have run."""

    def _read(self, task_id: str, batch_id: str) -> None:
        read, campaign_id = self.desk.read, task_id.partition(".")[0]

        def shown(records: Any, *given: Any) -> Any:
            published = read(records, *given)
            if campaign_id in self.campaigns:
                self._newest[campaign_id] = records.last_model(campaign_id)
            return published

        object.__setattr__(self.desk, "read", shown)
        try:
            super()._read(task_id, batch_id)
        finally:
            object.__delattr__(self.desk, "read")


class MovesAfterwards(AnalyzerServer):
    """A model is published in one commit, and the state moved in the next: after a kill a batch is told twice."""

    def _read(self, task_id: str, batch_id: str) -> None:
        moved: list[tuple[str, Any]] = []
        write = self._store.write

        def in_two(work: Any) -> Any:
            def without_state(records: Any) -> Any:
                records.set_state = lambda owner, state: moved.append((owner, state))
                records.state = partial(_state_of, dict(moved), records.state)
                try:
                    return work(records)
                finally:
                    del records.set_state, records.state

            answer = write(without_state)
            for owner, state in moved:
                write(lambda records, owner=owner, state=state: records.set_state(owner, state))
            return answer

        self._store.write = in_two  # type: ignore[method-assign]
        try:
            super()._read(task_id, batch_id)
        finally:
            del self._store.write


def _state_of(moved: dict[str, Any], kept: Any, owner: str) -> Any:
    return moved.get(owner) or kept(owner)


class AbandonsEarly(ShufflerServer):
    """A round that is not full is abandoned as soon as an earlier one was sealed."""

    def _abandon_dropped(self) -> None:
        sealed = self._store.read(lambda records: [split_round(each) for each in records.sealed_tasks()])
        over = {parts[0] for parts in sealed if parts is not None and self.campaigns[parts[0]].drops}
        for task_id in self._store.read(lambda records: records.open_tasks()):
            if task_id.partition(".")[0] in over:
                abandon(self._store, task_id, self.tasks[task_id].users)


def skips_a_number(self: Any, records: Any, asked: Any, state: Any, lost: Any) -> None:
    """A number is left out: whoever waits for it waits for ever."""
    last = unchecked_model(records.last_model(asked.owner))
    campaign = self.campaigns[asked.owner]
    self._publish(records, campaign, last.number + 2, state, asked.learner.ask(state))
    records.set_state(asked.owner, {"learner": state.document(), "dropped": 0, "void": 0, "width": 0.0})


def reads_more_than_was_asked_for(self: Any, records: Any, task_id: str) -> bool:
    """Every batch is kept and read, whether its round was dropped or not."""
    return True


SERVERS: dict[str, tuple[dict[str, Any], str]] = {
    "shows a model before the commit": ({"make_analyzer": ShowsBeforeCommit}, "shown is lost|not the newest"),
    "moves the state in another commit": ({"make_analyzer": MovesAfterwards}, "state is not that|not a function"),
    "abandons a round that is not over": ({"make_shuffler": AbandonsEarly}, "acknowledged report is lost|in time"),
}
DESKS: dict[str, tuple[str, Any, str]] = {
    "reads a dropped round": ("_is_asked_for", reads_more_than_was_asked_for, "dropped round was"),
    "leaves a number out": ("_move", skips_a_number, "numbered one after another"),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_is_wrong_is_caught(tmp_path: Path, name: str) -> None:
    world, words = SERVERS[name]
    with pytest.raises(WrongError, match=words):
        run_until_wrong(tmp_path, **world)


@pytest.mark.parametrize("name", DESKS)
def test_a_desk_that_is_wrong_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    attribute, wrong, words = DESKS[name]
    monkeypatch.setattr(AnalyzerDesk, attribute, wrong)
    with pytest.raises(WrongError, match=words):
        run_until_wrong(tmp_path)


def run_until_wrong(folder: Path, **world: Any) -> None:
    """The same runs as those that pass."""
    for seed in range(SEEDS):
        campaigns(folder, seed, **world)
