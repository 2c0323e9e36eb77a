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
# # A recommender that sees nobody
#
# Every visitor is shown one of a few offers, and clicks or does not. The server wants to learn what suits whom. It
# never sees a visitor's features or click: it sends a *model* to the device, the device chooses, and reports a few
# noisy messages that are mixed with everybody else's.

# %%
import matplotlib.pyplot as plt
import numpy as np

from shuffledp import Privacy
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.references.bandits.catalogue import linear_policy
from shuffledp.simulation.environments.linear_runs import run_linear_bandit
from shuffledp.simulation.environments.linear_worlds import FreshArms

# %% [markdown]
# ## A world to try it in
#
# Eight shops. In each of them ten thousand visitors come one after the other, each with twenty new offers of four
# features; the chance of a click is a hidden weighted sum of the features. The best offer of each visitor is known
# to us, and to nobody in the shop.

# %%
visitors = 10_000
world = FreshArms.drawn(8, arms=20, dimension=4, generator=np.random.default_rng(1))
setting = LinearSetting(users=visitors, dimension=4, nonnegative=True)
_, chances = world.offer(1000, np.random.default_rng(2))
blind = float((chances.max(axis=-1) - chances.mean(axis=-1)).mean()) * visitors
print(f"whoever shows offers at random loses {blind:,.0f} clicks of {visitors:,} visits")

# %% [markdown]
# ## Four ways to learn
#
# The same rule each time, the same promise to every visitor (epsilon 1), and different people who are trusted.

# %%
trusted = {
    "jdp-buffers": "a curator, who sees all",
    "thompson-concurrent-4": "four shufflers, bolder rule",
    "concurrent-4": "four shufflers",
    "shuffle-vec": "one shuffler",
    "ldp": "nobody",
}
runs = {name: run_linear_bandit(linear_policy(name, setting, Privacy(1, 1e-3)), world, seed=1) for name in trusted}


def clicks_lost():
    _, axis = plt.subplots(figsize=(9, 4))
    for (name, run), colour in zip(runs.items(), ("black", "#c44e52", "#4c72b0", "#dd8452", "#8172b3"), strict=True):
        mean, error = run.regret.mean(axis=0), run.regret.std(axis=0) / np.sqrt(len(run.regret))
        axis.plot(run.times, mean, color=colour, label=f"{trusted[name]}: {mean[-1]:,.0f}")
        axis.fill_between(run.times, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.15)
    axis.axline((0, 0), (visitors, blind), color="gray", linestyle=":", label=f"offers at random: {blind:,.0f}")
    axis.set_xlabel("visitors so far")
    axis.set_ylabel("clicks lost so far")
    axis.legend(title="who is trusted")


clicks_lost()

# %% [markdown]
# **What just happened.** A line that bends down has learned: later visitors get better offers. With four shufflers
# the line is close to that of a curator who sees every visitor; where everybody is alone (*nobody* trusted) noise
# drowns what there is to learn.
#
# The *bolder rule* (Thompson sampling) reads exactly the same noisy sums and takes more chances. It has no proof
# about how much it loses, only about privacy; here it loses less.
#
# ## What a device is told, and what it sends

# %%
policy = linear_policy("concurrent-4", setting, Privacy(1, 1e-3))
cohort = policy.ask(policy.start())
print("step that the device computes:", cohort.step.name)
print("visitors who get this model:", cohort.users)
print(
    f"messages that each sends: {policy.plan.messages_per_user_mean:.0f} on average, to {len(cohort.batches)} shufflers"
)

# %%
guarantee = policy.guarantee()
print(guarantee.privacy)
print("trusted:", guarantee.trusted)

# %% [markdown]
# **In short.** The features and the click stay on the device. The shufflers see who visits and cannot read; the
# analyzer adds up mixed messages and sends out a better model. More: [recommend without
# seeing](../howto/recommend-without-seeing.md), and [live](../howto/recommend-live.md).
