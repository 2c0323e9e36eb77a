"""Measurements, not numbers: seeds repeat them, epsilon and another seed change them; bad requests."""

import json

import pytest

from shuffledp.errors import ParameterError
from shuffledp.experiments.survey import table5
from shuffledp.experiments.survey.comparison import TABLES, compare, measure_row
from shuffledp.experiments.survey.measuring import Effort, Setting
from shuffledp.experiments.survey.page import page
from shuffledp.experiments.survey.picture import panels
from shuffledp.privacy import Privacy

TARGET = Privacy(1, 1e-6)


@pytest.fixture
def few_rows(monkeypatch) -> None:
    """Of Table 5 the first method and the two references."""
    monkeypatch.setattr(table5, "ROWS", (table5.ROWS[0], *table5.ROWS[-2:]))


def _fifth(privacy: Privacy = TARGET, seed: int = 1) -> dict:
    document = compare(privacy=privacy, effort=Effort.quick, seed=seed, tables=[5]).document()["tables"]
    json.dumps(document, allow_nan=False)
    return document


def test_a_seed_repeats_and_another_does_not(few_rows) -> None:
    assert _fifth() == _fifth()
    assert _fifth() != _fifth(seed=2)


def test_epsilon_decides_the_numbers(few_rows) -> None:
    def worst(privacy: Privacy) -> float:
        return _fifth(privacy)[0]["rows"][0]["cells"]["d = 20: worst bin"]["value"]

    assert worst(Privacy(0.3, 1e-6)) > 2 * worst(TARGET)


def test_rows_do_not_depend_on_one_another() -> None:
    """A row alone, as another process would measure it, is the row of the whole table."""
    setting = Setting(privacy=TARGET, effort=Effort.quick, seed=1)
    assert measure_row(5, 0, setting) == TABLES[5].ROWS[0](setting)


def test_progress_and_order(few_rows) -> None:
    told: list[tuple[int, int]] = []
    done = compare(privacy=TARGET, effort=Effort.quick, tables=[5, 5], progress=lambda a, b: told.append((a, b)))
    assert told[0][0] == 0 and told[-1][0] == told[-1][1] == len(TABLES[5].ROWS)
    assert [table.number for table in done.tables] == [5]
    assert page(done).count("data:image/png;base64,") == 1
    assert len(panels(done.tables[0])) == 2


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"seed": -1}, "seed"), ({"tables": [7]}, "table"), ({"privacy": Privacy(50, 1e-6)}, "epsilon"),
     ({"privacy": Privacy(1, 0.1)}, "delta")],
)  # fmt: skip
def test_bad_requests(wrong, named: str) -> None:
    with pytest.raises(ParameterError, match=named):
        compare(**({"privacy": TARGET, "effort": Effort.quick} | wrong))
