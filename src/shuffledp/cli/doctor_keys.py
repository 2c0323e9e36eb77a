"""What `shuffledp doctor` looks at where keys were rotated: older ones, and tasks whose key is not there."""

import os
import stat
from pathlib import Path

from shuffledp.cli.doctor_checks import Check, Checks, name_of_store
from shuffledp.errors import ParameterError
from shuffledp.service.analyzer.needing import needed_keys
from shuffledp.service.expiry import today
from shuffledp.service.key_notes import load_expiries
from shuffledp.service.keys import ANALYZER, GATEWAY, GATEWAY_CONFIGS, MODELS, PUBLIC, load_public_key, load_tokens
from shuffledp.service.oblivious.gateway_keys import gateway_keys, has_gateway_key
from shuffledp.service.oblivious.key_config import load_configs
from shuffledp.service.rotation import whereabouts
from shuffledp.service.store import inspect_store, look_into_analyzer


def look_at_older_keys(checks: Checks, folder: Path) -> None:
    """Who may change the folder, and older keys and tokens that are still there: each could be stolen, too."""
    mode = stat.S_IMODE(folder.stat().st_mode) if folder.is_dir() else 0
    if os.name == "posix" and mode & 0o022:
        found = f"{mode:o}: others may put a key of their own in its place"
        checks.append(
            Check("folder of keys", "fail", found, f"run: chmod 700 {folder}, and compare {PUBLIC} with tasks")
        )
    with checks.noting("the key's last day"):
        for day in load_expiries(folder).values():
            to_do = f"run: shuffledp keys rotate {folder}; no task is created for it any more, and nobody seals to it"
            checks.verdict("the key's last day", day >= today().isoformat(), day, to_do)
    with checks.noting("older keys"):
        files = [file.name for kind in (ANALYZER, MODELS) for file in kind.files(folder) if "-" in file.name]
        for kind in (ANALYZER, MODELS):
            if kind.files(folder):
                kind.ring(folder)
        if files:
            to_do = "retire them when their tasks have ended: `shuffledp keys retire`"
            checks.append(Check("older keys", "ok", ", ".join(files), to_do))
    with checks.noting("gateway's key"):
        if has_gateway_key(folder):
            private, given = gateway_keys(folder)[0].config, load_configs(folder / GATEWAY_CONFIGS)
            to_do = f"run: shuffledp keys rotate {folder} --gateway, and give everybody the new {GATEWAY_CONFIGS}"
            found = f"number {private.key_id}" if private in given else f"{GATEWAY_CONFIGS} is of another key"
            checks.verdict("gateway's key", private in given, found, to_do)
    with checks.noting("older gateway's keys"):
        older = [file.name for file in GATEWAY.files(folder) if "-" in file.name]
        if older:
            GATEWAY.ring(folder)
            to_do = "retire them when everybody has the new file: `shuffledp keys retire --gateway`"
            checks.append(Check("older gateway's keys", "ok", ", ".join(older), to_do))
    with checks.noting("older tokens"):
        count = sum(map(len, load_tokens(folder).older.values()))
        if count:
            to_do = "retire them when everybody has a new one: `shuffledp keys retire --tokens`"
            checks.append(Check("older tokens", "ok", f"{count} are taken, too", to_do))


def look_at_key_of(checks: Checks, name: str, key: str, folder: Path) -> None:
    """Whether a folder has a key that a task names, current or older."""
    with checks.noting(name):
        own = {each.public.text for each in ANALYZER.ring(folder)} if ANALYZER.files(folder) else set()
        current = load_public_key(folder).text
        found = key if key == current else f"{key}, an older one" if key in own else f"{key} {whereabouts(folder, key)}"
        to_do = "the analyzer with these keys cannot read it: create the task again"
        checks.verdict(name, key in {current, *own}, found, to_do)


def look_at_keys_of_store(checks: Checks, address: str, folder: Path) -> None:
    """Whether a folder with secret keys has all that the tasks of an analyzer's store need."""
    name = f"keys of {name_of_store(address)}"
    try:
        if not inspect_store(address).is_analyzers or not ANALYZER.files(folder):
            return
    except ParameterError:
        # What is wrong with the store itself has been said.
        return
    with checks.noting(name):
        needed = look_into_analyzer(address, needed_keys)
        own = {each.public.text for each in ANALYZER.ring(folder)}
        own |= {each.public.text for each in MODELS.ring(folder)} if MODELS.files(folder) else set()
        missing = {key: who for key, who in needed.items() if key not in own}
        for key, who in missing.items():
            to_do = "put the key back, or end what needs it with `shuffledp store end`"
            checks.append(Check(name, "fail", f"{', '.join(who)}: {key} {whereabouts(folder, key)}", to_do))
        if not missing:
            checks.append(Check(name, "ok", f"all {len(needed)} keys that its tasks need are in the folder"))
