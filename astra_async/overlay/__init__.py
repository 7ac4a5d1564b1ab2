"""Apply a solution to the pristine project: path rules, merged files, detected changes and the final archive.

`path_policy` runs once for each problem; `anchored`, `integrate` and `project_archive` run for each answer.

    policy          rules for the paths of an answer
    paths           normalization and validation of paths
    tools           build tools and test runners of the problem
    configuration   files that those tools read by name
    merge           applies an answer to the project
    merged_files    .env and other files that are merged line by line; the archive
    suspicions      static screen for code that manipulates its tests; tests that an answer could replace
"""

from astra_async.overlay.configuration import Installed
from astra_async.overlay.merge import integrate
from astra_async.overlay.merged_files import project_archive
from astra_async.overlay.paths import PATH_REPAIRS, anchored
from astra_async.overlay.policy import REFUSALS, PathPolicy, path_policy
from astra_async.overlay.suspicions import replaceable_tests

__all__ = [
    "PATH_REPAIRS",
    "REFUSALS",
    "Installed",
    "PathPolicy",
    "anchored",
    "integrate",
    "path_policy",
    "project_archive",
    "replaceable_tests",
]
