"""Planted shares come back where the tasks differ, and where the two calls of a pair always agree."""

from __future__ import annotations

import numpy as np
import pytest

RUNS = 200
P = "prompt=tie-allowed"


@pytest.mark.parametrize(("tasks", "alike"), [(10, 8.0), (6, 20.0), (30, 8.0)])
def test_shares_hold_when_tasks_differ(tasks, alike, planted, draw, kept, class_truths, coverage):
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
    missed = {name: found[name] for name in truths if not kept(*found[name], 0.95)}
    assert not missed


def test_wilson_is_too_narrow_where_two_orders_agree(planted, draw, kept, coverage):
    """A judge that decides by text or by slot gives two equal calls a pair: why intervals are over tasks."""
    classes = {"stable": 0.25, "slot 1": 0.25, "slot 2": 0.0, "one-sided": 0.0, "none": 0.5, "other": 0.0, "lost": 0.0}
    judge = planted(classes=classes)
    name = f"delta0.raw[condition=same_subset,{P}]"
    truths = {name: 0.5, f"{name}@wilson": 0.5}
    only = frozenset({"same_subset"})
    runs = (
        (draw(np.random.default_rng([3, seed]), judge, conditions=only), np.random.default_rng(seed))
        for seed in range(RUNS)
    )
    found = coverage(runs, truths)
    assert found[f"{name}@wilson"][0] < 0.9 * RUNS
    assert kept(*found[name], 0.95)
