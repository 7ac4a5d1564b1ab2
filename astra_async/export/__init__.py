"""Exports of a run: pandas frames, and files for other programs.

loaded           `astra_async.load` and `astra_async.compare`: a run as pandas frames
frames           construction of these frames
lines            iteration over result lines and answers
inspect_log      logs for inspect_ai's viewer and data frames
parquet          Parquet files in the layout of the Hugging Face hub
every_eval_ever  records for every_eval_ever
atif             trajectories of agents
junit            JUnit XML for continuous integration
"""
