"""A run for other tools: pandas frames, and files that other programs open.

frames      `astra_async.load` and `astra_async.compare`: a run as typed tables
"""
