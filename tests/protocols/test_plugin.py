"""A protocol of another package: defined in this file alone, it can do what every protocol can."""

import json
import math
import shutil
import time
import types
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from harness.nursery import servers
from shuffledp import BinarySum, Privacy, RandomBits, cli, load_plan, simulate
from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.estimates import Estimate
from shuffledp.messages import Batch, Reports
from shuffledp.protocols import catalogue
from shuffledp.protocols.binary_sum.coins import Coins
from shuffledp.protocols.catalogue import PROTOCOLS, Catalogue, plan_from_document
from shuffledp.protocols.domains.domain import Domain, Generator, column_of
from shuffledp.protocols.family import DomainParameter, Family
from shuffledp.protocols.fields import domain, noise
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.request import Request
from shuffledp.protocols.rounds import RoundPlan
from shuffledp.protocols.tallies import Tally
from shuffledp.sampling.bernoulli import bernoulli
from shuffledp.sampling.coins import binomial
from shuffledp.service.client import Client
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens
from shuffledp.testing.protocols import check_protocol

TARGET = Privacy(1, 1e-6)


@dataclass(frozen=True)
class Ballot(Domain):
    """Yes or anything else, in the words of the ballot."""

    kind: ClassVar[str] = "ballot"
    reads: ClassVar[Any] = "words"
    yes: str

    @property
    def parameters(self) -> dict[str, Any]:
        return {"yes": self.yes}

    def encode(self, values: ArrayLike) -> NDArray[np.uint8]:
        return (column_of(values) == self.yes).astype(np.uint8)

    def check_values(self, values: ArrayLike) -> NDArray[np.uint8]:
        votes = column_of(values)
        if votes.dtype.kind not in "bui" or not np.isin(votes, (0, 1)).all():
            raise DataError("values", f"dtype {votes.dtype}", "must be encoded votes", "encode them: plan.encode(x)")
        return votes.astype(np.uint8)

    def synthesize(self, users: int, generator: Generator) -> NDArray[np.uint8]:
        return (generator.random(users) < 0.4).astype(np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCoin(RoundPlan):
    """Each user sends its vote, and another vote that is a yes with `probability`."""

    protocol: ClassVar[str] = "votes"
    method: ClassVar[str] = "one-coin"
    theory_page: ClassVar[str] = "docs/theory/003-binary-sums.md"
    law: ClassVar[str] = "binomial"

    yes: str = domain()
    probability: float = noise("(0, 1/2]")

    @classmethod
    def for_request(cls, request: Request, *, yes: str) -> Self:
        def holds(p: float) -> bool:
            return (
                ShiftPair(Binomial(request.honest, min(p, 0.5))).delta(request.privacy.epsilon) <= request.privacy.delta
            )

        if not holds(0.5):
            raise InfeasibleError("users", request.users, "are too few for one coin each", "ask more people")
        return cls(**request.common, yes=yes, probability=min(0.5, smallest_real(holds, 0.0, 1 / request.honest)))

    @property
    def domain(self) -> Ballot:
        return Ballot(self.yes)

    @property
    def question(self) -> str:
        return f"count who votes {self.yes} among {self.users:,} users"

    @property
    def noise_law(self) -> Binomial:
        return Binomial(self.users, self.probability)

    @property
    def standard_error(self) -> float:
        return self.noise_law.standard_deviation

    @property
    def error_bound(self) -> float:
        return float(self.noise_law.deviation_quantile(0.05))

    @property
    def messages_per_user_mean(self) -> float:
        return 2.0

    @property
    def messages_per_user_max(self) -> int:
        return 2

    @property
    def bits_per_message(self) -> int:
        return 1

    def reference(self) -> dict[str, float | None]:
        return {"paper_standard_error": None, "central_standard_error": None, "local_standard_error": None}

    def pair(self, honest: int) -> ShiftPair:
        return ShiftPair(Binomial(honest, self.probability))

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return (DeltaTerm("noise", self.pair(honest).delta(epsilon), "the curve of the pair"),)

    @property
    def dominates_because(self) -> str:
        return "Permuted votes show how many are yes: the user's and the honest users' coins."

    @property
    def influence(self) -> float:
        return 2.0

    @property
    def lying_client(self) -> str:
        return "moves the count by at most 2"

    def true_value(self, values: ArrayLike) -> float:
        return float(self.check_values(values).sum(dtype=np.int64))

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        votes = self.check_values(values)
        coins = bernoulli(self.probability, votes.size, bits=bits).view(np.uint8)
        return Reports.of_equal_size(np.stack((votes, coins), axis=1))

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        ones = np.array([np.count_nonzero(batch.payloads == 1)], dtype=np.int64)
        return Tally(ones, batch.reports, len(batch), malformed)

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Estimate:
        self.check_reports(tally.reports)
        # Everybody sends two messages: what is missing or could not be read may have been a yes.
        dropped = max(2 * self.users - tally.messages, tally.malformed)
        return self._estimate(int(tally.counts[0]), simulated, dropped)

    def _estimate(self, ones: int, simulated: bool, dropped: int = 0) -> Estimate:
        return Estimate(
            value=ones - self.noise_law.mean,
            standard_error=self.standard_error,
            bound=self.error_bound + dropped,
            confidence=0.95,
            dropped=dropped,
            simulated=simulated,
        )

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Estimate:
        total = int(self.true_value(values))
        self.check_reports(np.size(values))
        coins = int(binomial(self.users, self.probability, 1, bits=bits)[0])
        return self._estimate(total + coins, not bits.is_secure)

    @property
    def neighbours(self) -> tuple[Any, Any, Any]:
        zero, one = np.array([0], dtype=np.uint8), np.array([1], dtype=np.uint8)
        return zero, one, zero

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        return reports.payloads.reshape(trials, -1).sum(axis=1, dtype=np.int64).reshape(-1, 1)

    def quieter(self, part: float) -> dict[str, Any]:
        variance = part * self.probability * (1 - self.probability)
        return {"probability": (1 - math.sqrt(1 - 4 * variance)) / 2}


VOTES: Family[OneCoin] = Family.of(
    "votes",
    "How many vote yes.",
    OneCoin,
    domain=(DomainParameter("yes", way_out="say which word is a yes"),),
    reads="words",
)


@pytest.fixture
def votes() -> Any:
    PROTOCOLS.join(VOTES)
    yield PROTOCOLS["votes"]
    PROTOCOLS.leave("votes")


def _plan(users: int = 300) -> OneCoin:
    return PROTOCOLS["votes"].plan(users=users, privacy=TARGET, yes="aye")


def test_it_is_planned_with_everything_a_family_says(votes) -> None:
    assert "votes" in PROTOCOLS and PROTOCOLS.family("votes") is VOTES
    choice = votes.choose(users=300, privacy=TARGET, yes="aye")
    assert choice.plan.method == "one-coin" and "standard error" in choice.why
    with pytest.raises(ParameterError, match="yes must be given"):
        votes.plan(users=300, privacy=TARGET)
    with pytest.raises(InfeasibleError, match="too few"):
        votes.plan(users=20, privacy=TARGET, yes="aye")


def test_it_keeps_every_promise_of_a_protocol(votes) -> None:
    check_protocol(_plan(), np.arange(300) % 3 == 0, [[2, 0], [], ["aye"], [[0, 1]]], runs=2000)


def test_it_is_simulated_in_the_words_of_its_own_domain(votes) -> None:
    plan = _plan()
    ballots = ["aye"] * 120 + ["no"] * 180
    for fast in (False, True):
        answer = simulate(plan, plan.encode(ballots), bits=RandomBits.seeded(1), fast=fast)
        assert abs(answer.value - 120) <= 10 * plan.standard_error and answer.simulated


def test_it_says_what_is_promised_and_who_learns_what(votes) -> None:
    plan = _plan()
    assert plan.guarantee().holds and plan.guarantee().claim == TARGET
    rows = {row.parties: row for row in plan.collusions()}
    assert rows["analyzer alone"].epsilon == 1 and rows["analyzer + 0.5 of the users"].epsilon > 1
    assert plan.warnings == () and plan.document()["yes"] == "aye"


def test_every_verb_of_the_command_line_takes_it(votes, capsys, tmp_path: Path) -> None:
    def run(*words: object) -> dict[str, Any]:
        with pytest.raises(SystemExit) as ended:
            cli.main([*map(str, words), "--json"])
        out, err = capsys.readouterr()
        assert not ended.value.code and err == "", (words, out, err)
        return json.loads(out)

    file, ledger = tmp_path / "plan.json", tmp_path / "ledger.json"
    target = ["--users", 300, "--epsilon", 1, "--delta", "1e-6", "--yes", "aye"]
    made = run("plan", "votes", *target, "-o", file)
    assert made["protocol"] == "votes" and made["yes"] == "aye"
    for words in (["explain"], ["simulate", "--synthetic", "--seed", 1], ["audit", "--trials", 100, "--seed", 1]):
        assert run(*words, "--plan", file)["fingerprint"] == made["fingerprint"]
    people = tmp_path / "people.csv"
    people.write_text("vote\n" + "aye\nno\n" * 150)
    assert run("simulate", people, "--column", "vote", "--plan", file, "--seed", 1, "--with-truth")["truth"] == 150
    typed = ["--epsilon", 1, "--delta", "1e-6", "--yes", "aye"]
    assert (
        run("simulate", people, "--column", "vote", "--protocol", "votes", *typed, "--seed", 1, "--with-truth")["truth"]
        == 150
    )
    run("ledger", "open", ledger, "--population", "panel", "--epsilon", 2, "--delta", "1e-5")
    for words in (["--plan", file], ["--protocol", "votes", "--users", 300, *typed]):
        assert run("ledger", "spend", ledger, *words)["entries"][-1]["fingerprint"] == made["fingerprint"]


def test_devices_report_its_words_as_they_are(votes, tmp_path: Path) -> None:
    from shuffledp.cli.domains import read_own_values
    from shuffledp.cli.report import _values

    people, ballot = tmp_path / "people.csv", _plan().domain
    people.write_text("vote\naye\nno\n")
    # Words without named categories were read as numbers, and refused.
    assert read_own_values(people, "vote", None, ballot).tolist() == ["aye", "no"]
    assert _values("aye", ballot).tolist() == ["aye"]


def test_it_is_audited(votes) -> None:
    plan = PROTOCOLS["votes"].plan(users=100, privacy=TARGET, yes="aye")
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=20_000).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=20_000, sabotage=0.02).verdict == "refuted"


def test_it_becomes_a_task_and_a_batch_in_pieces_is_an_answer(votes) -> None:
    plan = _plan()
    task = Task.create(plan, PrivateKey.generate().public, bits=RandomBits.secure())
    again = Task.from_text(task.text)
    assert again.plan == plan and again.routing.users == 300 and task.warnings == ()
    reports = plan.randomize(np.arange(300) % 3 == 0, bits=RandomBits.seeded(2))
    pieces = [plan.tally(Batch(reports.payloads[:77], 300)), plan.tally(Batch(reports.payloads[77:], 0))]
    assert plan.estimate(Tally.merge(pieces)) == plan.analyze(Batch(reports.payloads, 300))


def _installed(folder: Path) -> Path:
    """This file as the one module of a package that is installed there, with its entry point."""
    about = folder / "votes_package-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: votes-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[shuffledp.protocols]\nvotes = votes_package:VOTES\n")
    shutil.copy(__file__, folder / "votes_package.py")
    return folder


def test_it_is_served_live_over_http(votes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers in processes of their own, which know the protocol by the entry point of its package alone."""
    monkeypatch.syspath_prepend(_installed(tmp_path / "site-packages"))
    key, tokens, plan = PrivateKey.generate(), Tokens.generate(bits=RandomBits.secure()), _plan()
    task = Task.create(plan, key.public, bits=RandomBits.secure())
    with servers(tmp_path, key, tokens) as running:
        running.add_task(task)
        with Client(task, running.url("shuffler"), tokens.secrets["enrol"]) as devices:
            assert devices.report_many(["aye"] * 120 + ["no"] * 180).new == 300
        deadline = time.monotonic() + 30
        with running.client("analyzer", "read") as reader:
            while (said := reader.get(f"/v1/tasks/{task.id}/estimate").json())["estimate"] is None:
                assert time.monotonic() < deadline, said
                time.sleep(0.05)
    assert abs(said["estimate"] - 120) <= 10 * plan.standard_error and said["dropped"] == said["void_batches"] == 0
    assert (said["standard_error"], said["bound"]) == (plan.standard_error, plan.error_bound)
    assert (said["time"], said["epsilon"], said["delta"]) == (300, 1, 1e-6)


def test_it_is_charged_to_a_ledger(votes, tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.json", "voters", Privacy(1.5, 1e-5))
    entry = entry_of(_plan(), datetime(2026, 1, 31, tzinfo=UTC))
    assert entry.description == "votes by one-coin" and "Binomial" in entry.pair.describe()
    ledger.spend(entry)
    with pytest.raises(InfeasibleError, match="budget"):
        for _ in range(9):
            ledger.spend(entry)


def test_it_is_saved_and_loaded(votes, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(_plan().document()))
    assert load_plan(file) == _plan()
    PROTOCOLS.leave("votes")
    with pytest.raises(DataError, match=r"plan\.protocol must be one of .*, got votes"):
        load_plan(file)
    PROTOCOLS.join(VOTES)


def test_a_method_joins_a_family_that_is_here() -> None:
    class Again(Coins):
        method: ClassVar[str] = "coins-again"

    assert PROTOCOLS.join(Again) == "binary-sum"
    try:
        plan = PROTOCOLS["binary-sum"].plan(users=500, privacy=TARGET, method="coins-again")
        assert plan_from_document(plan.document()) == plan
        coins = BinarySum.plan(users=500, privacy=TARGET, method="coins")
        assert plan.fingerprint != coins.fingerprint
    finally:
        PROTOCOLS.leave("binary-sum", "coins-again")
    assert "coins-again" not in PROTOCOLS["binary-sum"].methods and len(PROTOCOLS["binary-sum"].methods) == 7


class Unfinished(RoundPlan):
    protocol: ClassVar[str] = "binary-sum"
    method: ClassVar[str] = "unfinished"


class Nameless(OneCoin):
    method: ClassVar[str] = ""


class Astray(OneCoin):
    protocol: ClassVar[str] = "elsewhere"


class Taken(Coins):
    """Names itself like a method that is there: two plans would have one fingerprint."""


class Renamed(OneCoin):
    method: ClassVar[str] = "renamed"


class Chameleon(Coins):
    """Its method is said by each plan: a name of its own for the catalogue, another's in its fingerprint."""

    method = property(lambda self: "coins")  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class Changeable(Coins):
    method: str = "changeable"  # type: ignore[misc]


class Automatic(Coins):
    method: ClassVar[str] = "auto"


class Spaced(Coins):
    method: ClassVar[str] = "Two Words"


class Forger(Coins):
    method: ClassVar[str] = "forger"
    fingerprint = property(lambda self: "0" * 64)  # type: ignore[assignment]


class Unproved(Coins):
    method: ClassVar[str] = "unproved"

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return ()


def _family(**more: Any) -> Any:
    """A family that is made, and refused, when it is joined."""
    given = {"name": "votes", "summary": "How many vote yes.", "methods": {"one-coin": OneCoin}} | more
    return lambda: Family(**given)


@pytest.mark.parametrize(
    ("newcomer", "said"),
    [
        (Chameleon, "must have a text of its class as its method"),
        (Changeable, "must have a text of its class as its method"),
        (Automatic, "method must be small letters, digits and hyphens, and not auto, got auto"),
        (Spaced, "method must be small letters, digits and hyphens, and not auto, got Two Words"),
        (Forger, "must have the fingerprint that every plan has"),
        (_family(name=17), "protocol must be small letters, .* got int"),
        (_family(name="auto"), "protocol must be small letters, .* got auto"),
        (_family(methods={"auto": OneCoin}), "method must be small letters, .* got auto"),
        (_family(methods={1: OneCoin}), "method must be small letters, .* got int"),
        (_family(methods=[OneCoin]), "methods must be classes of plans by their names, got list"),
        (_family(methods={"one-coin": Chameleon}), "must have a text of its class as its method"),
        (_family(domain=("yes",)), "domain must be a tuple of DomainParameters, got yes"),
        (_family(domain=DomainParameter("two words")), "domain must be a tuple of DomainParameters"),
        (_family(domain=(DomainParameter("users"),)), "must not be what every plan is asked for, got users"),
        (_family(domain=(DomainParameter("epsilon"),)), "must not be what every plan is asked for, got epsilon"),
        (Unfinished, "must have the member"),
        (Nameless, "must say its method"),
        (Astray, "protocol must be one of .*, got elsewhere"),
        (Taken, "method must be a new method of binary-sum, as fingerprints name it, got coins"),
        (dict, "must be a Family or a class of plans, got dict"),
        (17, "must be a Family or a class of plans, got 17"),
        (Family.of("binary-sum", "Another.", OneCoin), "protocol must be a new name, got binary-sum"),
        (Family.of("new", "Of another name.", OneCoin), "protocol must be new, its family's, got votes"),
        (Family("votes", "Under another name.", {"other": Renamed}), "method must be other, as its family calls it"),
        (Family("votes", "Without methods.", {}), "must have a method"),
        (Family.of("votes", "With one that breaks it.", OneCoin, Unfinished), "must have the member"),
    ],
)
def test_what_breaks_the_contract_is_refused_in_a_sentence_and_nothing_changes(newcomer: Any, said: str) -> None:
    before = {name: PROTOCOLS[name] for name in PROTOCOLS}
    with pytest.raises(ParameterError, match=said) as refused:
        PROTOCOLS.join(newcomer() if isinstance(newcomer, types.FunctionType) else newcomer)
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)
    assert {name: PROTOCOLS[name] for name in PROTOCOLS} == before


def test_a_plan_without_a_term_of_delta_proves_nothing() -> None:
    with pytest.raises(ParameterError, match="delta_terms must have a term of delta or more"):
        Unproved.plan(users=500, privacy=TARGET)


def test_a_family_cannot_join_twice_nor_leave_twice(votes) -> None:
    with pytest.raises(ParameterError, match="must be a new name"):
        PROTOCOLS.join(VOTES)
    with pytest.raises(ParameterError, match="method must be one of one-coin"):
        PROTOCOLS.leave("votes", "magic")
    for unknown in (lambda: PROTOCOLS.leave("magic"), lambda: PROTOCOLS.family("magic")):
        with pytest.raises(ParameterError, match=r"protocol must be one of binary-sum, .*, got magic"):
            unknown()


def test_entry_points_join_and_one_that_breaks_does_not_break_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises() -> Any:
        raise ImportError("no module named lost")

    points = [
        types.SimpleNamespace(
            name="lost", value="lost:X", load=raises, dist=types.SimpleNamespace(name="lost-package")
        ),
        types.SimpleNamespace(name="bad", value="bad:X", load=lambda: Unfinished, dist=None),
        types.SimpleNamespace(name="votes", value="votes:X", load=lambda: VOTES, dist=None),
    ]
    monkeypatch.setattr(catalogue, "entry_points", lambda group: points if group == "shuffledp.protocols" else [])
    found = Catalogue()
    with pytest.warns(RuntimeWarning) as told:
        names = set(found)
    said = [str(each.message) for each in told]
    assert said[0].startswith("The protocol lost of the package lost-package is left out: no module named lost")
    assert "must have the member" in said[1] and len(said) == 2
    assert "votes" in names and found["votes"] is VOTES and set(PROTOCOLS) < names


PLAN = BinarySum.plan(users=500, privacy=TARGET, method="coins")


def test_the_last_bits_of_another_machine_do_no_harm_where_a_number_is_derived() -> None:
    document = PLAN.document()
    near = {
        "standard_error": math.nextafter(document["standard_error"], 9),
        "messages_per_user_mean": document["messages_per_user_mean"] * (1 + 1e-12),
        "reference": {name: each and each * (1 - 1e-13) for name, each in document["reference"].items()},
    }
    for key, value in near.items():
        assert plan_from_document(document | {key: value}) == PLAN
    far = {"standard_error": document["standard_error"] * (1 + 1e-6), "reference": {}, "messages_per_user_max": 2.5}
    for key, value in far.items():
        with pytest.raises(DataError, match=f"plan.{key} must be"):
            plan_from_document(document | {key: value})


@pytest.mark.parametrize("key", ["epsilon", "delta", "probability", "fingerprint"])
def test_what_decides_a_plan_must_be_the_same_to_the_last_bit(key: str) -> None:
    document = PLAN.document()
    if key == "probability":
        moved = {"noise": {**document["noise"], key: math.nextafter(document["noise"][key], 0.6)}}
    elif key == "fingerprint":
        moved = {key: document[key][:-1] + ("0" if document[key][-1] != "0" else "1")}
    else:
        moved = {key: math.nextafter(document[key], 2)}
    with pytest.raises(DataError, match=r"plan\.(fingerprint|reference) must be"):
        plan_from_document(document | moved)


@pytest.mark.parametrize("schema", [0, 2, "1", None])
def test_a_plan_of_another_version_is_refused_in_a_sentence(schema: object) -> None:
    with pytest.raises(DataError, match=r"plan\.schema must be 1, got") as refused:
        plan_from_document(PLAN.document() | {"schema": schema})
    assert str(refused.value).endswith(".")


def test_every_built_in_family_keeps_the_rules_for_newcomers() -> None:
    for name in PROTOCOLS:
        family = PROTOCOLS[name]
        assert family.name == name and family.methods
        assert all(issubclass(kind, Plan) for kind in family.methods.values())
