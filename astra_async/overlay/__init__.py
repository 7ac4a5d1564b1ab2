"""A solution laid over the pristine project: what it may change, what it changed, and the archive of it.

`path_policy` is made once for a problem; `anchored`, `integrate` and `project_archive` run for each answer.
"""

from astra_async.overlay.installed import Installed
from astra_async.overlay.merge import integrate
from astra_async.overlay.paths import PATH_REPAIRS, anchored
from astra_async.overlay.policy import REFUSALS, PathPolicy, path_policy
from astra_async.overlay.upload_archive import project_archive

__all__ = [
    "PATH_REPAIRS",
    "REFUSALS",
    "Installed",
    "PathPolicy",
    "anchored",
    "integrate",
    "path_policy",
    "project_archive",
]
