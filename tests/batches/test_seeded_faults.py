"""Drawn faults and kills, in batches and online: every sample is recorded once, and its answer is paid once.

ASTRA_FAULT_SEEDS is the number of draws of each test; scripts/long sets it to 100.
"""

from __future__ import annotations

import os
import random
import signal
from typing import TYPE_CHECKING

import pytest
from batch_runs import ANSWERS, LOG, MODELS, PLANNED, BatchRun, simulated_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.first(seed=lambda seed: seed % 4)]

SEEDS = range(int(os.environ.get("ASTRA_FAULT_SEEDS", "4")))
# Faults after which the provider still delivers what was paid.
BATCH_FAULTS = ("lost_before", "lost_create", "duplicates", "tries", "late", "cut", "unknown", "failing")
# Faults before the first token, which cost nothing.
ONLINE_FAULTS = ("rate_limit", "server_error", "unavailable", "overloaded")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_batch_is_paid_once_whatever_happens_to_it(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    spec = rng.choice(list(MODELS))
    faults = tuple(rng.choices(BATCH_FAULTS, k=rng.randint(1, 3)))
    kills = [(rng.choice((LOG, ANSWERS)), rng.choice(("before", "after")), str(rng.randint(1, 5)))
             for _ in range(rng.randint(0, 3))]  # fmt: skip
    with simulated_for(spec, batch_faults=faults) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec)
        for kill in kills:
            killed = run.start(*kill)
            _, said = killed.communicate()
            assert killed.returncode in {0, -signal.SIGKILL}, (spec, faults, kills, said)
        run.finish()
        assert (server.processed, len(run.keys()), len(set(run.keys()))) == (PLANNED, PLANNED, PLANNED), (
            spec,
            faults,
            kills,
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_an_online_answer_is_paid_once_unless_a_kill_cuts_it(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    spec = rng.choice([each for each in MODELS if not each.startswith("bedrock")])
    kinds = tuple(rng.sample(ONLINE_FAULTS, k=rng.randint(1, len(ONLINE_FAULTS))))
    moment, number = rng.choice(("before", "after")), rng.randint(1, PLANNED)
    with simulated_for(spec, fault_rate=0.4, fault_kinds=kinds) as server:
        settings = {"max_in_flight": 1}  # a kill cuts one request at most
        run = BatchRun(
            folder=tmp_path, server=server, spec=spec, settings=settings, options=("--generate-only",)
        )
        killed = run.start(ANSWERS, moment, str(number))
        _, said = killed.communicate()
        assert killed.returncode == -signal.SIGKILL, (spec, kinds, said)
        run.finish()
        assert len(run.keys()) == len(set(run.keys())) == PLANNED
        paid = server.server.counters.answered
        assert paid <= PLANNED + 1, (spec, kinds, moment, number)
