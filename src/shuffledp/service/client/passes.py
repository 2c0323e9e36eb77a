"""Tokens of a task's issuer in a client's hands: one for each person that it reports for."""

from collections.abc import Sequence
from dataclasses import dataclass

from shuffledp.errors import ParameterError
from shuffledp.service.admission.headers import showing
from shuffledp.service.admission.private_tokens import Gate, Token


@dataclass(frozen=True, repr=False)
class Passes:
    """The tokens of people, in the order of their values: after a kill, a person's value has the same token again.

    Attributes:
        tokens: one a person.
    """

    tokens: tuple[Token, ...]

    def check(self, people: int) -> None:
        """Refuse to begin with fewer tokens than people.

        Raises:
            ParameterError: some would have none.
        """
        if people > len(self.tokens):
            problem = f"must be one a value, of which there are {people:,}"
            raise ParameterError("token", f"{len(self.tokens):,} tokens", problem, "fetch one for each person")

    def shown(self, row: int) -> str:
        """What Authorization says for the person of this row."""
        return showing(self.tokens[row].data)


def passes(gate: Gate | None, token: "str | Sequence[bytes]") -> Passes | None:
    """What lets a client in to a task that names an issuer; None where a role's token does.

    Args:
        gate: the task's.
        token: a role's secret, or the issuer's tokens.

    Raises:
        ParameterError: it is the other kind.
        DataError: something is no token, or is one for another task or of another issuer.
    """
    if gate is None:
        if not isinstance(token, str):
            problem = "must be the secret of the role enrol: the task names no issuer"
            raise ParameterError("token", "tokens of an issuer", problem, "pass the content of enrol.token")
        return None
    if isinstance(token, str | bytes):
        problem = f"must be a list of tokens of {gate.issuer.name}, one a person: the task names that issuer"
        raise ParameterError("token", "one text", problem, "fetch them with `shuffledp token fetch`")
    found = tuple(map(Token.from_bytes, token))
    if not all(map(gate.admits, found)):
        problem = f"must be signed by {gate.issuer.name} for this task"
        raise ParameterError("token", "another token", problem, "fetch it with `shuffledp token fetch`")
    return Passes(found)
