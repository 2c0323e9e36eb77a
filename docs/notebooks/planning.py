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
# # How accurate will it be?
#
# Before anybody is asked anything you can know how far off the answer will be. A *plan* is made from public facts
# alone: how many people, which promise (epsilon and delta), which question. It knows its own error.

# %%
import matplotlib.pyplot as plt
import pandas as pd

from shuffledp import BinarySum, Privacy

# %%
plan = BinarySum.plan(users=10_000, privacy=Privacy(epsilon=1, delta=1e-6))
plan

# %% [markdown]
# **What just happened.** Of all ways to count, the planner took the most accurate one. Its standard error, the
# messages that everybody sends, and the proof's every term are computed, not measured: no data were needed.
#
# ## More people: the same error
#
# That is the point of a shuffler. Where everybody adds noise alone, the error grows with the crowd.

# %%
sizes = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
plans = [BinarySum.plan(users=users, privacy=Privacy(1, 1e-6), method="coins") for users in sizes]
lines = {
    "everybody alone (local model)": [each.reference()["local_standard_error"] for each in plans],
    "a paper's own constants": [each.reference()["paper_standard_error"] for each in plans],
    "coins, exact accounting": [each.standard_error for each in plans],
    "shares = a trusted curator": [each.reference()["central_standard_error"] for each in plans],
}


def by_people():
    _, axis = plt.subplots(figsize=(8, 3.8))
    for name, errors in lines.items():
        axis.loglog(sizes, errors, marker="o", markersize=3, label=name)
    axis.set_xlabel("people")
    axis.set_ylabel("standard error of the count")
    axis.legend()
    axis.grid(alpha=0.3)


by_people()

# %% [markdown]
# So in a crowd of 1,000 an error of 6 is more than half a percent; of a million people it is nothing. **Ask more
# people, not for more epsilon.**
#
# ## Less epsilon: more error

# %%
epsilons = [0.1, 0.2, 0.5, 1, 2, 4]
by_epsilon = pd.DataFrame(
    {
        method: [
            BinarySum.plan(users=10_000, privacy=Privacy(epsilon, 1e-6), method=method).standard_error
            for epsilon in epsilons
        ]
        for method in ("shares", "poisson-bits", "coins")
    },
    index=pd.Index(epsilons, name="epsilon"),
)
by_epsilon.round(2)

# %% [markdown]
# As a rule, half of epsilon is twice the error.
#
# ## What each method costs
#
# The least error is not everything. How much does everybody send? And how far can *one liar* move the count?

# %%
rows = []
for method in BinarySum.methods:
    each = BinarySum.plan(users=10_000, privacy=Privacy(1, 1e-6), method=method)
    liar = "as far as it likes" if each.influence is None else f"by {each.influence:.3g}"
    rows.append((method, each.standard_error, each.messages_per_user_mean, each.bits_per_message, liar))
pd.DataFrame(rows, columns=["method", "standard error", "messages a person", "bits each", "one liar moves it"]).round(2)

# %% [markdown]
# For data that you hold already, `shares`. For people's own devices `live=True` takes the best method that no liar
# can spoil:

# %%
live = BinarySum.plan(users=10_000, privacy=Privacy(1, 1e-6), live=True)
print(f"{live.method}: ± {live.standard_error:.2f}; one liar {live.lying_client}")

# %% [markdown]
# ## People who do not come
#
# Noise is added by everybody together. If a tenth stays away, or works for the other side, some of it is missing;
# plan for that.

# %%
for honest in (1.0, 0.9, 0.5):
    each = BinarySum.plan(users=10_000, privacy=Privacy(1, 1e-6), method="poisson-bits", honest_fraction=honest)
    print(
        f"planned for {honest:.0%}: ± {each.standard_error:.2f}; "
        f"if only half are honest, epsilon is {each.epsilon_with(0.5):.2f}"
    )

# %% [markdown]
# **Who is trusted with what**, and what would be left if they were not worth it: every plan says it.

# %%
for collusion in live.collusions():
    print(f"- {collusion.parties}: {collusion.in_words}")

# %% [markdown]
# **In short.** Ask for a plan first; it costs nothing and promises a number. On the command line: `shuffledp plan
# binary-sum --users 10000 --epsilon 1 --delta 1e-6`. More: [how to choose a method](../howto/choose-a-method.md).
