"""A market shows itself in a few lines, and a view never shows what came after it."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from assaymark.market import Snapshot, synthetic_history, synthetic_market
from assaymark.market.snapshot import Origin

HISTORY = synthetic_history(0)


def test_a_history_says_what_it_holds():
    shown = repr(HISTORY)
    assert f"{len(HISTORY.listings)} instruments" in shown
    assert f"{HISTORY.days[0]} to {HISTORY.days[-1]}" in shown
    counts = [int(n) for n in re.findall(r"^(?:equity|bond|commodity|crypto|real_estate|cash) +(\d+)$", shown, re.M)]
    assert sum(counts) == len(HISTORY.listings)
    assert "<table>" in HISTORY._repr_html_()
    assert repr(synthetic_market(0)).startswith("Synthetic market, seed 0\n")


def test_a_snapshot_says_where_it_is_from():
    bad = "<script>alert(1)</script>"
    origin = Origin(source=bad, retrieved_at=datetime(2026, 1, 1, tzinfo=UTC), licence=bad, notes=(bad,))
    shown = Snapshot(bad, origin)._repr_html_()
    assert "<script>" not in shown
    assert shown.count("&lt;script&gt;") == 4
    assert "bars" in repr(Snapshot("empty", origin))


@pytest.mark.parametrize("day", ["2014-12-31", "2015-01-02", "2020-03-07", "2025-12-31"])
def test_a_view_shows_only_what_was_known(day):
    t = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)
    view = HISTORY.as_of(t)
    shown = repr(view)
    assert shown.startswith(f"As of {day} 12:00 UTC, knowing nothing later\n")
    assert f"{len(view.held())} instruments" in shown
    later = [found for found in re.findall(r"\d{4}-\d{2}-\d{2}", shown) if found > day]
    assert later == []
    view._repr_html_()
