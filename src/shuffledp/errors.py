"""The one error tree.

ShuffleDPError
├── ParameterError          a value outside what it may be: names parameter, value and way out
│   ├── DataError           the value came from a file, a column or a row of data
│   ├── JobStoppedError     a job that cannot go on for now: nothing was released, and it can be resumed
│   └── InfeasibleError     every value is allowed, but together no plan meets them
├── BatchError              a batch that must not be released or cannot be read
│   ├── TooFewReportsError  fewer reports than the plan's users
│   └── BrokenBatchError    a message was lost or altered on the way
├── ShufflerBusyError       the shuffler has an open batch, or none, or a full one
├── RandomnessError         a stream of random bits would be repeated
└── WorkLostError           tasks of an engine died again and again

Warnings, for what is allowed and hardly meant:

ShuffleDPWarning
├── TooFewPeopleWarning     a model of so few people is likely to be no better than a constant
├── NothingLearnedWarning   a model that cannot be told from noise, as it was published
├── RepeatedFitWarning      rows that were learned from before, without a ledger that is charged for it
├── UncountedBoundsWarning  bounds that are far off, of people who are too few to count it privately
└── FittedScalingWarning    features that look as if they were scaled by what these very people's data are
"""

from typing import Any


class ShuffleDPError(Exception):
    """Whatever this package raises on purpose."""


class ParameterError(ShuffleDPError, ValueError):
    """A parameter outside its range: one sentence with its name, its value and the way out.

    Attributes:
        parameter: its name, as it is passed.
        value: what was passed.
        problem: what is wrong with it, in words that follow the name.
        way_out: what to do.

    >>> raise ParameterError("epsilon", -1, "must be > 0", "1 is a common choice")
    Traceback (most recent call last):
        ...
    shuffledp.errors.ParameterError: epsilon must be > 0, got -1: 1 is a common choice.
    """

    def __init__(self, parameter: str, value: Any, problem: str, way_out: str) -> None:
        self.parameter = parameter
        self.value = value
        self.problem = problem
        self.way_out = way_out
        super().__init__(f"{parameter} {problem}, got {value}: {way_out}.")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.parameter, self.value, self.problem, self.way_out)


class DataError(ParameterError):
    """A file, a column or a row that cannot be used."""


class JobStoppedError(ParameterError):
    """A job that cannot go on for now, as where the disk is full: nothing was released, and it can be resumed."""


class InfeasibleError(ParameterError):
    """No plan meets these limits together."""


class BatchError(ShuffleDPError):
    """A batch that must not be released or cannot be read."""


class TooFewReportsError(BatchError):
    """Fewer reports than the plan's users: too little noise to protect anybody.

    Attributes:
        needed: how many reports the plan has.
        present: how many there are.
        way_out: what to do, where it is more than to wait for those who are missing.

    >>> raise TooFewReportsError(3, 2)
    Traceback (most recent call last):
        ...
    shuffledp.errors.TooFewReportsError: reports must be 3, got 2: wait for the missing 1; a smaller batch would ...
    """

    def __init__(self, needed: int, present: int, way_out: str | None = None) -> None:
        self.needed = needed
        self.present = present
        self.way_out = way_out
        wait = f"wait for the missing {needed - present}; a smaller batch would carry too little noise"
        super().__init__(f"reports must be {needed}, got {present}: {wait if way_out is None else way_out}.")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.needed, self.present, self.way_out)


class BrokenBatchError(BatchError):
    """A message was lost or altered: the batch says nothing and is void."""


class ShufflerBusyError(ShuffleDPError):
    """A shuffler holds at most one open batch, and takes reports only while it holds one."""


class RandomnessError(ShuffleDPError):
    """Something would have repeated a stream of random bits."""


class WorkLostError(ShuffleDPError):
    """Processes that did an engine's tasks ended again and again: nothing was released."""


class ShuffleDPWarning(UserWarning):
    """Whatever this package warns of."""


class TooFewPeopleWarning(ShuffleDPWarning):
    """A model of so few people is likely to be no better than a constant: nothing has been spent yet."""


class NothingLearnedWarning(ShuffleDPWarning):
    """A fitted model whose weights, as published, are no longer than noise alone makes them."""


class RepeatedFitWarning(ShuffleDPWarning):
    """Rows that were learned from before in this process: what they pay adds up, and no ledger was charged for it."""


class UncountedBoundsWarning(ShuffleDPWarning):
    """Declared bounds that cut off more than a tenth, where nothing counts it, or that hardly any feature uses."""


class FittedScalingWarning(ShuffleDPWarning):
    """Features that look as if they were scaled by a mean or range of these very people, which no guarantee covers."""
