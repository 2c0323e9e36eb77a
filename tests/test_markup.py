import math
from xml.etree import ElementTree

import numpy as np
import pytest

from shuffledp import markup

HOSTILE = "<script>alert('1')</script> & \"München\" 北京"


def parsed(text: str) -> ElementTree.Element:
    """Well-formed or an error."""
    return ElementTree.fromstring(f"<all>{text}</all>")


@pytest.mark.parametrize(
    "text",
    [
        markup.facts(HOSTILE, [(HOSTILE, HOSTILE), ("nothing", None)]),
        markup.listing(HOSTILE, [HOSTILE, "b"], [(HOSTILE, "1")], note=HOSTILE),
        markup.bars([HOSTILE, "b"], [3, 1], 0.5),
        markup.curve([0, 1], [0, 1], 0.1, against=HOSTILE, measures=HOSTILE),
        markup.section(markup.interval(1, 0, 3), ""),
    ],
)
def test_what_is_drawn_is_well_formed_and_nothing_in_it_is_live(text: str) -> None:
    tree = parsed(text)
    assert "script" not in {node.tag for node in tree.iter()}
    assert not any(name.startswith("on") for node in tree.iter() for name in node.attrib)


def test_nothing_is_drawn_of_what_has_no_size() -> None:
    assert markup.bars([], []) == markup.interval(1, 0, math.inf) == ""
    assert markup.bars(["a"], [1.0], math.inf) == markup.curve([0], [1], 0, against="", measures="") == ""


def test_many_bars_say_how_many_are_left_out() -> None:
    text = markup.bars([f"n{place}" for place in range(200)], np.arange(200.0))
    assert "188 more are not drawn" in text and "n199" in text and "n100" not in text


def test_everything_stays_inside_the_picture() -> None:
    for text in (markup.bars(["a", "b"], [5, -3], 2), markup.curve([0, 9], [1, 5], 2, against="x", measures="y")):
        svg = next(node for node in parsed(text).iter() if node.tag.endswith("svg"))
        wide, high = float(svg.attrib["width"]), float(svg.attrib["height"])
        for node in svg.iter():
            for name, most in (("x", wide), ("x1", wide), ("x2", wide), ("y", high), ("y1", high), ("y2", high)):
                assert 0 <= float(node.attrib.get(name, 0)) <= most
