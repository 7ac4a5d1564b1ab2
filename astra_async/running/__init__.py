"""Run a benchmark: one sample (`sample`), all samples (`runner`), the run directory (`directory`).

The package is not named `run` because `astra_async.run` is a public function.
"""
