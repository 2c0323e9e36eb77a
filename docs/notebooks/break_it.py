# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Break it yourself
#
# "Differentially private" is easily said. Here you play the attacker: you know everybody's value but one, you see
# all mixed messages, and you try to tell whether the last person has a 0 or a 1. If the promise is true you cannot
# win often; if somebody saved on noise, you can, and you can prove it.

# %%
import matplotlib.pyplot as plt
import numpy as np

from shuffledp import BinarySum, Privacy, RandomBits
from shuffledp.audit.trials import audit_plan

# %% [markdown]
# Ten people, so that an attack has a chance at all, and a plan that promises epsilon 1.

# %%
plan = BinarySum.plan(users=10, privacy=Privacy(1, 1e-6), method="shares")
print(plan.guarantee())

# %% [markdown]
# ## What the attacker sees
#
# All others have a 0. We run the randomizer of all ten people many times with the last one's 0, and many times with
# a 1, and look at the sums that come out. Epsilon 1 says: no outcome may be more than e = 2.72 times as likely in
# one case as in the other.


# %%
def seen(each, side, seed):
    return each.views(side, 40_000, each.honest_users, bits=RandomBits.seeded(seed)).ravel()


def two_worlds(each, title):
    zero, one = seen(each, 0, 1), seen(each, 1, 2)
    places = np.arange(-6, 8)
    shares = [np.array([(side == place).mean() for place in places]) for side in (zero, one)]
    figure, (above, below) = plt.subplots(2, 1, figsize=(8, 4.6), sharex=True, height_ratios=[3, 2])
    above.bar(places - 0.2, shares[0], 0.4, label="the last person has 0", color="#4c72b0")
    above.bar(places + 0.2, shares[1], 0.4, label="the last person has 1", color="#dd8452")
    above.set_title(title)
    above.legend()
    both = np.minimum(*shares) > 0.005
    odds = np.maximum(*shares)[both] / np.minimum(*shares)[both]
    below.bar(places[both], odds, color=np.where(odds > 1.2 * np.e, "#c44e52", "#8c8c8c"))
    below.axhline(np.e, color="black", linestyle="--")
    below.set_ylabel("times as likely")
    below.set_xlabel("sum that the attacker sees (the dashed line is what epsilon 1 allows)")
    figure.tight_layout()


two_worlds(plan, "an honest plan")

# %% [markdown]
# **What just happened.** Both worlds overlap so much that an outcome says little: the odds reach the line, and pass
# it only by what chance does to 40,000 runs.
#
# ## Now somebody saves on noise
#
# The same plan and the same promise, but half of the noise's variance. (A real plan refuses to be made so; we ask
# for a wrong twin on purpose.)

# %%
cheap = plan.twin(0.5)
two_worlds(cheap, "the same promise with half of the noise")

# %% [markdown]
# The red bars pass the line: such an outcome is stronger evidence than epsilon 1 allows.
#
# ## A proof by numbers: the audit
#
# A picture is no proof; bars shake. `audit_plan` looks for the best event on one half of the runs, tests it on the
# other half, and answers with a bound on epsilon that is wrong once in a thousand times.

# %%
for name, how in (
    ("honest", {}),
    ("half of the noise", {"sabotage": 0.5}),
    ("seven of ten stay away", {"honest_fraction": 0.3}),
):
    result = audit_plan(plan, bits=RandomBits.seeded(3), trials=100_000, **how)
    print(f"{name:>22}: epsilon is at least {result.epsilon_lower_bound:.2f}; claimed is 1: {result.verdict}")

# %% [markdown]
# *Stands* is no proof that a plan is private (that is on the theory pages); *refuted* is a proof that it is not.
# The third line shows why a plan must know how many people really add their noise: `BinarySum.plan(...,
# honest_fraction=0.3)` would have added enough.
#
# ## And if the shuffler helps the attacker?

# %%
for collusion in plan.collusions():
    left = "nothing is promised" if collusion.epsilon is None else f"epsilon {collusion.epsilon:.2f}"
    print(f"- {collusion.parties}: {left}; {collusion.in_words}")

# %% [markdown]
# **In short.** The two parties are trusted with exactly one thing: that shuffler and analyzer do not work together
# (and enough of the others are honest). Everything else you can check yourself: `shuffledp audit binary-sum --users
# 80 --epsilon 1 --delta 1e-6`. More: [find out that a mechanism lies](../howto/find-out-that-a-mechanism-lies.md).
