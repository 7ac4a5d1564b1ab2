"""Batch interfaces of the simulated server: files, batches and their states."""
