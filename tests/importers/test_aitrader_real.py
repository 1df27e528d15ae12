"""The real AI-Trader logs: what is known of them must come out of the import and the audit."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter

import pytest

from assaymark.importers import IMPORTERS, Imported, audit_aitrader
from assaymark.importers.aitrader import TRACKS, names_in

pytestmark = pytest.mark.shared

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
MISMATCHES = {"cash": 102, "fill-price": 4, "fill-quantity": 18, "position": 95}
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


def test_the_counts_and_flags(result):
    report = result.report
    assert (report.good, report.bad, report.problems, report.never_met) == (1482, 0, (), ())
    assert (report.counts["agents"], report.counts["clusters"]) == (7, 8)
    assert report.formats == {track: steps for track, (_, steps, _, _) in SHAPE.items()}
    for track, (agents, _, _, _) in SHAPE.items():
        assert len({one.agent.id for one in result.decisions if one.episode_id == track}) == agents
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


def test_the_bars(files):
    for track in TRACKS.values():
        text = gzip.decompress(files[f"{track.prices}.gz"]).decode()
        found = Counter(bool(row["close"]) for row in csv.DictReader(io.StringIO(text)))
        assert (found[True], found[False]) == SHAPE[track.name][2:]


def test_the_checks_by_track(audits):
    for track, expected in CHECKS.items():
        of = [one.reconciliation for one in audits if one.track == track]
        for kind, counts in zip(("fill", "cash", "position"), expected, strict=True):
            assert (sum(one.passed[kind] for one in of), sum(one.checks[kind] for one in of)) == counts, (track, kind)


def test_the_mismatches(audits):
    found = [one for audit in audits for one in audit.reconciliation.mismatches]
    assert Counter(one.kind for one in found) == MISMATCHES
    where = Counter(one.where for one in found if one.kind == "cash")
    assert where == {"outside the bar": 60, "inside the bar": 42}
    # until 29 October the American book has one step a day, stamped 15:00; most of its mismatches are there
    cash = [m.step for a in audits if a.track == "us" for m in a.reconciliation.mismatches if m.kind == "cash"]
    assert (sum(step < "us/2025-10-30" for step in cash), len(cash)) == (77, 95)
    steps = [record for a in audits if a.track == "us" for record in a.records]
    assert sum(record < "us/2025-10-30" for record in steps) == 121
    # the books of crypto break on two days only
    days = [m.step.split("/")[1] for a in audits if a.track == "crypto" for m in a.reconciliation.mismatches]
    assert Counter(days) == {"2025-11-09": 13, "2025-11-10": 17}
    navs = {(one.track, one.agent): one.last_nav for one in audits}
    assert {key: round(navs[key], 2) for key in NAVS} == NAVS


def test_navs_against_a_sum_by_hand(audits, lines, files):
    """Position by position, straight from the files."""
    bars = {}
    for name, track in TRACKS.items():
        text = gzip.decompress(files[f"{track.prices}.gz"]).decode()
        for row in csv.DictReader(io.StringIO(text)):
            bars[name, row["symbol"], row["ts"]] = float(row["open"])
    expected = Counter()
    for one in lines:
        after = one["positions_after"]
        if after is not None:
            total = after["CASH"]
            for symbol, units in after.items():
                total += units * bars[one["track"], symbol, one["step"]] if symbol != "CASH" else 0.0
            expected[round(total, 4)] += 1
    found = Counter(round(nav, 4) for one in audits for nav in one.reconciliation.navs if nav is not None)
    assert sum(found.values()) == sum(expected.values()) == 1480
    assert sorted(found.elements()) == pytest.approx(sorted(expected.elements()), abs=1e-3)


def test_nothing_in_a_context_is_later_than_its_decision(result):
    contexts = result.contexts
    for one in result.decisions:
        seen = contexts[one.context_id]
        assert seen.completeness == "partial"
        assert all(fact.available_at <= one.decided_at for fact in seen.facts)
        assert all(series.times[-1] <= one.decided_at for series in seen.series)


def test_the_words_of_every_step_are_kept(result, lines):
    """Marks aside, what was written is what is stored."""
    bare = 0
    for one in lines:
        text = one["rationale"] or ""
        for mark in ("<FINISH_SIGNAL>", "</FINISH_SIGNAL>", "<think>", "</think>"):
            text = text.replace(mark, "")
        bare += len("".join(text.split()))
    kept = sum(len("".join(text.text.split())) for one in result.decisions for text in one.rationales)
    assert 0 <= bare - kept <= 3 * len("Toolresults:")


def test_the_names_of_the_companies(lines):
    names = names_in(one["rationale"] for one in lines)
    assert len(names) == 49
    assert (names["600519.SH"], names["601318.SH"]) == ("贵州茅台", "中国平安")
