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
# # A private count from a data frame
#
# You have a table with a row a person and want a number about all of them, without letting the number give any one
# person away. All you need is Python and pandas; what differential privacy is, we see on the way.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import shuffledp

# %% [markdown]
# Ten thousand made-up people: a city, and whether they use the new feature.

# %%
dice = np.random.default_rng(2026)
people = pd.DataFrame(
    {
        "city": dice.choice(["Berlin", "Köln", "München", "Ulm"], 10_000, p=[0.4, 0.3, 0.2, 0.1]),
        "uses_it": dice.random(10_000) < 0.3,
    }
)
people.head()

# %% [markdown]
# ## One line, one answer
#
# Every person's value is made into a few messages with random noise, the messages of all are mixed, and only then
# added up. `epsilon` says how much the answer may depend on one person (1 is a common choice, smaller is safer),
# `delta` how unlikely an accident is.

# %%
estimate = shuffledp.count(people, "uses_it", epsilon=1, delta=1e-6, seed=1)
print(estimate)
print("the truth:", int(people["uses_it"].sum()))

# %% [markdown]
# **What just happened.** The answer is off by a person or two, and it says so itself: `± 1.36` is its standard
# error, and it is within the printed bound in 95 of 100 runs. Whether *you* were in the table changes the chances
# of any answer by a factor of at most e (that is epsilon 1): nobody can tell from the number.
#
# `seed=1` is for this page: it makes the run repeatable, and then the noise protects nobody. Leave it out for real
# data.

# %%
estimate

# %% [markdown]
# ## How far off is it, if we ask again and again?
#
# We may look at that because these people are made up. (With real people every question costs: two answers at
# epsilon 1 protect by 2, not by 1.) Beside it: the *local model*, where everybody adds noise alone and nobody
# mixes.

# %%
truth = int(people["uses_it"].sum())
plan = estimate.plan
values = people["uses_it"].to_numpy()
mixed = [plan.sample_estimate(values, bits=bits).value - truth for bits in shuffledp.RandomBits.seeded(7).spawn(400)]
alone = np.random.default_rng(7).normal(0, plan.reference()["local_standard_error"], 400)


def beside_each_other():
    figure, axes = plt.subplots(1, 2, figsize=(9, 2.8), sharey=True)
    for axis, errors, name, bins in (
        (axes[0], mixed, "mixed by a shuffler", np.arange(-8.5, 9)),
        (axes[1], alone, "everybody alone", 21),
    ):
        axis.hist(errors, bins=bins, color="#4c72b0")
        axis.set_title(f"{name}: ± {np.std(errors):.3g}")
        axis.set_xlabel("people off the truth")
    axes[0].set_ylabel("of 400 runs")
    figure.tight_layout()


beside_each_other()

# %% [markdown]
# **Look at the two axes:** the same promise to every person, and about 70 times the error without somebody who
# mixes.
#
# ## Cities: a histogram
#
# Say which categories there are; do not read them from the data, for a rare one would give its owner away.

# %%
cities = shuffledp.histogram(
    people, "city", categories=["Berlin", "Köln", "München", "Ulm"], epsilon=1, delta=1e-6, seed=1
)
cities

# %%
pd.DataFrame({"private": cities.as_dict(), "true": people["city"].value_counts()}).round(1)

# %% [markdown]
# ## Who is trusted with what?
#
# Here one process played all parts, so whoever ran it saw the table. In a deployment people's devices do the first
# step, and two parties the others:

# %%
for collusion in plan.collusions():
    print(f"- {collusion.parties}: {collusion.in_words}")

# %% [markdown]
# **In short.** The *shuffler* sees who reports and cannot read it; the *analyzer* reads all messages and not whose
# they are. They must not work together. The count is as accurate as that of somebody trusted with all the data.
#
# Next: [how accurate will it be?](planning.py), before there are any data.
