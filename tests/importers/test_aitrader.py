"""The AI-Trader importer on made-up logs: what was known when, what was written, what does not fit, and the season."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import made_aitrader as made
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_aitrader import CLAUDE, CRYPTO, GPT, HEADER, HOURLY, STEPS, TRACK, action, crypto, files, honest, line

from assaymark.cli import main
from assaymark.errors import InputError, UnknownNameError
from assaymark.importers import IMPORTERS, audit_aitrader, import_aitrader, season_aitrader
from assaymark.importers.aitrader import TRACKS, names_in, texts_of
from assaymark.portfolio import Bar, Book, Order, Rules, broker, settle_day
from assaymark.records import Rationale, canonical_json
from assaymark.workflow import DECISIONS, OUTCOMES, RunFolder, Store


def decision(imported, name):
    return next(one for one in imported.decisions if one.record_id == name)


def context(imported, name):
    return imported.contexts[decision(imported, name).context_id]


@pytest.fixture(scope="module")
def honestly():
    return import_aitrader(files())


def test_steps_become_decisions_that_can_be_paired(honestly):
    assert [one.record_id for one in honestly.decisions] == [
        "cn-hourly/2025-10-09T10:30/claude-3.7-sonnet", "cn-hourly/2025-10-09T11:30/claude-3.7-sonnet",
        "cn-hourly/2025-10-09T10:30/gpt-5", "cn-hourly/2025-10-09T11:30/gpt-5", "cn-hourly/2025-10-09T14:00/gpt-5",
    ]  # fmt: skip
    assert [one.cycle for one in honestly.decisions] == [f"cn-hourly#{n}" for n in (1, 2, 1, 2, 3)]
    one = decision(honestly, "cn-hourly/2025-10-09T11:30/gpt-5")
    assert (one.agent.id, one.agent.family, one.cluster) == ("gpt-5", "openai", "2025-W41")
    assert one.decided_at == datetime(2025, 10, 9, 3, 30, tzinfo=UTC)
    assert one.provenance.path == f"{TRACK}/{GPT}"
    assert [(a.kind, a.instrument, a.quantity) for a in one.actions] == [
        ("sell", "600036.SH", 500), ("buy", "601318.SH", 100),
    ]  # fmt: skip
    assert one.stages["holdings"] == {"600036.SH": 500.0, "601318.SH": 100.0}
    assert one.stages["cash_after"] == 74800.0
    assert (one.call.seconds, one.call.timing_source) == (34.5, "derived")


def test_nothing_but_the_open_of_a_steps_own_bar_is_in_its_context(honestly):
    seen = context(honestly, "cn-hourly/2025-10-09T11:30/gpt-5")
    assert seen.completeness == "partial"
    assert {fact.id: fact.value for fact in seen.facts} == {
        "price:600036.SH": 40.5, "price:601318.SH": 54.5, "previous_close:600036.SH": 40.5,
        "previous_close:601318.SH": 54.5,
    }  # fmt: skip
    assert [(one.instrument, one.close, one.high) for one in seen.series] == [
        ("600036.SH", (40.5,), (41.0,)), ("601318.SH", (54.5,), (55.5,)),
    ]  # fmt: skip
    assert (seen.portfolio.cash, seen.portfolio.nav, seen.portfolio.currency) == (60000.0, 100500.0, "CNY")


def test_no_field_after_the_decision_changes_a_context():
    later = HOURLY.replace("42.0,40.0,41.5,1100", "43.0,39.0,42.5,9").replace("14:00:00,41.5", "14:00:00,60.0")
    first, other = (import_aitrader(files(hourly=text)) for text in (HOURLY, later))
    for name in ("cn-hourly/2025-10-09T10:30/gpt-5", "cn-hourly/2025-10-09T11:30/gpt-5"):
        assert canonical_json(context(first, name)) == canonical_json(context(other, name))
        assert canonical_json(decision(first, name)) == canonical_json(decision(other, name))
    assert first.outcomes != other.outcomes


def test_every_fact_and_bar_was_known_at_its_decision_whatever_the_files_order(honestly):
    for one in honestly.decisions:
        seen = honestly.contexts[one.context_id]
        assert seen.cutoff == one.decided_at
        assert all(fact.available_at <= one.decided_at for fact in seen.facts)
        assert all(time <= one.decided_at for series in seen.series for time in series.times)
    again = import_aitrader(dict(reversed(files(*reversed(honest()), packed=True).items())))
    assert canonical_json(again.decisions) == canonical_json(honestly.decisions)
    assert canonical_json(again.outcomes) == canonical_json(honestly.outcomes)


@pytest.mark.parametrize(
    ("track", "step", "complete", "at"),
    [
        ("agent_data", "2025-10-09 10:00:00", False, datetime(2025, 10, 9, 14, 0, tzinfo=UTC)),
        ("agent_data", "2025-10-09 10:00:00", True, datetime(2025, 10, 9, 15, 0, tzinfo=UTC)),
        ("agent_data", "2025-11-03 10:00:00", False, datetime(2025, 11, 3, 15, 0, tzinfo=UTC)),  # winter time
        ("agent_data_astock", "2025-10-09", False, datetime(2025, 10, 9, 1, 30, tzinfo=UTC)),
        ("agent_data_astock", "2025-10-09", True, datetime(2025, 10, 9, 7, 0, tzinfo=UTC)),
    ],
)
def test_bars_stamped_with_their_start_are_complete_an_hour_later(track, step, complete, at):
    assert TRACKS[track].utc(TRACKS[track].read(step), complete=complete) == at
    with pytest.raises(InputError, match=r"no time zone data for Nowhere/None; install the package tzdata"):
        replace(TRACKS[track], zone="Nowhere/None").utc(datetime(2025, 10, 9))


def test_outcomes_are_recomputed_from_open_to_open(honestly):
    found = {(one.record_id, one.horizon): one for one in honestly.outcomes}
    step = found["cn-hourly/2025-10-09T11:30/gpt-5", "to the agent's next step"]
    assert step.value == pytest.approx((74800 + 500 * 41.5 + 100 * 55.5) / (74800 + 500 * 40.5 + 100 * 54.5) - 1)
    assert step.benchmark == pytest.approx((41.5 / 40.5 + 55.5 / 54.5) / 2 - 1)
    assert step.resolved_at == datetime(2025, 10, 9, 6, 0, tzinfo=UTC)
    whole = found["cn-hourly/2025-10-09T14:00/gpt-5", "whole log"]
    assert whole.value == pytest.approx((74800 + 500 * 41.5 + 100 * 55.5) / 100000 - 1)
    assert found["cn-hourly/2025-10-09T11:30/claude-3.7-sonnet", "whole log"].value == 0.0


@pytest.mark.parametrize(
    ("text", "kept", "flags"),
    [
        (None, [], ("no-finish-signal",)),
        ("", [], ("no-finish-signal",)),
        ("\n<FINISH_SIGNAL>", [], ()),
        ("I hold.</FINISH_SIGNAL>", [("summary", "I hold.")], ()),
        ("<think>a</think>b<think>c</think>", [("stage", "a"), ("stage", "c"), ("summary", "b")],
         ("think-block", "no-finish-signal")),
        ("<think>never closed", [("summary", "<think>never closed")], ("no-finish-signal",)),
        ("Tool results: ", [], ("tool-output", "no-finish-signal")),
        ("Tool results: AAPL 1.0", [("arena", "Tool results: AAPL 1.0")], ("tool-output", "no-finish-signal")),
    ],
)  # fmt: skip
def test_texts_and_marks(text, kept, flags):
    assert texts_of(text) == (tuple(Rationale(kind=kind, text=said) for kind, said in kept), flags)


def test_a_step_without_text_is_kept_and_names_stand_on_the_instruments():
    found = import_aitrader(files(line(rationale="<FINISH_SIGNAL>"), line(model=CLAUDE), crypto()))
    assert decision(found, "cn-hourly/2025-10-09T10:30/gpt-5").missing == ("text",)
    assert found.report.no_text == ("cn-hourly/2025-10-09T10:30/gpt-5",)
    # agents of different tracks with one model are one agent
    assert sorted({one.agent.id for one in found.decisions}) == ["claude-3.7-sonnet", "gpt-5"]
    steps = [line(step, rationale="持有 招商银行(600036.SH)") for step in STEPS]
    seen = context(import_aitrader(files(*steps)), "cn-hourly/2025-10-09T10:30/gpt-5")
    assert [(one.symbol, one.name) for one in seen.instruments] == [("600036.SH", "招商银行"), ("601318.SH", "")]


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["招商银行(600036.SH)"] * 3, {"600036.SH": "招商银行"}), (["招商银行(600036.SH)"] * 2, {}),
        (["招商银行(600036.SH)"] * 3 + ["工商银行(600036.SH)"] * 3, {}),
        (["招商银行(600036.SH)"] * 3 + ["招商银行(601398.SH)"] * 3, {}),
        (["买入600036.SH（招商银行）100股"] * 3, {"600036.SH": "招商银行"}),
    ],
)  # fmt: skip
def test_names_are_read_where_the_agents_agree(texts, names):
    assert names_in([*texts, None, "no code"]) == names


def test_an_honest_log_reconciles_and_the_next_step_stands_on_the_stated_book():
    audits = audit_aitrader(files())
    assert [(one.track, one.agent, len(one.records)) for one in audits] == [
        ("cn-hourly", "claude-3.7-sonnet", 2), ("cn-hourly", "gpt-5", 3),
    ]  # fmt: skip
    assert [one.reconciliation.mismatches for one in audits] == [(), ()]
    found = audits[1].reconciliation
    assert (found.data_reliability, found.navs, audits[1].last_nav) == (100.0, (100000.0, 100500.0, 101100.0), 101100.0)
    wrong = honest()
    for one in wrong[:3]:
        one["positions_after"]["CASH"] += 500.0
    audit = audit_aitrader(files(*wrong))[1]
    assert [one.step for one in audit.reconciliation.mismatches] == ["cn-hourly/2025-10-09T10:30/gpt-5"]
    (audit,) = audit_aitrader(files(crypto()))  # positions rounded by the venue are none
    assert audit.reconciliation.mismatches == ()


@pytest.mark.parametrize(
    ("after", "actions", "kind", "where", "flag"),
    [
        ({"600036.SH": 1000, "CASH": 60000.01}, None, None, None, None),
        ({"600036.SH": 1000, "CASH": 59500.0}, None, "cash", "at the close", "cash-mismatch"),
        ({"600036.SH": 1000, "CASH": 60300.0}, None, "cash", "inside the bar", "cash-mismatch"),
        ({"600036.SH": 1000, "CASH": 61000.0}, None, "cash", "outside the bar", "cash-mismatch"),
        ({"600036.SH": 900, "CASH": 64000.0}, None, "fill-quantity", "", "fill-mismatch"),
        ({"600036.SH": 1000, "CASH": 60000.0}, [], "position", "", "position-mismatch"),
        ({"600036.SH": 1000, "CASH": 59000.0}, [action("buy", "600036.SH", 1000, price=41.0)], "fill-price",
         "inside the bar", "fill-mismatch"),
    ],
)  # fmt: skip
def test_planted_mismatches_are_found_and_flagged(after, actions, kind, where, flag):
    done = [action("buy", "600036.SH", 1000)] if actions is None else actions
    log = files(line(actions=done, positions_after=after))
    (audit,) = audit_aitrader(log)
    found = [(one.kind, one.where) for one in audit.reconciliation.mismatches]
    assert found == ([] if kind is None else [(kind, where)])
    (one,) = import_aitrader(log).decisions
    assert [f for f in one.flags if f.endswith("mismatch")] == ([] if flag is None else [flag])
    said = one.stages["reconciliation"]
    assert [text.split()[0].strip(":") for text in said] == ([] if kind is None else [kind])
    assert not any("bar" in text or "close" in text for text in said)


def test_a_step_without_a_book_is_named_and_carried():
    steps = honest()[:3]
    steps[1]["positions_after"] = None
    steps[1]["actions"] = []
    steps[2] |= {"positions_after": {"600036.SH": 1000, "CASH": 60000.0}}
    found = import_aitrader(files(*steps))
    assert found.report.missing["positions after"].count == 1
    assert context(found, "cn-hourly/2025-10-09T14:00/gpt-5").portfolio.positions == {"600036.SH": 1000.0}
    (audit,) = audit_aitrader(files(*steps))
    assert audit.reconciliation.mismatches == ()
    assert audit.reconciliation.navs[1] is None


def test_a_replay_is_flagged():
    live = line(timestamps=["2025-10-09T10:31:00", "2025-10-09T10:31:00"])
    found = import_aitrader(files(live, line(STEPS[1])))
    assert [("replayed" in one.flags, one.call.timing_source) for one in found.decisions] == [
        (False, "absent"), (True, "derived"),
    ]  # fmt: skip
    assert any("may have known what came next" in note for note in found.report.notes)


orders = st.lists(
    st.builds(
        Order, symbol=st.sampled_from(["600036.SH", "601318.SH"]), side=st.sampled_from(["buy", "sell"]),
        quantity=st.integers(1, 30).map(lambda lots: 100.0 * lots),
    ),
    max_size=4,
)  # fmt: skip


@given(st.lists(orders, min_size=3, max_size=3))
def test_a_log_written_by_the_paper_broker_reconciles(days):
    """Simulated and imported again, no book differs."""
    track = TRACKS[TRACK]
    bars: dict[str, dict[str, Bar]] = {}
    for symbol, stamp, opened, *_rest in (row.split(",") for row in HOURLY.splitlines()[1:]):
        bars.setdefault(stamp, {})[symbol] = Bar(float(opened))
    book, steps, navs = Book(track.capital), [], []
    for stamp, wishes in zip(STEPS, days, strict=True):
        day = settle_day(book, wishes, bars[stamp], Rules(excess="cut", fractional=False, lot=100))
        book = day.book
        done = [action("buy" if one.quantity > 0 else "sell", one.symbol, abs(one.quantity)) for one in day.fills]
        after = {**book.positions, "CASH": book.cash}
        steps.append(line(stamp, actions=done or [action("no_trade")], positions_after=after))
        navs.append(day.nav)
    (audit,) = audit_aitrader(files(*steps))
    assert audit.reconciliation.mismatches == ()
    assert audit.reconciliation.navs == pytest.approx(navs)


def test_all_problems_at_once():
    bad = [
        line(track="agent_data_moon"), line(step="2025-10-09"), line(step="2025-10-10 10:30:00"),
        line(actions=[action("hodl", "600036.SH", 1)]), line(actions=[action("buy", "ZZZ", 1)]),
        line(actions=[action("buy", "600036.SH", -1)]), line(positions_after={"QQQ": 1.0}),
        line(timestamps=["2025-11-18T00:00:00", "2025-11-17T00:00:00"]), line(timestamps=["yesterday"]),
        line(timestamps=["2025-11-17T06:44:32+08:00"]), line(), line(), line(surprise=1),
    ]  # fmt: skip
    with pytest.raises(InputError) as caught:
        import_aitrader(files(*bad))
    text = str(caught.value)
    for said in (
        "line 1, track: must be one of agent_data, agent_data_astock_hour",
        "line 2, step: must be a step such as 2025-10-09 10:30:00 (got '2025-10-09')",
        "line 3, step: has no bar in prices_astock_hourly.csv", "line 4, actions.0.action",
        "line 5, actions.0.symbol: has no bars in prices_astock_hourly.csv (got 'ZZZ')", "line 6, actions.0.amount",
        "line 7, positions_after: has no CASH", "line 7, positions_after: 'QQQ' has no bars",
        "line 8, timestamps: go backwards", "line 9, timestamps.0: must be a time such as",
        "line 10, timestamps: have a zone",
        "line 12, step: gpt-5-astock-hour has two lines at 2025-10-09 10:30:00 (first at decisions.jsonl line 11)",
        "line 13, surprise",
    ):  # fmt: skip
        assert said in text
    kept = import_aitrader(files(*bad), keep_going=True).report
    assert (kept.good, kept.bad) == (1, 12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HOURLY.replace("40.0,41.0", "40.0,39.0"), "line 2: open and close must lie from low to high"),
        (HOURLY.replace("40.0,41.0", ",41.0"), "line 2: open: is needed"),
        (HOURLY.replace("40.0,41.0", "nan,41.0"), "line 2: open: must be a number above 0"),
        (HOURLY.replace("40.0,41.0", "-4,41.0"), "line 2: open: must be a number above 0"),
        (HOURLY.replace("41.0,39.5,40.5", ",39.5,40.5"), "line 2: high, low and close: give all three or none"),
        (HOURLY.replace("2025-10-09 11:30:00", "2025-10-09 10:30:00"), "has two bars at 2025-10-09 10:30:00"),
        (HOURLY.replace("10:30:00", "half past ten"), "must be a step such as"),
        (HOURLY.replace("2025-10-09 10:30", "0001-01-01 10:30"), "must be a step such as"),
        (HOURLY.replace("symbol,ts", "name,ts"), "must have the columns symbol, ts, open"),
        (HOURLY.replace("601318.SH,2025-10-09 10:30:00", ",2025-10-09 10:30:00"), "symbol: is empty"),
        (HOURLY.replace("40.0,41.0", "dear,41.0"), "line 2: open: must be a number above 0 to 1e+15 (got 'dear')"),
        (HOURLY.replace("40.5,1000", "40.5,-1"), "line 2: volume: must be a number from 0"),
        ("", "empty: a header row is needed"), (HEADER, "prices_astock_hourly.csv: holds no bar"),
    ],
)  # fmt: skip
def test_bad_price_files(text, said):
    with pytest.raises(InputError, match=r"prices_astock_hourly\.csv") as caught:
        import_aitrader(files(hourly=text))
    assert said in str(caught.value)


def test_missing_files_broken_lines_and_numbers_beyond_any_book_are_named():
    given = files(*honest(), crypto())
    without = {name: data for name, data in given.items() if name != "prices_crypto_daily.csv"}
    beyond = files(line(positions_after={"CASH": 1e300}))
    broken = json.dumps(line()).replace("2.0", "NaN").encode() + b"}"
    no_line = (b"not json", b"[]", b'{"track": 1, "track": 2}', broken)
    for of, what in (
        (without, r"prices_crypto_daily\.csv: missing, and needed for 1 steps of agent_data_cr"),
        ({"prices_crypto_daily.csv": CRYPTO.encode()}, r"decisions\.jsonl: missing"),
        (files() | {"decisions.jsonl": b"\n"}, "holds no step"), (beyond, r"positions_after\.CASH"),
        (files(line(positions_after={"CASH": math.inf})), "."),
        *((files() | {"decisions.jsonl": text}, r"decisions\.jsonl line 1") for text in no_line),
    ):  # fmt: skip
        with pytest.raises(InputError, match=what):
            import_aitrader(of)


def test_a_damaged_price_file_is_one_problem_of_many():
    given = files(line(), crypto(), line(track="moon"))
    with pytest.raises(InputError) as caught:
        import_aitrader(given | {"prices_astock_hourly.csv": b"\x1f\x8b damaged"})
    assert "damaged gzip" in str(caught.value)
    assert "line 3, track" in str(caught.value)
    assert "1 steps of agent_data_astock_hour without prices: their file is broken" in str(caught.value)
    assert "has no bar" not in str(caught.value)
    with pytest.raises(InputError, match="not UTF-8"):
        import_aitrader(given | {"prices_crypto_daily.csv": b"symbol,ts\n\xff"})


def test_the_command_writes_a_run_folder(tmp_path, capsys):
    source, run = tmp_path / "log", tmp_path / "run"
    source.mkdir()
    for name, data in files(*honest(), crypto(), packed=True).items():
        (source / name).write_bytes(data)
    (source / "notes.txt").write_text("not ours")
    assert main(["import", "aitrader", str(source), "--out", str(run)]) == 0
    out = capsys.readouterr().out
    assert "aitrader: 6 decisions imported, 0 left out" in out
    assert "data reliability 100.0 (fill 3 of 3, cash 3 of 3, position 2 of 2)" in out
    store = Store(RunFolder(run))
    assert len(list(store.read(DECISIONS))) == 6
    assert {one.horizon for one in store.read(OUTCOMES)} == {"to the agent's next step", "whole log"}
    names = ["decisions.jsonl.gz", "prices_us_hourly.csv.gz", "prices_x.csv", "daily_prices.csv", "map.toml"]
    assert IMPORTERS["aitrader"].wanted(names) == ("decisions.jsonl.gz", "prices_us_hourly.csv.gz", "prices_x.csv")


TWO_DAYS = (
    made.HEADER
    + """\
AAA,2025-11-02,10,12,9,11,1
AAA,2025-11-03,11,12,9,12,1
AAA,2025-11-04,12,,,,
BBB,2025-11-02,50,52,49,51,1
BBB,2025-11-04,60,,,,
"""
)


def step(day: str, model: str = "one", **after: float):
    return made.crypto(step=day, model=model, actions=[], positions_after=after)


def two_days(*lines: dict[str, object]):
    return season_aitrader(made.files(*lines, crypto=TWO_DAYS), "crypto")


def test_a_book_without_a_price_on_the_day_is_valued_at_the_last_one_and_named():
    found = two_days(step("2025-11-02", CASH=0.0, BBB=1000.0), step("2025-11-03", CASH=0.0, BBB=1000.0))
    assert [(day, nav, stale) for day, _, _, _, nav, _, _, stale in found.books] == [
        ("2025-11-02", 50_000.0, ()), ("2025-11-03", 50_000.0, ("BBB",)),
    ]  # fmt: skip


def test_a_day_without_a_step_keeps_the_book_and_a_day_before_the_first_has_none():
    lines = [step("2025-11-02", CASH=50_000.0), step("2025-11-04", CASH=50_000.0)]
    late = [step("2025-11-03", "two", CASH=39_000.0, AAA=1000.0)]
    found = two_days(*lines, *late)
    assert [(agent, day, nav, state) for day, agent, state, _, nav, *_ in found.books] == [
        ("one", "2025-11-02", 50_000.0, "ok"), ("one", "2025-11-03", 50_000.0, "ok"),
        ("one", "2025-11-04", 50_000.0, "ok"), ("two", "2025-11-03", 50_000.0, "ok"),
        ("two", "2025-11-04", 51_000.0, "ok"),
    ]  # fmt: skip


def test_a_symbol_without_any_price_yet_leaves_no_value():
    late = TWO_DAYS.replace("BBB,2025-11-02,50,52,49,51,1\n", "")
    lines = [step("2025-11-02", CASH=0.0, BBB=1.0), step("2025-11-04", CASH=0.0, BBB=1.0)]
    found = season_aitrader(made.files(*lines, crypto=late), "crypto")
    assert [(day, nav) for day, _, _, _, nav, *_ in found.books] == [("2025-11-04", 60.0)]
    assert next(held for _, name, *_, held, _ in found.baselines if name == "equal weight") == {"AAA": 5000.0}


@given(st.floats(1, 1e6), st.floats(1, 1e6))
def test_equal_weight_earns_the_mean_return_of_its_symbols(first, second):
    lines = [step("2025-11-02", CASH=50_000.0), step("2025-11-04", CASH=50_000.0)]
    prices = TWO_DAYS.replace("AAA,2025-11-04,12", f"AAA,2025-11-04,{first!r}")
    prices = prices.replace("BBB,2025-11-04,60", f"BBB,2025-11-04,{second!r}")
    found = season_aitrader(made.files(*lines, crypto=prices), "crypto")
    ends = {name: nav for day, name, _, _, nav, *_ in found.baselines if day == "2025-11-04"}
    assert ends["equal weight"] == pytest.approx(50_000 * (first / 10 + second / 50) / 2, rel=1e-12)
    assert ends["cash"] == 50_000


def test_a_fill_has_its_stated_price_or_the_open():
    lines = [
        made.line(
            actions=[made.action("buy", "600036.SH", 100, price=40.2), made.action("sell", "601318.SH", 100)],
            positions_after={"600036.SH": 100, "601318.SH": -100, "CASH": 101_480.0},
        )
    ]
    found = season_aitrader(made.files(*lines), "cn-hourly")
    assert [row[3:7] for row in found.fills] == [(1, "600036.SH", 100.0, 40.2), (2, "601318.SH", -100.0, 55.0)]


def test_lines_that_an_import_refuses_are_passed_over_and_a_track_that_is_not_there_named():
    good = made.honest()
    found = season_aitrader(made.files(*good, made.line("2030-01-01 10:30:00")), "cn-hourly")
    assert found == season_aitrader(made.files(*good), "cn-hourly")
    with pytest.raises(UnknownNameError, match=r"unknown track 'us'\. Known: cn-hourly, crypto"):
        season_aitrader(made.files(*good, made.crypto()), "us")


@pytest.fixture(scope="module")
def real(shared):
    """The real log and its audits."""
    held = {path.name: path.read_bytes() for path in (shared / "data" / "aitrader").iterdir()}
    return held, audit_aitrader(held)


@pytest.mark.shared
def test_the_last_books_and_all_checks_are_those_of_the_audit(real):
    held, audits = real
    for track in sorted({one.track for one in audits}):
        found = season_aitrader(held, track)
        last = {agent: nav for _, agent, _, _, nav, *_ in found.books}
        checks = {row[:2]: row[2:] for row in found.checks}
        for audit in (one for one in audits if one.track == track):
            known = audit.reconciliation
            assert math.isclose(last[audit.agent], audit.last_nav, rel_tol=1e-12)
            told = [line for kind in broker.RELIABILITY for line in checks[audit.agent, kind][2]]
            assert len(told) == len(known.mismatches)
            for kind in broker.RELIABILITY:
                assert checks[audit.agent, kind][:2] == (known.checks[kind], known.passed[kind])
        states = [state for _, _, state, *_ in found.books]
        assert set(states) <= {"ok", "not stated"}
        assert sum(state != "ok" for state in states) == (2 if track == "cn-daily" else 0)


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "aitrader.md").read_text(encoding="utf-8")


def section(title: str, level: int = 2) -> str:
    """The part of the page under one heading."""
    found = re.search(rf"(?ms)^{'#' * level} {re.escape(title)}.*?(?=^#{{1,{level}}} |\Z)", PAGE)
    assert found is not None, title
    return found[0]


def test_a_total_is_printed_only_where_its_claim_stands():
    cell = r"(?:not ranked|rank \d+ to \d+); ([^|;]+); ([\w-]+): "
    rows = re.findall(cell, section("The grades"))
    assert len(rows) == 26
    ranges = re.compile(r"[\d.]+ to [\d.]+")
    assert [total for total, level in rows if level == "no-claim" and not ranges.fullmatch(total)] == []


@pytest.mark.shared
def test_books_and_checks_are_those_of_the_audit(real):
    fills = []
    for audit in real[1]:
        found = audit.reconciliation
        row = next(one for one in section(f"{audit.track}: ", 3).splitlines() if one.startswith(f"| {audit.agent} |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[1] == f"{audit.last_nav:,.2f}"
        assert cells[2].replace("−", "-") == f"{100 * (audit.last_nav / audit.capital - 1):+.1f} %"
        assert cells[5:8] == [f"{found.passed[kind]:,} of {found.checks[kind]:,}" for kind in broker.RELIABILITY]
        assert cells[8] == f"{found.data_reliability:.1f}"
        fills += [one for one in found.mismatches if one.kind.startswith("fill")]
    listed = re.findall(r"(?m)^\| `(\S+)` \| (.*) \|$", section("What does not follow"))
    assert sorted(listed) == sorted((one.step, str(one).removeprefix(f"{one.step}: ")) for one in fills)
    assert len(listed) == 22
