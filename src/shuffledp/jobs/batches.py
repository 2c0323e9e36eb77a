"""The one batch of a task or a plan that jobs can do: everybody's messages together."""

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
