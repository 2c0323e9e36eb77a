"""Clicks by a logistic law: what knowing the link would save, without privacy and on private sums of another kind.

Linear sums hold no more than a line. A logistic fit needs sums around a pilot theta: devices would send v phi and
4 w phi phi^T, w the slope of the link at the pilot's score z and v = y - link(z) + w z, which is Newton's step. Two
such vectors are up to sqrt(5) apart, those of lines 2. It is not in the package, as at epsilon 1 it has more regret
than lines: what noise hides, a link does not bring back.
"""

import argparse
import math
import sys

import numpy as np
from report import figure, report
from scipy.special import expit

from shuffledp.learn.bandits.linear.policy import LinearPolicy
from shuffledp.learn.bandits.linear.posterior import PosteriorModel
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.catalogue import linear_policy
from shuffledp.references.bandits.linucb import LinUCB
from shuffledp.simulation.environments.linear_worlds import raised_sphere

ARMS, DIMENSION, USERS, SLOT = 100, 5, 20_000, 78
APART = math.sqrt(5) / 2
# Of theta in a logistic law: scores of 4 are common.
PRIOR = 16.0
WORLDS = {"lines": lambda z: z, "logistic": lambda z: expit(8 * z - 4), "rare clicks": lambda z: expit(8 * z - 7)}
SETTING = LinearSetting(users=USERS, dimension=DIMENSION, nonnegative=True)


class World:
    """Fixed arms whose mean rewards are a function of <features, theta>."""

    def __init__(self, kind: str, instances: int, seed: int) -> None:
        generator = np.random.default_rng((seed, 9))
        self.features = raised_sphere((instances, ARMS), DIMENSION, generator)
        theta = raised_sphere((instances,), DIMENSION, generator)
        self.means = WORLDS[kind](np.einsum("iad,id->ia", self.features, theta).clip(0, 1))

    def meet(self, model: PosteriorModel, users: int, generator: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Arms that users draw, their features and rewards, and what each instance lost."""
        drawn = model.drawn(generator.standard_normal((len(self.means), users, DIMENSION)))
        chosen = np.matmul(drawn, np.swapaxes(self.features, 1, 2)).argmax(axis=-1)
        means = np.take_along_axis(self.means, chosen, axis=1)
        phi = np.take_along_axis(self.features, chosen[..., np.newaxis], axis=1)
        lost = (self.means.max(axis=1)[:, np.newaxis] - means).sum(axis=1)
        return chosen, phi, generator.random(means.shape) < means, lost


def private(world: World, policy: LinearPolicy, seed: int, *, links: bool) -> np.ndarray:
    """Regret of Thompson sampling on released sums: of lines, or of Newton's steps with APART times the noise."""
    joint, generator, instances = SETTING.joint, np.random.default_rng(seed), len(world.means)
    shape, regret = (instances, joint.length), np.zeros(instances)
    sums, theta = np.zeros(shape), np.zeros((instances, DIMENSION))
    noise = policy.sample_noise(shape, bits=RandomBits.seeded(seed), generator=generator.spawn(1)[0])
    for release in range(policy.releases + 1):
        released = sums + next(noise) * policy.step * (APART if links else 1.0) if release else sums
        matrix, vector = joint.unpack(released)
        model = policy.model_rule.model(matrix, vector, release)
        if links:
            model = _newton(matrix / 4, vector, float(policy.release_noise.deviations[release]) * APART)
        theta = model.theta
        users = min(policy.slot_users, USERS - release * policy.slot_users)
        if not users:
            break
        _, phi, paid, lost = world.meet(model, users, generator)
        regret += lost
        score = np.clip(np.einsum("iud,id->iu", phi, theta), -4, 4)
        slope = expit(score) * expit(-score)
        sent = joint.pack(phi, paid - expit(score) + slope * score if links else paid)
        sent[..., DIMENSION:] *= (4 * slope if links else np.ones(slope.shape))[..., np.newaxis]
        sums += sent.sum(axis=1)
    return regret


def _newton(matrix: np.ndarray, vector: np.ndarray, deviation: float) -> PosteriorModel:
    """The posterior of the logistic theta, whose rewards have the variance that the matrix is weighed by."""
    values, vectors = np.linalg.eigh(matrix)
    seen = np.maximum(values, 0.0)
    spread = seen + deviation**2 * (1 + PRIOR * (DIMENSION + 1) / 32)
    ratio = np.divide(seen, spread, out=np.zeros_like(seen), where=spread > 0)
    variance = 1 / (ratio * seen + 1 / PRIOR)
    along = np.matmul(np.swapaxes(vectors, 1, 2), vector[..., np.newaxis])[..., 0]
    theta = np.matmul(vectors, (variance * ratio * along)[..., np.newaxis])[..., 0]
    return PosteriorModel(theta, vectors * np.sqrt(variance)[:, np.newaxis, :])


def free(world: World, seed: int) -> np.ndarray:
    """Regret without noise of Laplace's posterior of the logistic law, in slots of as many users."""
    generator, instances = np.random.default_rng(seed), len(world.means)
    counts, paid_sums, theta = (
        np.zeros((instances, ARMS)),
        np.zeros((instances, ARMS)),
        np.zeros((instances, DIMENSION)),
    )
    regret, rows = np.zeros(instances), np.arange(instances)[:, np.newaxis]
    for first in range(0, USERS, SLOT):
        for _ in range(3):
            likely = expit(np.einsum("iad,id->ia", world.features, theta))
            weights = counts * likely * (1 - likely)
            bend = np.einsum("ia,iad,iae->ide", weights, world.features, world.features) + np.eye(DIMENSION) / PRIOR
            pull = np.einsum("ia,iad->id", paid_sums - counts * likely, world.features) - theta / PRIOR
            theta = theta + np.linalg.solve(bend, pull[..., np.newaxis])[..., 0]
        model = PosteriorModel(theta, np.linalg.cholesky(np.linalg.inv(bend)))
        chosen, _, paid, lost = world.meet(model, min(SLOT, USERS - first), generator)
        np.add.at(counts, (rows, chosen), 1)
        np.add.at(paid_sums, (rows, chosen), paid)
        regret += lost
    return regret


def measured(instances: int) -> list[dict]:
    """In every world: lines and links, without noise and at two epsilons; left out as links lose at epsilon 1."""
    rows = []
    plain = LinUCB(setting=SETTING, batch=SLOT, choice="posterior")
    for kind in WORLDS:
        world = World(kind, instances, 301)
        found = {"no noise": (private(world, plain, 301, links=False), free(world, 301))}
        for epsilon in (10.0, 1.0):
            policy = linear_policy("thompson-concurrent-4", SETTING, Privacy(epsilon, 0.1))
            found[f"epsilon {epsilon:g}"] = tuple(private(world, policy, 301, links=each) for each in (False, True))
        lines, links = found["epsilon 1"]
        note = "; ".join(f"{name}: link {_words(link)}, lines {_words(line)}" for name, (line, link) in found.items())
        rows.append(figure(f"{kind}, epsilon 1: link / lines", links.mean() / lines.mean(), ">=", 1, note))
    return rows


def _words(regret: np.ndarray) -> str:
    return f"{regret.mean():.0f} ± {regret.std(ddof=1) / math.sqrt(len(regret)):.0f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer worlds")
    sys.exit(report("Logistic bandits", measured(6 if parser.parse_args().quick else 50)))
