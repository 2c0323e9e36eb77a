"""Rehearsals: a solver's own stages on a synthetic population, with noise of the variance that its plan has.

Everything is made from the problem and a public seed, so that a rehearsal reads nobody's data and spends nothing.
"""

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.stages import Stage, stepped
from shuffledp.learn.optimize.worlds import Normals, World

Floats = NDArray[np.float64]


def rehearse(problem: Problem, stages: tuple[Stage, ...], noises: tuple[float, ...], world: World, seed: int) -> Floats:
    """The model that these stages make of users drawn from a synthetic population.

    Args:
        problem: users, domain, clipping and ridge.
        stages: planned, or drafts.
        noises: the expected squared length of one round's noise, a stage each.
        world: the population.
        seed: of the users who are drawn and of the noise; public.
    """
    normals = Normals(seed)
    model = problem.domain.centre
    for stage, noise in zip(stages, noises, strict=True):
        deviation = math.sqrt(noise / problem.dimension)
        point = average = model
        counts = world.drawn(stage.users, normals)
        conditioner = stage.conditioner(None, problem.domain)
        for time in range(1, stage.rounds + 1):
            if stage.asks_moments(time):
                moments = world.moments_sum(counts)
                moments += stage.moments_noise * normals.next(moments.size)
                conditioner = stage.conditioner(moments / stage.users, problem.domain)
                continue
            if not stage.repeats and time > 1:
                counts = world.drawn(stage.users, normals)
            asked = stage.query(time, point, average)
            total = world.gradient_sum(asked, problem.lipschitz, stage.smoothing, counts)
            total += deviation * normals.next(problem.dimension)
            point, average = stepped(stage, time, point, average, total / stage.users, problem, conditioner)
        model = average
    return model
