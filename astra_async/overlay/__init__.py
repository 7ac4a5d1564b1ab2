"""A solution laid over the pristine project: what it may change, what it changed, and the archive of it.

`path_policy` is made once for a problem; `anchored`, `integrate` and `project_archive` run for each answer.

    policy                         the questions that a path is asked, one after the other
    paths, test_names              can it lie there; is it a test
    tools, configuration           which tools are at hand, and which files those read by name
    lookups                        what a new file would be loaded in place of, and what an image holds
    merge, merged_files            the answer laid over; .env and other files in part
    changed_lines, suspicions      what it changed, and what that looks like
    replaceable                    which tests are known to nobody, so that an answer could replace them
    upload_archive                 the whole as a tar
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
