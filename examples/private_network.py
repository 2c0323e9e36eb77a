"""A small network learned from people who each send a few shuffled messages: digits, one hidden layer, NumPy only.

Nothing is proved about how good it gets, as its loss is not convex; everything about privacy, which rests on clipping,
noise and composition alone. Steps and clip were tried out on these digits: a first run on others may do worse.
`python examples/private_network.py EPSILON ROUNDS` takes others than 4 and 40.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits

from shuffledp import Privacy, RandomBits
from shuffledp.learn.optimize import CustomLoss, GradientRounds, MomentumSteps, RowShape
from shuffledp.references.curator_descent import CuratorDescent
from shuffledp.simulation.optimize import optimize

INPUTS, HIDDEN, CLASSES, CLIP = 64, 12, 10, 1.0
FIRST = HIDDEN * (INPUTS + 1)
SIZE = FIRST + CLASSES * (HIDDEN + 1)


def forward(theta, pixels):
    """Inputs and hidden values, each with a 1 for the bias, and a probability a class."""
    ones = np.ones((len(pixels), 1))
    inputs = np.hstack([pixels - 0.3, ones])
    hidden = np.hstack([np.tanh(inputs @ theta[:FIRST].reshape(HIDDEN, -1).T), ones])
    scores = hidden @ theta[FIRST:].reshape(CLASSES, -1).T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return inputs, hidden, weights / weights.sum(axis=1, keepdims=True)


def value(theta, pixels, digits):
    """Every person's log loss."""
    likely = forward(theta, pixels)[2][np.arange(len(digits)), digits.astype(int)]
    return -np.log(likely)


def gradient(theta, pixels, digits):
    """Every person's own gradient, a row a person: two outer products, by the chain rule."""
    inputs, hidden, likely = forward(theta, pixels)
    upper = likely.copy()
    upper[np.arange(len(digits)), digits.astype(int)] -= 1
    lower = upper @ theta[FIRST:].reshape(CLASSES, -1)[:, :HIDDEN] * (1 - hidden[:, :HIDDEN] ** 2)
    outer = [lower[:, :, None] * inputs[:, None, :], upper[:, :, None] * hidden[:, None, :]]
    return np.hstack([each.reshape(len(digits), -1) for each in outer])


def main(epsilon=4.0, rounds=40):
    pixels, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digits))
    pixels, digits = pixels[order] / 16, digits[order].astype(float)
    train, test = slice(None, 1437), slice(1437, None)
    shapes = RowShape(width=INPUTS, low=0.0, high=1.0), RowShape(values=range(CLASSES))
    loss = CustomLoss(value=value, gradient=gradient, bound=CLIP, convex=False, rowwise=True, rows=shapes)

    initial = np.random.default_rng(1).normal(size=SIZE)
    initial[:FIRST] *= 0.22
    initial[FIRST:] *= 0.1
    asked = {"users": 1437, "dimension": SIZE, "rounds": rounds, "clip": CLIP}
    how = {"rule": MomentumSteps(step_size=0.5, momentum=0.9), "initial": initial}
    private = GradientRounds.plan(privacy=Privacy(epsilon, 1e-5), **asked, **how)
    exact = GradientRounds.plan(privacy=None, **asked, **how)

    def accuracy(theta):
        return float((forward(theta, pixels[test])[2].argmax(axis=1) == digits[test]).mean())

    run = optimize(private, loss, pixels[train], digits[train], bits=RandomBits.secure())
    print(private.guarantee())
    print(f"shuffled, gradients seen by nobody:  {accuracy(run.theta):.3f} ({run.clipped / run.gradients:.0%} clipped)")

    # A curator sees all gradients, and adds Gaussian noise: the same steps, clipping and epsilon.
    curator = CuratorDescent(
        users=1437, privacy=Privacy(epsilon, 1e-5), clip=CLIP, radius=1, rounds=rounds, step_size=1
    )
    generator, state = np.random.default_rng(2), exact.start()
    while (cohort := exact.ask(state)) is not None:
        total = loss.sent(cohort.point, CLIP, None, pixels[train], digits[train])[0].sum(axis=0)
        noise = curator.standard_error * generator.normal(size=SIZE)
        state = exact.tell(state, cohort.users, {1: total + noise})
    print(f"a trusted curator's DP-SGD:          {accuracy(exact.estimate(state)):.3f}")

    plain = optimize(exact, loss, pixels[train], digits[train], bits=RandomBits.seeded(3))
    print(f"without any privacy, same steps:     {accuracy(plain.theta):.3f}")


if __name__ == "__main__":
    main(*(kind(text) for kind, text in zip((float, int), sys.argv[1:], strict=False)))
