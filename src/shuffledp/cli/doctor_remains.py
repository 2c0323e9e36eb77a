"""What `shuffledp doctor` says of what must not be in a store any more, with the evidence."""

from shuffledp.cli.doctor_checks import Check, Checks, name_of_store
from shuffledp.errors import ParameterError
from shuffledp.service.store import look_for_remains


def look_at_remains(checks: Checks, address: str) -> None:
    """Whether nothing of batches that left is in a store, nor anything that was deleted."""
    name = f"remains in {name_of_store(address)}"
    try:
        remains = look_for_remains(address)
    except ParameterError:
        # What is wrong with the store itself has been said.
        return
    to_do = "start its server once: it deletes them when it starts; if they stay, please report it as a broken promise"
    for found in remains.found:
        checks.append(Check(name, "fail", found, to_do))
    if remains.evidence and not remains.found:
        checks.append(Check(name, "ok", "none: " + "; ".join(remains.evidence)))
    for unknown in remains.unknown:
        checks.append(Check(f"not looked at in {name_of_store(address)}", "ok", unknown))
