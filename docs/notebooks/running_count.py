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
# # A running count with four shufflers
#
# A counter on a page: how many of the visitors so far have clicked? It should be right *all the time*, not only at
# the end, and no visitor should be given away by any of its thousands of values. If each new value got fresh noise,
# one person's click would show in all later values: privacy would be spent over and over. Several shufflers at once
# solve that.

# %%
import matplotlib.pyplot as plt
import numpy as np

import shuffledp
from shuffledp.protocols.catalogue import PROTOCOLS

# %% [markdown]
# Four thousand visitors come one after the other; in the middle a campaign makes them click more often.

# %%
dice = np.random.default_rng(5)
chance = np.where((np.arange(4_000) > 1_500) & (np.arange(4_000) < 2_500), 0.6, 0.2)
clicked = (dice.random(4_000) < chance).astype(int)

# %% [markdown]
# ## Count as they come
#
# Every visitor reports to at most four open batches, one with each shuffler. A batch that is full is mixed and
# added to the count. Noise is shared cleverly between batches: what a visitor adds to one of them is partly taken
# back in the next, so that errors do not pile up.

# %%
counted = shuffledp.running_count(clicked, epsilon=1, delta=1e-6, shufflers=4, seed=1)
print(counted)

# %% [markdown]
# **What just happened.** All messages of 4,000 visitors were made, mixed by four shufflers and read. We have an
# answer after *every* visitor, and one bound for *all of them at once*.

# %%
answers, truth = counted.every(), np.cumsum(clicked)
visitors = np.arange(1, truth.size + 1)


def as_they_come():
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 5), sharex=True, height_ratios=[2, 1])
    above.fill_between(visitors, answers - counted.bound, answers + counted.bound, color="#4c72b0", alpha=0.25)
    above.plot(visitors, answers, color="#4c72b0", label="private answer, with its bound")
    above.plot(visitors, truth, color="black", linewidth=0.8, label="truth")
    above.set_ylabel("clicks so far")
    above.legend()
    below.plot(visitors, answers - truth, color="#4c72b0")
    below.axhspan(-counted.bound, counted.bound, color="#4c72b0", alpha=0.15)
    below.set_ylabel("error")
    below.set_xlabel("visitors so far")
    figure.tight_layout()


as_they_come()
print(
    f"the largest error of all {truth.size:,} answers: {np.abs(answers - truth).max():.0f}; bound {counted.bound:.0f}"
)

# %% [markdown]
# The campaign is plain to see; no single click is.
#
# ## Why four? What one shuffler costs
#
# Planning needs no data. The bound holds for all answers of a million visitors at once, at the same epsilon:

# %%
asked = {"users": 1_000_000, "privacy": shuffledp.Privacy(1, 1e-6)}
bounds = {k: PROTOCOLS["counter"].plan(shufflers=k, **asked).error_bound for k in (1, 2, 3, 4)}
curator = PROTOCOLS["counter"].plan(shufflers=4, **asked).reference()["central_error_bound"]


def by_shufflers():
    _, axis = plt.subplots(figsize=(7, 2.8))
    axis.bar([f"{k}" for k in bounds], list(bounds.values()), color="#4c72b0")
    axis.axhline(curator, color="black", linestyle="--")
    axis.set_title(f"dashed: a curator who sees all, {curator:.0f}")
    for place, bound in enumerate(bounds.values()):
        axis.text(place, bound + 8, f"{bound:.0f}", ha="center")
    axis.set_ylim(0, 1.15 * max(bounds.values()))
    axis.set_xlabel("shufflers that work at the same time")
    axis.set_ylabel("all answers within")


by_shufflers()

# %% [markdown]
# **Who is trusted with what.** No two of the shufflers and the analyzer may work together. And with noise that is
# carried on from batch to batch, you rely on people who come a little before and after you, who add their part of
# it: the plan says how many false ones in a row would be too many.

# %%
counted.plan.guarantee()

# %% [markdown]
# **In short.** Four thousand answers, each within the bound, at the price of one epsilon for everybody; with four
# shufflers almost what a trusted curator reaches. More: [count as people come](../howto/count-as-people-come.md).
