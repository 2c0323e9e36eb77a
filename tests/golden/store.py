"""Golden files: one JSON object a group with a line a case, and how a record differs from its golden one."""

import json
import math
import platform
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from .cases import KNOWN_FAULTS, Case

FOLDER = Path(__file__).parent / "records"
MACHINE = Path(__file__).parent / "machine.json"
KNOWN_FAULTS_NAME = "known_faults"

Record = dict[str, Any]


def machine() -> Record:
    """What decides the last bits of floats: NumPy's vector instructions, on which exp and log depend."""
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    return {"machine": platform.machine(), "instructions": sorted(found)}


def plain(value: Any) -> Any:
    """A value as JSON has it; numbers that are not finite become text."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")


def faulty_keys(case: Case) -> list[str]:
    """Patterns of the keys that known faults make in this case's record."""
    return [
        key
        for fault in KNOWN_FAULTS
        if any(fnmatchcase(case.name, pattern) for pattern in fault.cases)
        for key in fault.keys
    ]


def split(case: Case, record: Record) -> tuple[Record, Record]:
    """What must stay, and what known faults make: the latter by dotted paths."""
    patterns = faulty_keys(case)
    faulty: Record = {}

    def kept(value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            return value
        left = {}
        for key, each in value.items():
            here = f"{path}.{key}" if path else key
            if any(fnmatchcase(here, pattern) for pattern in patterns):
                faulty[here] = each
            else:
                left[key] = kept(each, here)
        return left

    return kept(record, ""), faulty


def read(name: str) -> dict[str, Record]:
    """A group's golden records by their cases' names."""
    found: dict[str, Record] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return found


def write(name: str, records: Mapping[str, Record]) -> None:
    """A line a case, in the order of names, keys sorted."""
    lines = [
        f"{json.dumps(case)}: {json.dumps(records[case], sort_keys=True, separators=(',', ':'), allow_nan=False)}"
        for case in sorted(records)
    ]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def differences(golden: Any, now: Any, path: str = "") -> Iterator[str]:
    """Every key whose value is another, of another type, missing or new: nothing is rounded."""
    where = path or "record"
    if isinstance(golden, dict) and isinstance(now, dict):
        for key in sorted(golden.keys() | now.keys()):
            here = f"{path}.{key}" if path else key
            if key not in now:
                yield f"{here}: is gone, was {_short(golden[key])}"
            elif key not in golden:
                yield f"{here}: is new, {_short(now[key])}"
            else:
                yield from differences(golden[key], now[key], here)
    elif isinstance(golden, list) and isinstance(now, list) and len(golden) == len(now):
        for place, (old, new) in enumerate(zip(golden, now, strict=True)):
            yield from differences(old, new, f"{where}[{place}]")
    elif type(golden) is not type(now) or golden != now:
        yield f"{where}: was {_short(golden)}, is {_short(now)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"
