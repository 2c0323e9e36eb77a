"""Shuffle private convex optimization: learn a model from people who send a few shuffled messages.

A loss and a set make a `Problem`, which knows users, constants and limits but no data. `plan` turns it into a `Solver`:
stages of rounds with fixed cohorts, steps and noise, a proved `bound` and a `guarantee()` from the accountant.
`predicted_bounds` compares all solvers by what is proved, `choosing.rehearsals` by what they do on synthetic people. A
solver asks and is told; `shuffledp.simulation.optimize.optimize` does that for data in memory, by the estimates' law,
message by message, or without noise (the solver's twin).

>>> from shuffledp import Privacy
>>> loss, ball = LogisticLoss(feature_bound=1.0, ridge=0.0), L2Ball(dimension=10, radius=3.0)
>>> problem = Problem.of(loss, ball, users=50_000, privacy=Privacy(1, 1e-6), visits=1)
>>> solver = plan(problem, solver="agd")  # plan(problem) rehearses all that can take it, and takes the best
>>> solver.name, solver.rounds, solver.stages[0].users
('agd', 46, 1086)
>>> guarantee = solver.guarantee()
>>> guarantee.model, guarantee.rounds_per_user, guarantee.messages_per_user, guarantee.holds
('shuffle', 1, 150, True)

Which solver for which loss, all in docs/theory/001-convex-optimization.md:

| solver | users are asked | loss |
|---|---|---|
| `sgd` (P_SGD) | once | convex |
| `agd` (P_AGD) | once | smooth |
| `smoothed-agd` | once | not smooth, with a proximal map |
| `phased-agd`, `phased-smoothed-agd` | once | strongly convex |
| `gd` (P_GD), `phased-gd` | in every round of a stage | smooth or with a proximal map; strongly convex |
| `full-agd` | in every round | of a linear model, smooth or with a proximal map; fewer rounds than `gd` |
| `conditioned` | in every round, first for moments | of a linear model, smooth; fewest rounds, nothing is proved |
| `pan-private-agd` and its kin | by a trusted analyzer, once | as above; see `PanPrivateLearner` |

The loop that a service, a notebook or Spark would run:

>>> state = solver.start()
>>> cohort = solver.ask(state)  # None when done
>>> cohort.first, cohort.users, cohort.clip, cohort.smoothing, cohort.plan.protocol
(0, 1086, 1.0, None, 'vector-sum')
>>> state = solver.tell(state, cohort.users, {1: [0.0] * 10})  # the estimate of the cohort's SUM of clipped gradients
>>> OptimizerState.from_document(state.document()) == state
True

What a user of a cohort sends is what `shuffledp.learn.steps.compute(cohort.step, rows, bits=bits)` makes of its row,
through `cohort.plan`: the step is data (a name, the loss, the point, the longest length), so that a device elsewhere
computes what a simulation does.
"""

from shuffledp.learn.optimize.choosing import METHODS, PredictedBound, plan, predicted_bounds
from shuffledp.learn.optimize.custom_loss import CustomLoss
from shuffledp.learn.optimize.gradient_rounds import GradientRounds, RoundsState
from shuffledp.learn.optimize.guarantee import OptimizationGuarantee
from shuffledp.learn.optimize.intercepts import BallWithIntercepts
from shuffledp.learn.optimize.linear_losses import HingeLoss, HuberLoss, LinearLoss, LogisticLoss, SquaredLoss
from shuffledp.learn.optimize.losses import Loss
from shuffledp.learn.optimize.named_losses import LOSSES, loss_from
from shuffledp.learn.optimize.pan_private import PanPrivateLearner
from shuffledp.learn.optimize.poisson import PoissonLoss
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.refuting import LossCheck, check_loss
from shuffledp.learn.optimize.row_shapes import RowShape
from shuffledp.learn.optimize.sets import Box, ConvexSet, L2Ball, Simplex
from shuffledp.learn.optimize.softmax import SoftmaxLoss
from shuffledp.learn.optimize.solver import GradientCohort, OptimizerState, Solver
from shuffledp.learn.optimize.step_rules import AdamSteps, MomentumSteps, StepRule

__all__ = [
    "LOSSES",
    "METHODS",
    "AdamSteps",
    "BallWithIntercepts",
    "Box",
    "ConvexSet",
    "CustomLoss",
    "GradientCohort",
    "GradientRounds",
    "HingeLoss",
    "HuberLoss",
    "L2Ball",
    "LinearLoss",
    "LogisticLoss",
    "Loss",
    "LossCheck",
    "MomentumSteps",
    "OptimizationGuarantee",
    "OptimizerState",
    "PanPrivateLearner",
    "PoissonLoss",
    "PredictedBound",
    "Problem",
    "RoundsState",
    "RowShape",
    "Simplex",
    "SoftmaxLoss",
    "Solver",
    "SquaredLoss",
    "StepRule",
    "check_loss",
    "loss_from",
    "plan",
    "predicted_bounds",
]
