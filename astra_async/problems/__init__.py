"""The problems CSV: which columns it has, what its rows say, and in which order samples are taken.

problems_csv, columns, cells, csv_rows   a CSV to problems: its file, its columns, a cell, its rows
manifest/, patterns                      hackerrank.yml, and the path patterns of both
choose                                   which problems, and their samples in passes
sources, collect, fetched_folder         sets that lie elsewhere, and the folder that one is fetched into
fetch/                                   project files from anywhere, trusted never
prepare                                  a problem made ready
"""

from astra_async.problems.manifest import complete, weighted
from astra_async.problems.problems_csv import ProblemSet, load_problems, passes, select

__all__ = ["ProblemSet", "complete", "load_problems", "passes", "select", "weighted"]
