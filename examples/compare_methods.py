"""What each method costs and gains, and what it is worth when users collude with the analyst."""

from shuffledp import BinarySum, Privacy

for users in (200, 10_000):
    for method in BinarySum.methods:
        plan = BinarySum.plan(users=users, privacy=Privacy(epsilon=1, delta=1e-6), method=method)
        print(
            f"{users:>9,} users, {method:>12}: standard error {plan.standard_error:5.2f}, "
            f"{plan.messages_per_user_mean:5.2f} messages of {plan.bits_per_message:>2} bits, "
            f"epsilon {plan.epsilon_with(0.9):.2f} if a tenth colludes"
        )
