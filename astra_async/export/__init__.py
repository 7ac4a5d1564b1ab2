"""A run for other tools: pandas frames, and files that other programs open.

loaded       `astra_async.load` and `astra_async.compare`: a run as typed tables
frames       how those are made
lines        final lines and answers, one after the other
inspect_log  logs for inspect_ai's viewer and frames
parquet      a folder as the Hugging Face hub has it
junit        for continuous integration
"""
