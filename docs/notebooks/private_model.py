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
# # A private model beside a curator's
#
# Learn who will buy, from twenty thousand people whose rows nobody may see. And find out what that costs: beside us
# stands a *curator*, who sees all rows, takes the same steps and promises the same epsilon.

# %%
import matplotlib.pyplot as plt
import numpy as np

from shuffledp import Privacy, RandomBits
from shuffledp.learn import ShuffleLogisticRegression
from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
from shuffledp.references.curator_descent import curator_rounds
from shuffledp.simulation.optimize import optimize

# %% [markdown]
# Made-up people: hours on the site and items looked at, both from 0 to 10. The first makes buying likelier, the
# second less likely.

# %%
dice = np.random.default_rng(3)
X = dice.uniform(0, 10, (24_000, 2))
y = X @ [1.0, -0.7] - 1 + dice.logistic(size=24_000) > 0
learn, test = slice(None, 20_000), slice(20_000, None)

# %% [markdown]
# ## As in scikit-learn
#
# What the estimator must be told are public facts, not read from the data: how large features can be, and which
# classes there are.

# %%
model = ShuffleLogisticRegression(
    epsilon=1, delta=1e-6, feature_bounds=(0, 10), classes=[False, True], random_state=1
).fit(X[learn], y[learn])
print(f"right on {model.score(X[test], y[test]):.1%} of 4,000 others")
print(f"the commoner class would be right on {max(y.mean(), 1 - y.mean()):.1%}")
print(model.guarantee_)


# %%
def what_it_learned():
    _, axis = plt.subplots(figsize=(6, 4))
    some = slice(20_000, 20_600)
    axis.scatter(*X[some].T, c=np.where(y[some], "#4c72b0", "#dd8452"), s=8)
    hours = np.array([0.0, 10.0])
    for weights, offset, name, look in (
        (model.coef_[0], model.intercept_[0], "learned privately", "-"),
        (np.array([1.0, -0.7]), -1.0, "how they were made", "--"),
    ):
        axis.plot(hours, -(offset + weights[0] * hours) / weights[1], f"k{look}", label=name)
    axis.set(xlim=(0, 10), ylim=(0, 10), xlabel="hours on the site", ylabel="items looked at")
    axis.legend(loc="upper left")


what_it_learned()

# %% [markdown]
# **What just happened.** People were asked in groups, each person once. Each computed on its own device in which
# direction the model should move, and sent that, rounded and with noise, in a few shuffled messages. Only sums of
# whole groups were ever seen. Nobody is trusted with a row; shuffler and analyzer are trusted not to work together.
#
# ## The same steps, by a curator
#
# To be fair we take one plan and let both run it: the same groups, the same steps, the same epsilon. The curator
# adds noise once to each exact sum. The third line takes the steps without any noise.

# %%
rows = np.column_stack((X / 5 - 1, np.ones(len(X)))) / np.sqrt(3)
labels = np.where(y, 1.0, -1.0)
problem = Problem.of(LogisticLoss(), L2Ball(dimension=3, radius=8), users=20_000, privacy=Privacy(1, 1e-6), visits=1)
solver = plan(problem, solver="agd")


# %%
def right(theta):
    return float(((rows[test] @ theta > 0) == y[test]).mean())


found = {
    "shuffled": [
        right(optimize(solver, LogisticLoss(), rows[learn], labels[learn], bits=bits).theta)
        for bits in RandomBits.seeded(1).spawn(5)
    ],
    "a curator": [
        right(models[-1]) for models in curator_rounds(solver, rows[learn], labels[learn], 5, noisy=True, seed=1)
    ],
    "no noise": [
        right(models[-1]) for models in curator_rounds(solver, rows[learn], labels[learn], 3, noisy=False, seed=1)
    ],
}
for name, values in found.items():
    print(f"{name:>10}: {np.mean(values):.2%} right, ± {np.std(values, ddof=1):.2%} between runs")


# %%
def side_by_side():
    _, axis = plt.subplots(figsize=(7, 2.2))
    for place, (name, values) in enumerate(found.items()):
        axis.scatter(values, np.full(len(values), place), s=18, label=name)
    axis.set_yticks(range(len(found)), list(found))
    axis.set_xlabel("right on others, a dot a run")
    axis.margins(y=0.3)
    axis.invert_yaxis()


side_by_side()

# %% [markdown]
# **In short.** The shuffled model is about as right as the curator's, who saw everything: mixing replaces trust,
# not accuracy. What privacy itself costs is the distance of both to the steps without noise. With fewer people it
# is larger: `model.outlook_` says what to expect before you ask anybody.
#
# More: [train a private model](../howto/train-a-private-model.md), [live, on people's own
# devices](../howto/train-live.md).
