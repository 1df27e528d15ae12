"""The market page shows what the code computes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

PAGE_MAKER = Path(__file__).resolve().parents[2] / "docs" / "market_table.py"


def test_the_calibration_table_is_the_computed_one():
    spec = importlib.util.spec_from_file_location("market_table", PAGE_MAKER)
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    page = maker.PAGE.read_text(encoding="utf-8")
    assert maker.with_table(page) == page
