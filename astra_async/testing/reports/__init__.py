"""Parse test reports and test output into test cases."""

from astra_async.testing.reports.report_files import read_reports

__all__ = ["read_reports"]
