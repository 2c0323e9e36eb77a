"""All linear bandits by the names they have in JSON and on the command line."""

import re
from collections.abc import Callable
from dataclasses import replace

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.concurrent import ConcurrentLinUCB, Noise
from shuffledp.learn.bandits.linear.policy import LinearPolicy
from shuffledp.learn.bandits.linear.setting import LinearSetting, check_setting, check_visits
from shuffledp.learn.bandits.linear.shuffle_vec import ShuffleVecLinUCB
from shuffledp.learn.spec import check_privacy
from shuffledp.privacy import Privacy
from shuffledp.references.bandits.buffered import BufferedLinUCB
from shuffledp.references.bandits.curator import SquareRootLinUCB, TreeLinUCB
from shuffledp.references.bandits.linucb import LinUCB
from shuffledp.references.bandits.local import AmplifiedLinUCB, LocalLinUCB

# A maker takes a setting and a privacy; users of a batch and visits of a user are named for all, and used by some.
_MAKERS: dict[str, Callable[..., LinearPolicy]] = {
    "linucb": lambda setting, privacy, **_: LinUCB(setting=setting),
    "jdp-buffers": lambda setting, privacy, visits, **_: BufferedLinUCB.planned(setting, privacy, visits=visits),
    "jdp-sqrt": lambda setting, privacy, visits, **_: SquareRootLinUCB.planned(setting, privacy, visits=visits),
    "jdp-tree": lambda setting, privacy, visits, **_: TreeLinUCB(setting=setting, privacy=privacy, visits=visits),
    "concurrent-4": lambda setting, privacy, visits, **_: ConcurrentLinUCB.planned(setting, privacy, visits=visits),
    "shuffle-vec": lambda setting, privacy, **asked: ShuffleVecLinUCB.planned(setting, privacy, **asked),
    "shuffle-amp": lambda setting, privacy, **asked: AmplifiedLinUCB(setting=setting, privacy=privacy, **asked),
    "ldp": lambda setting, privacy, **asked: LocalLinUCB(setting=setting, privacy=privacy, **asked),
}

POLICIES = ("linucb", "thompson", *(name for name in _MAKERS if name != "linucb"), "thompson-concurrent-4")
"""Any number of shufflers may follow `concurrent-`, or `independent-` and `carried-`, and `thompson-` any of them."""

_NOISES: dict[str, Noise] = {"concurrent": "auto", "carried": "carried", "independent": "independent"}


def linear_policy(
    name: str, setting: LinearSetting, privacy: Privacy, *, batch: int = 20, visits: int = 1
) -> LinearPolicy:
    """The linear policy of a name.

    Args:
        name: one of `POLICIES`, or "concurrent-", "carried-" or "independent-" and a number of shufflers: the first
            takes whichever noise of the other two has the smaller regret bound. After "thompson-" it is the same
            policy, with the same releases and noise, but users choose by theta that they draw.
        setting: users, features, rewards and confidence.
        privacy: what every user is promised in all visits together; unused by "linucb".
        batch: users of a batch of shuffle-vec and shuffle-amp, and after how many ldp updates its model.
        visits: how often one user may come.

    Returns:
        The policy, which every runner and, where it shuffles, the live service takes.

    Raises:
        ParameterError: no policy has this name.
        InfeasibleError: too few users to learn anything from.

    >>> linear_policy("concurrent-2", LinearSetting(users=5000, dimension=3), Privacy(1, 0.1)).name
    'concurrent-2'
    """
    check_setting("setting", setting)
    check_privacy("privacy", privacy)
    visits = check_visits("visits", visits)
    if str(name).startswith("thompson"):
        of = str(name).removeprefix("thompson").removeprefix("-") or "linucb"
        if not of.startswith("thompson"):
            return replace(linear_policy(of, setting, privacy, batch=batch, visits=visits), choice="posterior")
    if str(name) in _MAKERS:
        return _MAKERS[str(name)](setting, privacy, batch=batch, visits=visits)
    several = re.fullmatch(r"(concurrent|carried|independent)-([1-9]\d?)", str(name))
    if several is None:
        raise ParameterError("policy", name, f"must be one of {', '.join(POLICIES)}", "or concurrent-2, -3, ...")
    noise, shufflers = _NOISES[several[1]], int(several[2])
    return ConcurrentLinUCB.planned(setting, privacy, shufflers=shufflers, visits=visits, noise=noise)
