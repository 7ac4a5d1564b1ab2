"""Load the problems CSV, select problems, and fetch project files.

problems_csv, columns, cells             parse the CSV: the file, its columns, one cell
manifest/, patterns                      parse hackerrank.yml, and the path patterns of CSV and manifest
sources, collect, fetched_folder         open a remote problem set, or fetch it into a folder
fetch/                                   download and unpack project files, which are never trusted
"""

from astra_async.problems.manifest import complete, weighted
from astra_async.problems.problems_csv import ProblemSet, load_problems, passes, select

__all__ = ["ProblemSet", "complete", "load_problems", "passes", "select", "weighted"]
