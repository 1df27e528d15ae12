"""The real AI-Trader logs: what is known of them must come out of the import, the audit, the season and the page."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from assaymark.importers import IMPORTERS, Imported, audit_aitrader, season_aitrader
from assaymark.importers.aitrader import TRACKS, company_names
from assaymark.portfolio import broker

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "aitrader.md").read_text(encoding="utf-8")
# track: (agents, steps, bars with all four prices, bars with an open only)
SHAPE = {
    "us": (6, 348, 17_473, 101), "cn-hourly": (7, 840, 5_950, 50), "cn-daily": (7, 210, 1_450, 50),
    "crypto": (6, 84, 3_550, 10),
}  # fmt: skip
# track: (passed, made) of fill, cash and position checks
CHECKS = {
    "us": ((418, 427), (253, 348), (2_641, 2_726)), "cn-hourly": ((3_084, 3_084), (840, 840), (4_454, 4_454)),
    "cn-daily": ((843, 843), (208, 208), (1_550, 1_550)), "crypto": ((177, 190), (77, 84), (393, 403)),
}  # fmt: skip
NAVS = {
    ("us", "MiniMax-M2"): 10_932.44, ("us", "claude-3.7-sonnet"): 10_272.48, ("us", "deepseek-chat-v3.1"): 10_801.90,
    ("us", "gemini-2.5-flash"): 9_980.86, ("us", "gpt-5"): 10_095.77, ("us", "qwen3-max"): 9_988.07,
    ("cn-hourly", "gpt-5"): 106_351.00, ("cn-hourly", "deepseek-chat-v3.1"): 106_506.00,
    ("cn-daily", "glm-4.6"): 104_090.00, ("cn-daily", "gpt-5"): 94_977.00,
    ("crypto", "deepseek-chat-v3.1"): 43_413.58, ("crypto", "gemini-2.5-flash"): 40_175.38,
}  # fmt: skip


@pytest.fixture(scope="module")
def files(shared) -> dict[str, bytes]:
    folder = shared / "data" / "aitrader"
    return {name: (folder / name).read_bytes() for name in IMPORTERS["aitrader"].files(folder)}


@pytest.fixture(scope="module")
def result(files) -> Imported:
    return IMPORTERS["aitrader"].read(files)


@pytest.fixture(scope="module")
def audits(files):
    return audit_aitrader(files)


@pytest.fixture(scope="module")
def lines(files) -> list[dict]:
    return [json.loads(line) for line in gzip.decompress(files["decisions.jsonl.gz"]).splitlines()]


@pytest.fixture(scope="module")
def bars(files) -> dict[str, list[dict[str, str]]]:
    texts = {name: gzip.decompress(files[f"{track.prices}.gz"]).decode() for name, track in TRACKS.items()}
    return {name: list(csv.DictReader(io.StringIO(text))) for name, text in texts.items()}


@pytest.mark.shared
def test_the_counts_and_flags(result, bars):
    report = result.report
    assert (report.good, report.bad, report.problems, report.never_met) == (1482, 0, (), ())
    assert (report.counts["agents"], report.counts["clusters"]) == (7, 8)
    for name, rows in bars.items():
        track = TRACKS[name].name
        agents = {one.agent.id for one in result.decisions if one.episode_id == track}
        found = Counter(bool(row["close"]) for row in rows)
        assert (len(agents), report.formats[track], found[True], found[False]) == SHAPE[track]
    assert dict(report.flags) == {
        "cash-mismatch": 102, "fill-mismatch": 14, "no-finish-signal": 29, "position-mismatch": 84, "replayed": 1015,
        "think-block": 142, "tool-output": 3,
    }  # fmt: skip
    assert {one.agent.id for one in result.decisions if "think-block" in one.flags} == {"MiniMax-M2"}
    assert (len(report.no_text), report.missing["positions after"].count) == (34, 2)
    # one step has one decision of each agent at most
    assert max(Counter((one.cycle, one.agent.id) for one in result.decisions).values()) == 1
    horizons = Counter(one.horizon for one in result.outcomes)
    assert horizons == {"to the agent's next step": 1454, "whole log": 26}
    assert all(one.benchmark is not None for one in result.outcomes)
    for one in result.decisions:  # nothing in a context is later than its decision
        seen = result.contexts[one.context_id]
        assert seen.completeness == "partial"
        assert all(fact.available_at <= one.decided_at for fact in seen.facts)
        assert all(series.times[-1] <= one.decided_at for series in seen.series)


@pytest.mark.shared
def test_the_checks_by_track_and_the_mismatches(audits):
    for track, expected in CHECKS.items():
        of = [one.reconciliation for one in audits if one.track == track]
        for kind, counts in zip(("fill", "cash", "position"), expected, strict=True):
            assert (sum(one.passed[kind] for one in of), sum(one.checks[kind] for one in of)) == counts, (track, kind)
    found = [(audit.track, one) for audit in audits for one in audit.reconciliation.mismatches]
    kinds = Counter(one.kind for _, one in found)
    assert kinds == {"cash": 102, "fill-price": 4, "fill-quantity": 18, "position": 95}
    where = Counter(one.where for _, one in found if one.kind == "cash")
    assert where == {"outside the bar": 60, "inside the bar": 42}
    # until 29 October the American book has one step a day, stamped 15:00; most of its mismatches are there
    cash = [one.step < "us/2025-10-30" for track, one in found if (track, one.kind) == ("us", "cash")]
    assert (sum(cash), len(cash)) == (77, 95)
    assert sum(record < "us/2025-10-30" for a in audits if a.track == "us" for record in a.records) == 121
    # the books of crypto break on two days only
    days = Counter(one.step.split("/")[1] for track, one in found if track == "crypto")
    assert days == {"2025-11-09": 13, "2025-11-10": 17}
    navs = {(one.track, one.agent): one.last_nav for one in audits}
    assert {key: round(navs[key], 2) for key in NAVS} == NAVS


@pytest.mark.shared
def test_navs_against_a_sum_by_hand(audits, lines, bars):
    """Position by position, straight from the files."""
    opens = {(name, row["symbol"], row["ts"]): float(row["open"]) for name, rows in bars.items() for row in rows}
    expected = []
    for one in lines:
        after = dict(one["positions_after"] or {})
        if after:
            total = after.pop("CASH")
            for symbol, units in after.items():
                total += units * opens[one["track"], symbol, one["step"]]
            expected.append(total)
    found = [nav for one in audits for nav in one.reconciliation.navs if nav is not None]
    assert len(found) == len(expected) == 1480
    assert sorted(found) == pytest.approx(sorted(expected), abs=1e-3)


@pytest.mark.shared
def test_the_words_of_every_step_are_kept_and_companies_have_their_names(result, lines):
    """Marks aside, what was written is what is stored."""
    marks = re.compile(r"</?FINISH_SIGNAL>|</?think>|\s+")
    bare = sum(len(marks.sub("", one["rationale"] or "")) for one in lines)
    kept = sum(len("".join(text.text.split())) for one in result.decisions for text in one.rationales)
    assert 0 <= bare - kept <= 3 * len("Toolresults:")
    names = company_names(one["rationale"] for one in lines)
    assert (len(names), names["600519.SH"], names["601318.SH"]) == (49, "贵州茅台", "中国平安")


@pytest.mark.shared
def test_the_last_books_and_all_checks_of_a_season_are_those_of_the_audit(files, audits):
    for track in ("cn-daily", "crypto"):
        found = season_aitrader(files, track)
        last = {agent: nav for _, agent, _, _, nav, *_ in found.books}
        checks = {row[:2]: row[2:] for row in found.checks}
        for audit in (one for one in audits if one.track == track):
            known = audit.reconciliation
            assert last[audit.agent] == pytest.approx(audit.last_nav, rel=1e-12)
            told = [line for kind in broker.RELIABILITY for line in checks[audit.agent, kind][2]]
            assert len(told) == len(known.mismatches)
            for kind in broker.RELIABILITY:
                assert checks[audit.agent, kind][:2] == (known.checks[kind], known.passed[kind])
        states = [state for _, _, state, *_ in found.books]
        assert set(states) <= {"ok", "not stated"}
        assert sum(state != "ok" for state in states) == (2 if track == "cn-daily" else 0)


def section(title: str, level: int = 2) -> str:
    """The part of the page under one heading."""
    found = re.search(rf"(?ms)^{'#' * level} {re.escape(title)}.*?(?=^#{{1,{level}}} |\Z)", PAGE)
    assert found is not None, title
    return found[0]


def test_a_total_is_printed_only_where_its_claim_stands():
    rows = re.findall(r"(?:not ranked|rank \d+ to \d+); ([^|;]+); ([\w-]+): ", section("The grades"))
    assert len(rows) == 26
    ranges = re.compile(r"[\d.]+ to [\d.]+")
    assert [total for total, level in rows if level == "no-claim" and not ranges.fullmatch(total)] == []


@pytest.mark.shared
def test_books_and_checks_of_the_page_are_those_of_the_audit(audits):
    fills = []
    for audit in audits:
        found = audit.reconciliation
        row = next(one for one in section(f"{audit.track}: ", 3).splitlines() if one.startswith(f"| {audit.agent} |"))
        cells = [cell.strip().replace("−", "-") for cell in row.strip("|").split("|")]
        assert cells[1:3] == [f"{audit.last_nav:,.2f}", f"{100 * (audit.last_nav / audit.capital - 1):+.1f} %"]
        assert cells[5:8] == [f"{found.passed[kind]:,} of {found.checks[kind]:,}" for kind in broker.RELIABILITY]
        assert cells[8] == f"{found.data_reliability:.1f}"
        fills += [one for one in found.mismatches if one.kind.startswith("fill")]
    listed = re.findall(r"(?m)^\| `(\S+)` \| (.*) \|$", section("What does not follow"))
    assert sorted(listed) == sorted((one.step, str(one).removeprefix(f"{one.step}: ")) for one in fills)
    assert len(listed) == 22
