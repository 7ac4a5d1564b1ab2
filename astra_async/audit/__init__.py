"""Audit: re-run solutions against mutated tests, to find solutions that pass whatever a test expects.

An audit never changes a score. Its only output is `audit.jsonl` in the run directory (docs/audit.md).
"""
