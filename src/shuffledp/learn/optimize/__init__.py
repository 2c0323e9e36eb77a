"""Shuffle private convex optimization."""

from shuffledp.learn.optimize.choosing import METHODS, PredictedBound, plan, predicted_bounds
from shuffledp.learn.optimize.guarantee import OptimizationGuarantee
from shuffledp.learn.optimize.linear_losses import LOSSES, HingeLoss, HuberLoss, LinearLoss, LogisticLoss, SquaredLoss
from shuffledp.learn.optimize.losses import CustomLoss, Loss
from shuffledp.learn.optimize.pan_private import PanPrivateLearner
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.sets import Box, ConvexSet, L2Ball, Simplex
from shuffledp.learn.optimize.solver import GradientCohort, OptimizerState, Solver

__all__ = [
    "LOSSES",
    "METHODS",
    "Box",
    "ConvexSet",
    "CustomLoss",
    "GradientCohort",
    "HingeLoss",
    "HuberLoss",
    "L2Ball",
    "LinearLoss",
    "LogisticLoss",
    "Loss",
    "OptimizationGuarantee",
    "OptimizerState",
    "PanPrivateLearner",
    "PredictedBound",
    "Problem",
    "Simplex",
    "Solver",
    "SquaredLoss",
    "plan",
    "predicted_bounds",
]
