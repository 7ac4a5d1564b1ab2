"""What the tests reported: report files and output, read as cases."""

from astra_async.testing.reports.report_files import read_reports

__all__ = ["read_reports"]
