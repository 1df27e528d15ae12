"""The page of what came out of the real logs: its numbers are those of the audit, with every fill that is off."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assaymark.importers import audit_aitrader
from assaymark.portfolio.broker import RELIABILITY

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "aitrader.md").read_text(encoding="utf-8")


def section(title: str, level: int = 2) -> str:
    """The part of the page under one heading."""
    found = re.search(rf"(?ms)^{'#' * level} {re.escape(title)}.*?(?=^#{{1,{level}}} |\Z)", PAGE)
    assert found is not None, title
    return found[0]


def test_a_total_is_printed_only_where_its_claim_stands():
    row = r"(?m)^\| \S+ \| (?:none|\d+ to \d+) \| ([^|]+) \| ([\w-]+): "
    rows = re.findall(row, section("The grades"))
    assert len(rows) == 26
    ranges = re.compile(r"[\d.]+ to [\d.]+")
    assert [total for total, level in rows if level == "no-claim" and not ranges.fullmatch(total)] == []


@pytest.mark.shared
def test_books_and_checks_are_those_of_the_audit(shared):
    files = {path.name: path.read_bytes() for path in (shared / "data" / "aitrader").iterdir()}
    audits = audit_aitrader(files)
    fills = []
    for audit in audits:
        found = audit.reconciliation
        row = next(one for one in section(f"{audit.track}: ", 3).splitlines() if one.startswith(f"| {audit.agent} |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[1] == f"{audit.last_nav:,.2f}"
        assert cells[2].replace("−", "-") == f"{100 * (audit.last_nav / audit.capital - 1):+.1f} %"
        assert cells[5:8] == [f"{found.passed[kind]:,} of {found.checks[kind]:,}" for kind in RELIABILITY]
        assert cells[8] == f"{found.data_reliability:.1f}"
        fills += [one for one in found.mismatches if one.kind.startswith("fill")]
    listed = re.findall(r"(?m)^\| `(\S+)` \| (.*) \|$", section("What does not follow"))
    assert sorted(listed) == sorted((one.step, str(one).removeprefix(f"{one.step}: ")) for one in fills)
    assert len(listed) == 22
