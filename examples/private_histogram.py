"""Which of a few cities 20,000 people live in, and which of very many pages they read."""

import numpy as np

from shuffledp import Histogram, Privacy, RandomBits, simulate
from shuffledp.protocols.domains.categories import Hashed, Names

users, generator = 20_000, np.random.default_rng(1)
privacy, bits = Privacy(epsilon=1, delta=1e-6), RandomBits.secure()

# A public list of names, and one of them for whatever is not on it.
cities = Names(("Aachen", "Berlin", "Chemnitz", "elsewhere"), other="elsewhere")
lives_in = generator.choice(
    ["Berlin", "Aachen", "Chemnitz", "Oslo", "Lima"], size=users, p=[0.5, 0.3, 0.15, 0.04, 0.01]
)
plan = Histogram.plan(users=users, privacy=privacy, categories=cities)
estimate = simulate(plan, cities.encode(lives_in), bits=bits)
print(f"{plan.method}: every city to ± {plan.error_bound:.0f}, {estimate.confidence:.0%} sure of all at once")
for name, count in zip(cities.names(), estimate.value, strict=True):
    print(f"  {name:<10} {count:>8,.0f}")

# Names that nobody can list are hashed; public ones are looked up.
pages = Hashed(cells=10_000, salt="2026")
reads = np.array([f"/page/{number}" for number in generator.zipf(1.5, size=users)])
plan = Histogram.plan(users=users, privacy=privacy, categories=pages)
estimate = simulate(plan, pages.encode(reads), bits=bits)
print(f"{plan.method}: {plan.messages_per_user_mean:.1f} messages a person, every cell to ± {plan.error_bound:.0f}")
asked = ["/page/1", "/page/2", "/page/3"]
for name, cell in zip(asked, pages.encode(asked), strict=True):
    print(f"  {name:<10} {estimate.value[cell]:>8,.0f}, in truth {np.count_nonzero(reads == name):,}")
