"""People with several rows, and groups, through the desks of the live service."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.service.task import Task

LOOSE = Privacy(4, 1e-3)


@pytest.mark.parametrize(
    ("protocol", "domain", "people"),
    [
        ("repeated-count", {"at_most": 3, "method": "bits"}, [3, 0, 1, 2] * 5),
        ("repeated-histogram", {"at_most": 2, "categories": ["a", "b"], "method": "decoys"}, [["a", "b"], ["b"]] * 10),
        ("grouped-count", {"groups": ["A", "B"], "method": "decoys"}, [("A", 1), ("B", 0)] * 10),
        ("grouped-rate", {"groups": ["A", "B"], "method": "decoys"}, [("A", 1), ("B", 0)] * 10),
    ],
)
def test_devices_report_and_the_analyzer_reads(
    protocol: str,
    domain: dict[str, Any],
    people: list[Any],
    make_task: Callable[..., Task],
    make_desks: Callable[..., Any],
) -> None:
    plan: Any = PROTOCOLS[protocol].plan(users=20, privacy=LOOSE, **domain)
    values = plan.encode(people)
    last = make_desks(make_task(plan)).run(values)[-1]
    truth = np.asarray(plan.true_value(values))
    # Six standard errors, or the whole range of a rate.
    assert np.all(np.abs(np.asarray(last.estimate) - truth) <= 6 * plan.standard_error + 1e-9)
    assert np.shape(last.estimate) == truth.shape
