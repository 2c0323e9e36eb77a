"""How many tokens are harmless in one hand: against counting it out."""

import pytest

from shuffledp.errors import ParameterError
from shuffledp.service.admission.shares import TokenShare


@pytest.mark.parametrize("batch", [1, 2, 7, 10, 99, 1000])
@pytest.mark.parametrize("fraction", [1.0, 0.99, 0.9, 0.7, 0.5, 1 / 3, 0.1])
def test_by_counting(batch, fraction):
    share = TokenShare(tokens=50, users=batch, batch=batch, honest_fraction=fraction)
    # The most false people with whom the honest ones are still the fraction that is counted on.
    most = max(false for false in range(batch + 1) if (batch - false) / batch >= fraction - 1e-9)
    assert share.attacker_most == most
    assert share.honest_least == batch - most
    assert share.attacker_share == most / 50
    assert share.fills == (batch <= 50)


def test_no_tokens_are_no_answer():
    with pytest.raises(ParameterError, match="tokens must be 1 or more"):
        TokenShare(tokens=0, users=1, batch=1, honest_fraction=1.0)
