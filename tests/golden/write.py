"""Write the golden records: `python -m tests.golden.write [GROUP ...] [--times]`, from the repository's root.

They hold what version 0.1.0 produced. Run this only where a change of results is wanted and explained in the commit
that brings it: a fault that is repaired (most are in known_faults.json, written with every group), or a case that is
added; and on the kind of machine that machine.json names, or else all groups anew. Never run it to make a failing test
pass: a difference that nobody wanted is what the test is there to find.
"""

import argparse
import json
import time

from . import store
from .cases import GROUPS
from .records import record_of


def main() -> None:
    """Compute the groups asked for, all unless told, and replace their files."""
    parser = argparse.ArgumentParser(description="write golden records; see this module's text for when")
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="all if left out")
    parser.add_argument("--times", action="store_true", help="say how long each case takes")
    asked = parser.parse_args()
    names = asked.groups or list(GROUPS)
    faults = store.read(store.KNOWN_FAULTS_NAME) if asked.groups else {}
    for group in names:
        records, began = {}, time.process_time()
        for case in GROUPS[group]:
            start = time.process_time()
            records[case.name], faulty = store.split(case, record_of(case))
            faults.pop(case.name, None)
            if faulty:
                faults[case.name] = faulty
            if asked.times:
                print(f"{time.process_time() - start:6.2f} s  {case.name}")
        store.write(group, records)
        print(f"{group}: {len(records)} records in {time.process_time() - began:.1f} s", flush=True)
    store.write(store.KNOWN_FAULTS_NAME, faults)
    store.MACHINE.write_text(json.dumps(store.machine()) + "\n", "utf-8")


if __name__ == "__main__":
    main()
