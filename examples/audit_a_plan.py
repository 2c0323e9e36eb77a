"""Does a plan keep its word? Its own randomizer on two neighbouring inputs, honest and with half the noise."""

from shuffledp import BinarySum, Privacy, RandomBits
from shuffledp.audit.trials import audit_plan

plan = BinarySum.plan(users=10, privacy=Privacy(epsilon=1, delta=1e-6), method="shares")
for part in (1.0, 0.5):
    result = audit_plan(plan, bits=RandomBits.secure(), trials=50_000, sabotage=part)
    print(
        f"with {part:.0%} of the noise variance: {result.verdict}; claimed {result.epsilon_claimed:g}, "
        f"found at least {result.epsilon_lower_bound:.2f}"
    )
