"""Which of five pages 20,000 people visit, known after every person, with three concurrent shufflers."""

import numpy as np

from shuffledp import Counter, Privacy, RandomBits
from shuffledp.protocols.domains.summed import OneHot

users, pages = 20_000, 5
visits = np.random.default_rng(1).choice(pages, size=users, p=[0.4, 0.3, 0.15, 0.1, 0.05])

counter = Counter.of(
    users=users, shufflers=3, privacy=Privacy(epsilon=1, delta=1e-6), domain=OneHot(pages), confidence=0.95
)
estimates = counter.run(visits, bits=RandomBits.secure())

print(f"every page at every time to ± {estimates.bound:g}, {estimates.confidence:.0%} sure of all of it at once")
for time in (1_000, 5_000, 20_000):
    truth = np.bincount(visits[:time], minlength=pages)
    print(f"after {time:>6,} people: {estimates.at(time).value.round().astype(int)}, in truth {truth}")
