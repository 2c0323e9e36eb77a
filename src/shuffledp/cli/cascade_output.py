"""What a cascade's parties see, alone and together, as tables and as JSON."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.cli.output import table
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.protocols.plan import Plan
    from shuffledp.service.crypto import PublicKey


@dataclass(frozen=True)
class KeyFolders:
    """Where keys are, for what to type next: the service's own folder, and each hop's.

    Attributes:
        keys: the analyzer's folder; None where it is not known.
        hops: the hops' folders, first hop first; none for one shuffler.
    """

    keys: Path | None = None
    hops: tuple[Path, ...] = ()

    def serving(self, kind: str, out: Any) -> str:
        """The command that serves a task or a campaign on this machine.

        Args:
            kind: which of the two it is.
            out: its file, as it is typed.
        """
        if not self.hops:
            return f"serve all --folder service --keys {self.quoted} --{kind} {out}"
        hops = " ".join(f"--hop {shlex.quote(str(each))}" for each in self.hops)
        return f"serve cascade --folder service --keys {self.quoted} {hops} --{kind} {out}"

    @property
    def analyzer_port(self) -> int:
        """Where the analyzer then listens: after all that mix."""
        return 8001 + max(1, len(self.hops))

    @property
    def quoted(self) -> str:
        """The service's own folder, as it is typed."""
        return "KEYS" if self.keys is None else shlex.quote(str(self.keys))

    @property
    def enrolling(self) -> str:
        """The folder whose token lets people in: the first hop's."""
        return shlex.quote(str(self.hops[0])) if self.hops else self.quoted


def behind_relay(hops: int) -> str:
    """What a relay changes, in one sentence."""
    first = "hop 1" if hops else "the shuffler"
    return f"Behind a relay {first} does not see where reports come from; a relay and {first} together do."


def relay_sees(hops: int) -> list[tuple[str, str]]:
    """What a relay sees, where people report through one, and what the shuffler then does not."""
    first = "hop 1" if hops else "the shuffler"
    return [
        ("a relay, if it is used", "addresses and times, and sealed requests of one length"),
        (f"{first} behind a relay", "the same as without it, but no address"),
        (f"a relay and {first}", "together: which device reports, as without a relay"),
    ]


def hops_see(hops: int) -> list[tuple[str, str]]:
    """What each of a cascade's hops sees by itself; nothing where there is one shuffler."""
    first = [("hop 1", "which device reports, and ciphertexts that it opens one layer of")] if hops else []
    later = range(2, hops + 1)
    return first + [(f"hop {each}", f"batches of hop {each - 1}, no senders; it opens one layer") for each in later]


def hops_in_words(keys: "Sequence[PublicKey]") -> list[tuple[str, str]]:
    """The keys that messages are sealed for after the analyzer's, in that order."""
    return [(f"then to hop {number}", key.text) for number, key in reversed(list(enumerate(keys, 1)))]


def check_hops_asked(hops: int | None) -> None:
    """Refuse a number of hops that no cascade has.

    Args:
        hops: as it was typed; None for one shuffler.
    """
    from shuffledp.service.hops import LEAST_HOPS, MOST_HOPS

    if hops is not None and not LEAST_HOPS <= hops <= MOST_HOPS:
        raise ParameterError("hops", hops, f"must be {LEAST_HOPS} or {MOST_HOPS}", "leave it out for one shuffler")


def cascade_tables(plan: "Plan", hops: int, of: str = "") -> list[Any]:
    """What parties learn who only look, and what a hop reveals that replaces messages; no tables for one shuffler.

    Args:
        plan: what people report by.
        hops: how many shufflers there are, one after another.
        of: what it is of, where that is not all that a person sends.
    """
    if not hops:
        return []
    from shuffledp.service.coalitions import ALL, looking, replacing_some, telling

    words = ("in words",)
    seen = looking(plan, hops)
    told = [(each.learns, (_named(each.parties), _left(each.epsilon), each.in_words)) for each in telling(seen)]
    rows = [row for learns, row in told if learns != ALL]
    # With users, too: it is the same for all of these, as the accountant is asked about users only.
    shared = {(each.users, each.epsilon, each.in_words.rpartition("; ")[2]) for each in seen if each.users}
    rows += [
        (f"any above with the analyzer, and {users:.3g} of the users", _left(epsilon), what)
        for users, epsilon, what in sorted(shared, key=lambda row: row[0])
    ]
    rows += [row for learns, row in told if learns == ALL]
    learned = table(
        f"What the parties learn together by looking{of}, with {hops} hops",
        ("who", "epsilon", "in words"),
        rows,
        words=words,
        folded=("who",),
        caption="Fewer of them learn no more: one honest hop is enough against all who only look.",
    )
    lost = [
        (f"{each.replaced:,} of {each.messages:,}", f"{each.honest_fraction:.3g}", _left(each.epsilon), each.in_words)
        for each in replacing_some(plan)
    ]
    replaced = table(
        f"What the analyzer learns{of} with a hop that replaces messages of a batch by its own",
        ("replaced", "honest share", "epsilon", "in words"),
        lost,
        words=words,
        caption="Their number stays: no honest hop notices. Hop 1 chooses whose stay; one behind an honest hop cannot.",
    )
    return [learned, replaced]


def cascade_document(plan: "Plan", hops: int) -> dict[str, Any]:
    """Every set of parties and what it learns, and what is left where messages are replaced."""
    from shuffledp.service.coalitions import looking, replacing_some

    return {
        "hops": hops,
        "looking": [each.document() for each in looking(plan, hops)],
        "replacing": [each.document() for each in replacing_some(plan)],
    }


def _named(parties: tuple[str, ...]) -> str:
    """The parties, with hops by their numbers.

    >>> _named(("network", "hop 1", "hop 3", "analyzer"))
    'network, hops 1 3, analyzer'
    """
    numbers = [party.partition(" ")[2] for party in parties if party.startswith("hop ")]
    hops = [f"hop{'s' if len(numbers) > 1 else ''} {' '.join(numbers)}"] if numbers else []
    first = [party for party in parties[:1] if party == "network"]
    return ", ".join([*first, *hops, *(party for party in parties[-1:] if party == "analyzer")])


def _left(epsilon: float | None) -> str:
    return "unbounded" if epsilon is None else f"{epsilon:.4g}"
