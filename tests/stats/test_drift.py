"""A model whose scores change between rounds is noticed, an unchanged one is not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from astra_async.stats.spread import round_drift


def test_the_p_value_is_that_of_a_paired_t_test() -> None:
    scores = np.random.default_rng(1).random((20, 6))
    found = round_drift(scores, 2)
    expected = stats.ttest_rel(scores[:, 2:].mean(axis=1), scores[:, :2].mean(axis=1))
    assert found is not None
    assert found.p == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.difference == pytest.approx(scores[:, 2:].mean() - scores[:, :2].mean())


def test_without_later_samples_or_differences_there_is_no_drift() -> None:
    assert round_drift(np.ones((20, 2)), 2) is None
    assert round_drift(np.ones((20, 4)), 2) is None
    assert round_drift(np.ones((1, 4)), 2) is None


def test_a_model_that_does_not_change_is_called_changed_in_one_percent_of_runs() -> None:
    rng = np.random.default_rng(2)
    runs = 2000
    found = 0
    for _ in range(runs):
        level = rng.random((65, 1))
        drift = round_drift((rng.random((65, 8)) < level).astype(float), 2)
        found += drift is not None and drift.p < 0.01
    assert found / runs == pytest.approx(0.01, abs=0.008)


def test_a_model_that_loses_ten_points_is_noticed() -> None:
    rng = np.random.default_rng(3)
    level = rng.random((65, 1)) * 0.8 + 0.1
    scores = (rng.random((65, 32)) < level - np.where(np.arange(32) < 8, 0, 0.1)).astype(float)
    drift = round_drift(scores, 8)
    assert drift is not None
    assert drift.difference < 0
    assert drift.p < 0.01
