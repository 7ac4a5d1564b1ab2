"""What the tests reported, and what it is worth: report files to cases, cases to a verdict."""

from astra_async.reports.grading import grade, learn, mismatch
from astra_async.reports.reading import read_reports

__all__ = ["grade", "learn", "mismatch", "read_reports"]
