"""The problems CSV: which columns it has, what its rows say, and in which order samples are taken."""

from astra_async.problems.choose import rounds, select
from astra_async.problems.manifest import complete, weighted
from astra_async.problems.problems_csv import ProblemSet, load_problems

__all__ = ["ProblemSet", "complete", "load_problems", "rounds", "select", "weighted"]
