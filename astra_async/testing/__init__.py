"""Grading of changed files: test run, report parsing, counted tests, repeated runs."""
