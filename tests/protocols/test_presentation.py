"""What plans say about their answers and themselves, as data."""

import numpy as np
import pytest

from shuffledp.estimates import Estimate, VectorEstimate
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.domains.categories import Hashed, Names, as_categories
from shuffledp.protocols.presentation import View, beside_others, present_categories, present_numbers
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate

TARGET = Privacy(1, 1e-6)


def _vector(*values: float, bound: float = 5.0) -> VectorEstimate:
    return VectorEstimate(value=np.array(values), standard_error=1.0, bound=bound, confidence=0.95)


def test_one_number_and_its_truth() -> None:
    shown = present_numbers(Estimate(value=312.0, standard_error=1.4, bound=3.0, confidence=0.95), 310)
    assert dict(shown.facts)["true value"] == "310  (the estimate is off by 2)" and shown.figures == {"error": 2.0}
    assert "true value" not in dict(present_numbers(_vector(1, 2)).facts)
    assert "root mean square" in dict(present_numbers(_vector(1, 2), np.array([1.0, 2.0])).facts)["true value"]


def test_categories_are_listed_with_the_largest_first_and_the_rest_added_up() -> None:
    names = Names(tuple("abcdef"))
    shown = present_categories(names, _vector(1, 50, 7, 30, -4, 20), users=100, chart_title="", view=View(top=3))
    rows = shown.listings[0].rows
    assert [row.cells[0] for row in rows] == ["b", "d", "f", "3 others together"]
    assert rows[-1].apart and rows[-1].cells[1] == "4.0"
    assert shown.records()[1] == {"category": "b", "estimate": 50.0, "lower": 45.0, "upper": 55.0}
    assert shown.records()[4]["lower"] == 0.0


def test_few_categories_in_an_order_stay_in_it_and_what_may_be_nothing_is_faint() -> None:
    shown = present_categories(
        as_categories(3), _vector(2, 90, 40), users=100, chart_title="", truth=np.array([0, 95, 5])
    )
    rows = shown.listings[0].rows
    assert [row.cells[0] for row in rows] == ["0", "1", "2"] and [row.style for row in rows] == ["dim", "", ""]
    assert rows[0].cells[-1].endswith("may be 0") and rows[1].cells[4] == "95"
    assert shown.figures["largest_error"] == 35.0 and shown.chart.data["in_order"]
    assert (
        shown.records()[1]["upper"] == 95.0
        and present_categories(as_categories(2), _vector(99, 1), users=100, chart_title="").records()[0]["upper"]
        == 100.0
    )


def test_names_are_looked_up_in_hashed_cells() -> None:
    cells = Hashed(8)
    where = int(cells.encode(["apple"])[0])
    value = np.zeros(8)
    value[where] = 70
    view = View(names=["apple"])
    shown = present_categories(cells, _vector(*value), users=100, chart_title="", truth=value, view=view)
    assert shown.records() == [{"category": "apple", "estimate": 70.0, "lower": 65.0, "upper": 75.0, "truth": 70.0}]


def test_a_comparison_says_how_much_better() -> None:
    rows = [
        ("curator", 1.0, "all"),
        ("this", 2.0, "nobody"),
        ("near", 2.005, ""),
        ("local", 20.0, ""),
        ("none", None, ""),
    ]
    cells = [row.cells[1:3] for row in beside_others("", ("who", "error"), 2.0, rows).rows]
    assert cells == [
        ("1", "2x worse"),
        ("2", ""),
        ("2.005", "as good"),
        ("20", "10x better"),
        ("not proved here", ""),
    ]


@pytest.mark.parametrize(
    ("family", "values"),
    [
        ("binary-sum", {}),
        ("bounded-sum", {"low": 0.0, "high": 1.0}),
        ("vector-sum", {"dimension": 2, "radius": 1.0}),
        ("histogram", {"categories": 5}),
        ("ranges", {"domain": "0:9"}),
        ("ranges", {"domain": "0:3x0:3"}),
        ("distinct-elements", {"categories": 5}),
        ("distribution-test", {"categories": 5, "distance": 0.4}),
    ],
)
def test_every_plan_presents_its_answer_and_stands_beside_others(family: str, values) -> None:
    plan = PROTOCOLS[family].plan(users=500, privacy=TARGET, **values)
    data = plan.domain.synthesize(500, np.random.default_rng(1))
    answer = simulate(plan, data, bits=RandomBits.seeded(1), fast=True)
    for truth in (None, plan.true_value(data)):
        shown = plan.present(answer, truth)
        assert shown.facts and all(isinstance(word, str) for fact in shown.facts for word in fact)
        for listing in (*shown.listings, plan.compared()):
            assert listing.rows and all(len(row.cells) == len(listing.columns) for row in listing.rows)


def test_quantiles_say_their_ranks_and_how_far_off_they_are() -> None:
    plan = PROTOCOLS["ranges"].plan(users=5000, privacy=TARGET, domain=100)
    codes = np.arange(5000) % 100
    estimate = simulate(plan, codes, bits=RandomBits.seeded(1), fast=True)
    shown = plan.present(estimate, plan.true_value(codes), View(quantiles=(0.1, 0.5)))
    first, median = shown.figures["quantiles"]
    assert (first["q"], median["truth"]) == (0.1, 49) and median["rank_error"] <= shown.figures["rank_bound"]
    assert shown.chart.kind == "distribution" and len(shown.columns["share"]) == 100
    assert plan.present(estimate).figures["quantiles"][1]["truth"] is None
