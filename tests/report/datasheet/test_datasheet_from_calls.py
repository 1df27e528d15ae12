"""From calls through their measurements to the page: the names that the page reads are those that are measured."""

from __future__ import annotations

import numpy as np
from judged_sheets import prose

from assaymark.metrology.datasheet import datasheet_of
from assaymark.records import PairCall
from assaymark.report import render_datasheet


def answered(conditions):
    """Calls in both orders from (condition, delta, verdicts in uv and vu, how many pairs)."""
    for kind, (condition, delta, verdicts, pairs) in enumerate(conditions):
        for k in range(pairs):
            for order, verdict in zip(("uv", "vu"), verdicts, strict=True):
                yield PairCall(
                    pair=f"{kind}-{k}",
                    condition=condition,
                    task=f"t{k % 6}",
                    order=order,
                    verdict=verdict,
                    judge="made",
                    delta=delta,
                    better="u" if delta else None,
                    variant="empty" if condition == "vacuum" else "",
                )


def test_measured_calls_reach_the_page_under_the_names_it_reads():
    calls = list(
        answered(
            [
                ("vacuum", 0.0, ("1", "tie"), 5),
                ("vacuum", 0.0, ("tie", "tie"), 25),
                ("same_subset", 0.0, ("1", "1"), 12),
                ("same_subset", 0.0, ("1", "2"), 3),
                ("same_subset", 0.0, ("tie", "2"), 6),
                ("same_subset", 0.0, ("tie", "tie"), 9),
                ("ladder", 1.0, ("1", "tie"), 6),
                ("ladder", 2.0, ("1", "2"), 12),
                ("ladder", 3.0, ("1", "2"), 12),
            ]
        )
    )
    sheet = datasheet_of(calls, rng=np.random.default_rng(1))
    text = prose(render_datasheet(sheet)["datasheet/made.html"])
    for said in (
        "it still chose in 5 of 60 calls.",
        "Between equal texts it preferred one in 36 of 60 calls, mostly for where it stood",
        "(pairs: 12 by place, 3 by text, 6 in one order only)",
        "It noticed one missing requirement in 6 of 12 calls.",
        "In calls: 6 + 24 + 6 + 0 = 36 of 60.",
        "is 12 of 15 (0.80); it hides the 6 pairs",
        "Where one slot won in both orders, it was slot 1 in 12 of 12 pairs.",
        "at a difference of 1.50 requirements",
        "The criterion shift is not measured: strict arm was not run.",
        "vacuum: nearly clean",
    ):
        assert said in text
