"""Planted shares come back where the tasks differ, and where the two calls of a pair always agree."""

from __future__ import annotations

import numpy as np
import pytest

RUNS = 200
P = "prompt=tie-allowed"


@pytest.mark.parametrize(("tasks", "alike"), [(10, 8.0), (6, 20.0), (30, 8.0)])
def test_shares_of_pairs_hold_when_tasks_differ(tasks, alike, planted, draw, in_band, class_truths, coverage):
    """Tasks drawn around the planted shares: few, as many as the protocol has, and many."""
    judge = planted(alike=alike)
    truths = class_truths(judge.classes)
    only = frozenset({"same_subset"})
    runs = (
        (
            draw(
                np.random.default_rng([2, tasks, seed]), judge, tasks=tasks, pairs=max(60, 4 * tasks), conditions=only
            ),
            np.random.default_rng(seed),
        )
        for seed in range(RUNS)
    )
    found = coverage(runs, truths)
    pair_level = [name for name in truths if "slot_1_share" not in name]  # Wilson's, which takes pairs for alike
    missed = {name: found[name] for name in pair_level if not in_band(*found[name], 0.95)}
    assert not missed


def test_wilson_is_too_narrow_where_two_orders_agree(planted, draw, in_band, coverage):
    """A judge that decides by text or by slot gives two equal calls a pair: the reason for ``by_task``."""
    classes = {"stable": 0.25, "slot 1": 0.25, "slot 2": 0.0, "one-sided": 0.0, "none": 0.5, "other": 0.0, "lost": 0.0}
    judge = planted(classes=classes)
    name = f"delta0.raw[condition=same_subset,{P}]"
    truths = {name: 0.5, f"{name}@by_task": 0.5}
    only = frozenset({"same_subset"})
    runs = (
        (draw(np.random.default_rng([3, seed]), judge, conditions=only), np.random.default_rng(seed))
        for seed in range(RUNS)
    )
    found = coverage(runs, truths)
    assert not in_band(*found[name], 0.95)
    assert found[name][0] < 0.9 * RUNS
    assert in_band(*found[f"{name}@by_task"], 0.95)
