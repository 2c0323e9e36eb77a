"""Distribution tests: whether users' categories follow a claimed law, with errors declared before there are data."""

from dataclasses import dataclass, replace
from typing import Any

from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.distribution_test.base import DistributionTest
from shuffledp.protocols.distribution_test.claim import Claim
from shuffledp.protocols.distribution_test.decoys import CompressedTest, DecoysTest, predicted_miss
from shuffledp.protocols.distribution_test.rows import RowsTest
from shuffledp.protocols.distribution_test.sizes import guessed_users, users_needed
from shuffledp.protocols.distribution_test.verdict import ENOUGH_POWER, TestedClaim
from shuffledp.protocols.family import CATEGORIES, Choice, DomainParameter, Family
from shuffledp.protocols.request import Request

__all__ = ["DistributionTest", "TestedClaim", "UniformityTest"]


@dataclass(frozen=True, repr=False)
class TestFamily(Family[DistributionTest]):
    """Tests whether users are uniform over the categories, or follow a given distribution, from shuffled messages.

    `decoys` counts collisions of a private histogram, `compressed` the same over groups drawn by public coins,
    `rows` sends one row of bits a user. auto takes the one of the first two that declares the smaller miss.

    >>> from shuffledp.privacy import Privacy
    >>> plan = UniformityTest.plan(users=1600, privacy=Privacy(1, 1e-6), categories=100, distance=0.25)
    >>> plan.method, plan.declared_false_alarm, plan.declared_miss < 1 / 3
    ('decoys', 0.05, True)
    """

    __test__ = False

    def choice(self, request: Request, *, method: str = "auto", **domain: Any) -> Choice[DistributionTest]:
        """The plan of the named method, or of the one that declares the smallest miss."""
        given = self.read_domain(domain)
        names = ["compressed", "decoys"] if method == "auto" else self._tried(method)
        plans: list[DistributionTest] = []
        for name in names:
            try:
                plans.append(self.methods[name].for_request(request, **given))
            except InfeasibleError:
                if not plans:
                    raise
        # Groups of one cell each are no groups.
        if method == "auto" and plans[0].groups is not None and plans[0].groups.groups == plans[0].groups.cells:
            del plans[0]
        best = min(reversed(plans), key=self.error)
        limit = request.max_messages
        if limit is not None and best.messages_per_user_max > limit:
            problem = f"must be at least {best.messages_per_user_max}, what {best.method} sends"
            raise InfeasibleError("max_messages", limit, problem, "allow more messages, or a larger epsilon or delta")
        why = "as asked" if method != "auto" else f"a miss of {self.error(best):.3g} at most"
        return Choice(best, f"{best.method}: {why}", {plan.method: plan for plan in plans})

    def users_needed(
        self,
        *,
        privacy: Privacy,
        method: str = "auto",
        false_alarm: float = 1 / 3,
        miss: float = ENOUGH_POWER,
        honest_fraction: float = 1.0,
        **claim: Any,
    ) -> int:
        """The fewest users for these two errors, both proved by inequalities, for every law so far away.

        Args:
            privacy: the (epsilon, delta) that must hold.
            method: decoys, compressed, rows, or auto for the best of the first two.
            false_alarm: the probability to reject a true claim, at most.
            miss: the probability to accept users who are far away, at most.
            honest_fraction: the users assumed to follow the protocol.
            **claim: categories, distance, and against for a claim other than uniform.
        """
        if not 0 < miss < 1:
            raise ParameterError("miss", miss, "must lie strictly between 0 and 1", "1/3 is usual")
        request = Request(users=2, privacy=privacy, honest_fraction=honest_fraction)
        given = self.read_domain({**claim, "false_alarm": false_alarm, "certificate": "proved"})
        # Refuses what cannot be asked, before anything is searched.
        asked = Claim(**{name: value for name, value in given.items() if name != "public_seed"})
        names = ("decoys", "compressed") if method == "auto" else (method,)

        def guessed(name: str) -> int:
            grouped = name == "compressed"
            return guessed_users(
                lambda users: predicted_miss(replace(request, users=users), asked, grouped=grouped), miss
            )

        guesses = {name: guessed(name) for name in names}
        best = min(guesses, key=guesses.__getitem__)

        def plan(users: int) -> DistributionTest:
            return self.choice(replace(request, users=users), method=best, **given).plan

        return users_needed(plan, miss, guesses[best])


UniformityTest: TestFamily = TestFamily.of(  # type: ignore[assignment]
    "distribution-test",
    "Whether users' categories are uniform, or follow a given distribution.",
    DecoysTest,
    CompressedTest,
    RowsTest,
    domain=(
        CATEGORIES,
        DomainParameter(
            "distance",
            None,
            "0.25 is a total variation distance",
            "must be given: what must be seen",
            "the least departure, in total variation, that must be seen.",
        ),
        DomainParameter("against", meaning="the claimed probabilities; uniform."),
        DomainParameter("false_alarm", meaning="how often a true claim may be rejected."),
        DomainParameter("certificate", meaning="how the errors are declared: simulated from the null law, or proved."),
        DomainParameter("public_seed", meaning="of the public coins that groups are drawn by."),
    ),
    error=lambda test: test.declared_miss,
    error_name="miss",
)
