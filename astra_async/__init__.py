"""Runs benchmarks of language models on multi-file projects (HackerRank-ASTRA style)."""
