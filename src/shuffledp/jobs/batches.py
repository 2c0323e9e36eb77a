"""The one batch of a task or a plan that jobs can do: everybody's messages together."""

import math
from dataclasses import dataclass

from shuffledp.accounting.dropouts import honest_users
from shuffledp.errors import ParameterError, TooFewReportsError
from shuffledp.protocols.learner import BatchMechanism
from shuffledp.protocols.plan import Plan
from shuffledp.schedules.layout import BatchLayout
from shuffledp.service.crypto import PrivateKey, binding
from shuffledp.service.task import Task


@dataclass(frozen=True, slots=True)
class OneBatch:
    """All messages of a plan's people.

    Attributes:
        plan: what they were asked.
        users: how many people.
        messages: how many messages each of them sends, those that only fill up included.
    """

    plan: Plan
    users: int
    messages: int

    @classmethod
    def of(cls, plan: Plan) -> "OneBatch":
        """The one batch of a plan.

        Raises:
            ParameterError: it has several, which close one after another as people come.
        """
        layout = plan.layout
        messages = layout.messages.get(plan.users, 0)
        if vars(layout) != vars(BatchLayout.single(plan.users, messages)):
            problem = "has batches that close as people come, and a job reads one of everybody"
            raise ParameterError("protocol", plan.protocol, problem, "run it with the live service")
        return cls(plan, plan.users, messages)

    @property
    def mechanism(self) -> BatchMechanism:
        """How it is read."""
        return self.plan.mechanism(self.users)

    @property
    def size(self) -> int:
        """How many messages it has."""
        return self.users * self.messages

    def check_missing(self, missing: int, found: str) -> None:
        """Refuse a batch that lacks messages of more people than the plan does without.

        Args:
            missing: how many messages are, which as few people as possible have sent.
            found: what was found instead, for the sentence.

        Raises:
            TooFewReportsError: fewer people are left than the plan's honest fraction counts on.
        """
        left = self.users - -(-missing // self.messages)
        if left < honest_users(self.users, self.plan.honest_fraction):
            again = "ask the missing people to send the same reports again"
            way_out = f"{found}; {again}, or plan with a smaller honest_fraction, which does without some"
            raise TooFewReportsError(self.users, left, way_out)

    def check_enough(self, messages: int) -> None:
        """Refuse fewer messages than those people send whom the plan counts on, where how many each sends is chance.

        People draw independently of each other, nobody more than `messages`: with m on average of all together, by
        Chernoff's bound they send fewer than m - sqrt(2 m messages ln(1/p)) with probability p at most. Where a few
        people may send hundreds (`correlated`), that is below 0, and nothing can be told from the number alone.

        Args:
            messages: how many there are.

        Raises:
            TooFewReportsError: so few come of so many people less than once in a thousand million times.
        """
        honest = honest_users(self.users, self.plan.honest_fraction)
        mean = honest * self.plan.least_mean_messages
        least = math.ceil(mean - math.sqrt(2 * mean * self.messages * -math.log(FALSE_ALARM)))
        if messages < least:
            again = "ask the missing people to send the same reports again"
            way_out = f"messages are {messages:,}, and {honest:,} people send {least:,} at least; {again}"
            raise TooFewReportsError(self.users, int(messages / self.plan.least_mean_messages), way_out)


FALSE_ALARM = 1e-9
"""Messages of enough people are taken for those of too few with at most this probability."""


def binding_of(task: Task) -> bytes:
    """What every ciphertext of a task with one batch is bound to.

    Raises:
        ParameterError: the task has several batches, or shufflers who each take a layer off.
    """
    if task.hops:
        problem = f"names {len(task.hops)} shufflers in turn, each with a layer of its own to take off"
        raise ParameterError("task", task.id[:12], problem, "create one without --hop, or run a cascade")
    OneBatch.of(task.plan)
    (batch,) = task.routing.batches_of(0)
    return binding(task.id, batch.batch_id)


def key_of(task: Task, ring: tuple[PrivateKey, ...]) -> PrivateKey:
    """The one of these keys that a task's messages are sealed for.

    Raises:
        ParameterError: none of them is.
    """
    found = next((key for key in ring if key.public == task.public_key), None)
    if found is None:
        problem = "must have the key that the task names"
        raise ParameterError("keys", f"{len(ring)} others", problem, "name the folder with which it was created")
    return found
