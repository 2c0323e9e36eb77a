"""What devices compute, by name: the functions that a device runs on its own data, and simulations as well.

A learner's cohort says a step and its parameters as data (`shuffledp.protocols.learner.DeviceStep`); what a step makes
of a device's own data is a value of the cohort's plan.

| step | own data | value |
|---|---|---|
| `report` | the value | the value itself |
| `pull` | a function from an arm to the reward of pulling it | the reward as a bit whose mean it is |
| `choose` | features of the arms on offer, and a function from chosen arms to rewards | the joint vector |
| `gradient` | the user's row of data | the gradient of a named loss, clipped |
| `moments` | the user's row of data | products of all pairs of its features, clipped |

Own data may be of many users alike, an entry or a row a user: then so is the value.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.models import linear_model_from
from shuffledp.learn.bandits.linear.observations import Floats, JointVectors
from shuffledp.learn.bandits.linear.posterior import standard_normals
from shuffledp.learn.bandits.rewards import reward_bits
from shuffledp.learn.optimize.losses import gradient_of, moments_of
from shuffledp.learn.optimize.named_losses import loss_from
from shuffledp.protocols.learner import DeviceStep
from shuffledp.randomness import RandomBits

Parameters = Mapping[str, Any]


def _report(parameters: Parameters, own: Any, bits: RandomBits) -> Any:
    return own


def _pull(parameters: Parameters, own: Callable[[int], Any], bits: RandomBits) -> Any:
    return reward_bits(np.atleast_1d(own(parameters["arm"])), bits=bits)


def _choose(parameters: Parameters, own: tuple[Floats, Callable[[Any], Any]], bits: RandomBits) -> Floats:
    """The model chooses among the arms on offer, (users, arms, dimension); features and reward become one vector.

    Where the model is a law of theta, every device draws its own from its own bits: users of one slot explore
    differently, and nobody else knows what was drawn.
    """
    offered, reward = own
    chosen = chosen_arms(parameters, offered, bits=bits)
    features = np.take_along_axis(offered, chosen[:, np.newaxis, np.newaxis], axis=1)[:, 0]
    return joint_vectors(parameters, features, reward(chosen))


def chosen_arms(parameters: Parameters, offered: Floats, *, bits: RandomBits) -> NDArray[np.intp]:
    """The first half of the step `choose`: which of the arms on offer, (users, arms, dimension), each user takes.

    Args:
        parameters: the step's.
        offered: features of the arms.
        bits: where a theta that each user draws comes from.
    """
    model = linear_model_from(parameters["model"])
    return model.choose_each(offered, standard_normals((len(offered), model.draws), bits=bits))


def joint_vectors(parameters: Parameters, features: Any, rewards: Any) -> Floats:
    """The second half of the step `choose`: what users send of the features that they chose and of their rewards.

    Raises:
        DataError: features of another dimension, longer than 1 or not finite, or rewards outside their range.
    """
    joint = JointVectors(**parameters["joint"])
    return joint.pack(*joint.check(features, rewards))


def _gradient(parameters: Parameters, own: tuple[Any, ...], bits: RandomBits) -> Floats:
    loss = loss_from(parameters["loss"])
    return gradient_of(loss, parameters, *loss.check_rows(len(parameters["point"]), *own))[0]


def _moments(parameters: Parameters, own: tuple[Any, ...], bits: RandomBits) -> Floats:
    loss = loss_from(parameters["loss"])
    return moments_of(loss, parameters, *loss.check_rows(parameters["dimension"], *own))[0]


STEPS: dict[str, Callable[[Parameters, Any, RandomBits], Any]] = {
    "report": _report,
    "pull": _pull,
    "choose": _choose,
    "gradient": _gradient,
    "moments": _moments,
}


def compute(step: DeviceStep, own: Any, *, bits: RandomBits) -> Any:
    """What a device sends through its plan.

    Args:
        step: what the learner asked for.
        own: the device's own data, as the step takes them.
        bits: where a device's own rounding comes from.

    Returns:
        A value for the cohort's plan, with an entry or a row a user.

    Raises:
        ParameterError: no step has this name.

    >>> compute(DeviceStep("pull", {"arm": 1}), [0.0, 1.0].__getitem__, bits=RandomBits.seeded(1)).tolist()
    [1]
    """
    if step.name not in STEPS:
        raise ParameterError("step", step.name, f"must be one of {', '.join(STEPS)}", "update the device")
    return STEPS[step.name](step.parameters, own, bits)
