"""A solution laid over the pristine project: what it may change, what it changed, and the archive of it.

`path_policy` is made once for a problem; `anchored`, `integrate` and `project_archive` run for each answer.
"""

from astra_async.integration.archive import project_archive
from astra_async.integration.merge import integrate
from astra_async.integration.paths import PATH_REPAIRS, anchored
from astra_async.integration.policy import REFUSALS, PathPolicy, path_policy

__all__ = [
    "PATH_REPAIRS",
    "REFUSALS",
    "PathPolicy",
    "anchored",
    "integrate",
    "path_policy",
    "project_archive",
]
