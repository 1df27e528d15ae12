"""The AI-Trader importer on made-up logs: what was known when, what was written, what does not fit, and the season."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_aitrader import CLAUDE, CRYPTO, GPT, HEADER, HOURLY, STEPS, TRACK, action, crypto, files, honest, line

from assaymark.cli import main
from assaymark.errors import InputError, UnknownNameError
from assaymark.importers import IMPORTERS, audit_aitrader, import_aitrader, season_aitrader
from assaymark.importers.aitrader import TRACKS, company_names, step_texts
from assaymark.portfolio import Account, Bar, BrokerRules, Order, settle_day
from assaymark.records import canonical_json
from assaymark.workflow import DECISIONS, OUTCOMES, RunFolder, Store

DAY = "cn-hourly/2025-10-09T"
FIRST, SECOND, THIRD = (f"{DAY}{time}/gpt-5" for time in ("10:30", "11:30", "14:00"))
BUY = action("buy", "600036.SH", 1000)


def decision(imported, name):
    return next(one for one in imported.decisions if one.record_id == name)


def context(imported, name):
    return imported.contexts[decision(imported, name).context_id]


@pytest.fixture(scope="module")
def honestly():
    return import_aitrader(files())


def test_steps_become_decisions_that_can_be_paired(honestly):
    claude = [f"{DAY}{time}/claude-3.7-sonnet" for time in ("10:30", "11:30")]
    found = [(one.record_id, one.cycle) for one in honestly.decisions]
    names = [*claude, FIRST, SECOND, THIRD]
    assert found == [(name, f"cn-hourly#{n}") for name, n in zip(names, (1, 2, 1, 2, 3), strict=True)]
    one = decision(honestly, SECOND)
    assert (one.agent.id, one.agent.family, one.cluster) == ("gpt-5", "openai", "2025-W41")
    assert one.decided_at == datetime(2025, 10, 9, 3, 30, tzinfo=UTC)
    assert one.provenance.path == f"{TRACK}/{GPT}"
    actions = [(a.kind, a.instrument, a.quantity) for a in one.actions]
    assert actions == [("sell", "600036.SH", 500), ("buy", "601318.SH", 100)]
    after = one.stages["holdings"], one.stages["cash_after"]
    assert after == ({"600036.SH": 500.0, "601318.SH": 100.0}, 74800.0)
    assert (one.call.seconds, one.call.timing_source) == (34.5, "derived")


def test_nothing_but_the_open_of_a_steps_own_bar_is_in_its_context(honestly):
    seen = context(honestly, SECOND)
    assert seen.completeness == "partial"
    assert {fact.id: fact.value for fact in seen.facts} == {
        "price:600036.SH": 40.5, "price:601318.SH": 54.5, "previous_close:600036.SH": 40.5,
        "previous_close:601318.SH": 54.5,
    }  # fmt: skip
    bars = [(one.instrument, one.close, one.high) for one in seen.series]
    assert bars == [("600036.SH", (40.5,), (41.0,)), ("601318.SH", (54.5,), (55.5,))]
    assert (seen.portfolio.cash, seen.portfolio.nav, seen.portfolio.currency) == (60000.0, 100500.0, "CNY")
    for one in honestly.decisions:
        seen = honestly.contexts[one.context_id]
        assert seen.cutoff == one.decided_at
        assert all(fact.available_at <= one.decided_at for fact in seen.facts)
        assert all(time <= one.decided_at for series in seen.series for time in series.times)


def test_no_field_after_the_decision_changes_a_context_and_the_order_of_files_changes_nothing(honestly):
    later = HOURLY.replace("42.0,40.0,41.5,1100", "43.0,39.0,42.5,9").replace("14:00:00,41.5", "14:00:00,60.0")
    other = import_aitrader(files(hourly=later))
    for name in (FIRST, SECOND):
        assert canonical_json(context(honestly, name)) == canonical_json(context(other, name))
        assert canonical_json(decision(honestly, name)) == canonical_json(decision(other, name))
    assert honestly.outcomes != other.outcomes
    again = import_aitrader(dict(reversed(files(*reversed(honest()), packed=True).items())))
    assert canonical_json(again.decisions) == canonical_json(honestly.decisions)
    assert canonical_json(again.outcomes) == canonical_json(honestly.outcomes)


def test_bars_stamped_with_their_start_are_complete_an_hour_later():
    for track, step, complete, at in (
        ("agent_data", "2025-10-09 10:00:00", False, (2025, 10, 9, 14, 0)),
        ("agent_data", "2025-10-09 10:00:00", True, (2025, 10, 9, 15, 0)),
        ("agent_data", "2025-11-03 10:00:00", False, (2025, 11, 3, 15, 0)),  # winter time
        ("agent_data_astock", "2025-10-09", False, (2025, 10, 9, 1, 30)),
        ("agent_data_astock", "2025-10-09", True, (2025, 10, 9, 7, 0)),
    ):
        assert TRACKS[track].utc(TRACKS[track].read(step), complete=complete) == datetime(*at, tzinfo=UTC)
    with pytest.raises(InputError, match=r"no time zone data for Nowhere/None; install the package tzdata"):
        replace(TRACKS[TRACK], zone="Nowhere/None").utc(datetime(2025, 10, 9))


def test_outcomes_are_recomputed_from_open_to_open(honestly):
    found = {(one.record_id, one.horizon): one for one in honestly.outcomes}
    step = found[SECOND, "to the agent's next step"]
    assert step.value == pytest.approx((74800 + 500 * 41.5 + 100 * 55.5) / (74800 + 500 * 40.5 + 100 * 54.5) - 1)
    assert step.benchmark == pytest.approx((41.5 / 40.5 + 55.5 / 54.5) / 2 - 1)
    assert step.resolved_at == datetime(2025, 10, 9, 6, 0, tzinfo=UTC)
    assert found[THIRD, "whole log"].value == pytest.approx((74800 + 500 * 41.5 + 100 * 55.5) / 100000 - 1)
    assert found[f"{DAY}11:30/claude-3.7-sonnet", "whole log"].value == 0.0


def test_texts_and_marks_and_names_where_the_agents_agree():
    for text, kept, flags in (
        (None, [], ("no-finish-signal",)), ("", [], ("no-finish-signal",)), ("\n<FINISH_SIGNAL>", [], ()),
        ("I hold.</FINISH_SIGNAL>", [("summary", "I hold.")], ()),
        ("<think>a</think>b<think>c</think>", [("stage", "a"), ("stage", "c"), ("summary", "b")],
         ("think-block", "no-finish-signal")),
        ("<think>never closed", [("summary", "<think>never closed")], ("no-finish-signal",)),
        ("Tool results: ", [], ("tool-output", "no-finish-signal")),
        ("Tool results: AAPL 1.0", [("arena", "Tool results: AAPL 1.0")], ("tool-output", "no-finish-signal")),
    ):  # fmt: skip
        found, marks = step_texts(text)
        assert ([(one.kind, one.text) for one in found], marks) == (kept, flags), text
    bank = "招商银行(600036.SH)"
    for texts, names in (
        ([bank] * 3, {"600036.SH": "招商银行"}), ([bank] * 2, {}), ([bank] * 3 + ["工商银行(600036.SH)"] * 3, {}),
        ([bank] * 3 + ["招商银行(601398.SH)"] * 3, {}),
        (["买入600036.SH（招商银行）100股"] * 3, {"600036.SH": "招商银行"}),
    ):  # fmt: skip
        assert company_names([*texts, None, "no code"]) == names
    found = import_aitrader(files(line(rationale="<FINISH_SIGNAL>"), line(model=CLAUDE), crypto()))
    assert (decision(found, FIRST).missing, found.report.no_text) == (("text",), (FIRST,))
    # agents of different tracks with one model are one agent
    assert sorted({one.agent.id for one in found.decisions}) == ["claude-3.7-sonnet", "gpt-5"]
    seen = context(import_aitrader(files(*(line(step, rationale=f"持有 {bank}") for step in STEPS))), FIRST)
    assert [(one.symbol, one.name) for one in seen.instruments] == [("600036.SH", "招商银行"), ("601318.SH", "")]


def test_an_honest_log_reconciles_and_the_next_step_stands_on_the_stated_book():
    audits = audit_aitrader(files())
    assert [(one.track, one.agent, len(one.records), one.reconciliation.mismatches) for one in audits] == [
        ("cn-hourly", "claude-3.7-sonnet", 2, ()), ("cn-hourly", "gpt-5", 3, ()),
    ]  # fmt: skip
    found = audits[1].reconciliation
    assert (found.data_reliability, found.navs, audits[1].last_nav) == (100.0, (100000.0, 100500.0, 101100.0), 101100.0)
    wrong = honest()
    for one in wrong[:3]:
        one["positions_after"] = {**one["positions_after"], "CASH": one["positions_after"]["CASH"] + 500.0}
    assert [one.step for one in audit_aitrader(files(*wrong))[1].reconciliation.mismatches] == [FIRST]
    (audit,) = audit_aitrader(files(crypto()))  # positions rounded by the venue are none
    assert audit.reconciliation.mismatches == ()
    steps = honest()[:3]  # a step without a book is named and carried
    steps[1] |= {"positions_after": None, "actions": []}
    steps[2]["positions_after"] = {"600036.SH": 1000, "CASH": 60000.0}
    found, (audit,) = import_aitrader(files(*steps)), audit_aitrader(files(*steps))
    assert found.report.missing["positions after"].count == 1
    assert context(found, THIRD).portfolio.positions == {"600036.SH": 1000.0}
    assert (audit.reconciliation.mismatches, audit.reconciliation.navs[1]) == ((), None)


@pytest.mark.parametrize(("units", "cash", "actions", "kind", "where", "flag"), [
    (1000, 60000.01, [BUY], None, None, None), (1000, 59500.0, [BUY], "cash", "at the close", "cash-mismatch"),
    (1000, 60300.0, [BUY], "cash", "inside the bar", "cash-mismatch"),
    (1000, 61000.0, [BUY], "cash", "outside the bar", "cash-mismatch"),
    (900, 64000.0, [BUY], "fill-quantity", "", "fill-mismatch"),
    (1000, 60000.0, [], "position", "", "position-mismatch"),
    (1000, 59000.0, [BUY | {"price": 41.0}], "fill-price", "inside the bar", "fill-mismatch"),
])  # fmt: skip
def test_planted_mismatches_are_found_and_flagged(units, cash, actions, kind, where, flag):
    log = files(line(actions=actions, positions_after={"600036.SH": units, "CASH": cash}))
    (audit,), (one,) = audit_aitrader(log), import_aitrader(log).decisions
    found = [(one.kind, one.where) for one in audit.reconciliation.mismatches]
    assert found == ([] if kind is None else [(kind, where)])
    assert [f for f in one.flags if f.endswith("mismatch")] == ([] if flag is None else [flag])
    said = one.stages["reconciliation"]
    assert [text.split()[0].strip(":") for text in said] == ([] if kind is None else [kind])
    assert not any("bar" in text or "close" in text for text in said)


def test_a_replay_is_flagged():
    live = line(timestamps=["2025-10-09T10:31:00", "2025-10-09T10:31:00"])
    found = import_aitrader(files(live, line(STEPS[1])))
    flagged = [("replayed" in one.flags, one.call.timing_source) for one in found.decisions]
    assert flagged == [(False, "absent"), (True, "derived")]
    assert any("may have known what came next" in note for note in found.report.notes)


ORDERS = st.lists(max_size=4, elements=st.builds(
    Order, symbol=st.sampled_from(["600036.SH", "601318.SH"]), side=st.sampled_from(["buy", "sell"]),
    quantity=st.integers(1, 30).map(lambda lots: 100.0 * lots),
))  # fmt: skip


@given(st.lists(ORDERS, min_size=3, max_size=3))
def test_a_log_written_by_the_paper_broker_reconciles(days):
    """Simulated and imported again, no book differs."""
    bars: dict[str, dict[str, Bar]] = {}
    for symbol, stamp, opened, *_rest in (row.split(",") for row in HOURLY.splitlines()[1:]):
        bars.setdefault(stamp, {})[symbol] = Bar(float(opened))
    book, steps, navs = Account(TRACKS[TRACK].capital), [], []
    for stamp, wishes in zip(STEPS, days, strict=True):
        day = settle_day(book, wishes, bars[stamp], BrokerRules(excess="cut", fractional=False, lot=100))
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
    said = (
        "line 1, track: must be one of agent_data, agent_data_astock_hour",
        "line 2, step: must be a step such as 2025-10-09 10:30:00 (got '2025-10-09')",
        "line 3, step: has no bar in prices_astock_hourly.csv", "line 4, actions.0.action",
        "line 5, actions.0.symbol: has no bars in prices_astock_hourly.csv (got 'ZZZ')", "line 6, actions.0.amount",
        "line 7, positions_after: has no CASH", "line 7, positions_after: 'QQQ' has no bars",
        "line 8, timestamps: go backwards", "line 9, timestamps.0: must be a time such as",
        "line 10, timestamps: have a zone",
        "line 12, step: gpt-5-astock-hour has two lines at 2025-10-09 10:30:00 (first at decisions.jsonl line 11)",
        "line 13, surprise",
    )  # fmt: skip
    assert [one for one in said if one not in str(caught.value)] == []
    kept = import_aitrader(files(*bad), keep_going=True).report
    assert (kept.good, kept.bad) == (1, 12)


def test_bad_price_files():
    for old, new, said in (
        ("40.0,41.0", "40.0,39.0", "line 2: open and close must lie from low to high"),
        ("40.0,41.0", ",41.0", "line 2: open: is needed"),
        ("40.0,41.0", "nan,41.0", "line 2: open: must be a number above 0"),
        ("40.0,41.0", "-4,41.0", "line 2: open: must be a number above 0"),
        ("41.0,39.5,40.5", ",39.5,40.5", "line 2: high, low and close: give all three or none"),
        ("2025-10-09 11:30:00", "2025-10-09 10:30:00", "has two bars at 2025-10-09 10:30:00"),
        ("10:30:00", "half past ten", "must be a step such as"),
        ("2025-10-09 10:30", "0001-01-01 10:30", "must be a step such as"),
        ("symbol,ts", "name,ts", "must have the columns symbol, ts, open"),
        ("601318.SH,2025-10-09 10:30:00", ",2025-10-09 10:30:00", "symbol: is empty"),
        ("40.0,41.0", "dear,41.0", "line 2: open: must be a number above 0 to 1e+15 (got 'dear')"),
        ("40.5,1000", "40.5,-1", "line 2: volume: must be a number from 0"),
        (HOURLY, "", "empty: a header row is needed"), (HOURLY, HEADER, "prices_astock_hourly.csv: holds no bar"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=r"prices_astock_hourly\.csv") as caught:
            import_aitrader(files(hourly=HOURLY.replace(old, new)))
        assert said in str(caught.value)


def test_missing_files_broken_lines_and_numbers_beyond_any_book_are_named():
    given, held = files(*honest(), crypto()), files()
    without = {name: data for name, data in given.items() if name != "prices_crypto_daily.csv"}
    broken = json.dumps(line()).replace("2.0", "NaN").encode() + b"}"
    for of, what in (
        (without, r"prices_crypto_daily\.csv: missing, and needed for 1 steps of agent_data_cr"),
        ({"prices_crypto_daily.csv": CRYPTO.encode()}, r"decisions\.jsonl: missing"),
        (held | {"decisions.jsonl": b"\n"}, "contains no step"),
        (given | {"prices_crypto_daily.csv": b"symbol,ts\n\xff"}, "not UTF-8"),
        (files(line(positions_after={"CASH": 1e300})), r"positions_after\.CASH"),
        (files(line(positions_after={"CASH": math.inf})), "."),
        *((held | {"decisions.jsonl": text}, r"decisions\.jsonl line 1")
          for text in (b"not json", b"[]", b'{"track": 1, "track": 2}', broken)),
    ):  # fmt: skip
        with pytest.raises(InputError, match=what):
            import_aitrader(of)
    # a damaged price file is one problem of many
    damaged = files(line(), crypto(), line(track="moon")) | {"prices_astock_hourly.csv": b"\x1f\x8b damaged"}
    steps = "1 steps of agent_data_astock_hour without prices: their file is broken"
    with pytest.raises(InputError, match=rf"(?s)^(?!.*has no bar)(?=.*damaged gzip)(?=.*line 3, track).*{steps}"):
        import_aitrader(damaged)


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


# The season of a log

TWO_DAYS = f"""{HEADER}\
AAA,2025-11-02,10,12,9,11,1
AAA,2025-11-03,11,12,9,12,1
AAA,2025-11-04,12,,,,
BBB,2025-11-02,50,52,49,51,1
BBB,2025-11-04,60,,,,
"""


def step(day: int, model: str = "one", **after: float):
    return crypto(step=f"2025-11-0{day}", model=model, actions=[], positions_after=after)


def two_days(*lines: dict[str, object], prices: str = TWO_DAYS):
    return season_aitrader(files(*lines, crypto=prices), "crypto")


def test_books_between_steps_and_without_a_price_are_valued_and_named():
    found = two_days(step(2, CASH=0.0, BBB=1000.0), step(3, CASH=0.0, BBB=1000.0))
    assert [(day, nav, stale) for day, _, _, _, nav, _, _, stale in found.books] == [
        ("2025-11-02", 50_000.0, ()), ("2025-11-03", 50_000.0, ("BBB",)),
    ]  # fmt: skip
    # a day without a step keeps the book, and a day before the first has none
    found = two_days(step(2, CASH=50_000.0), step(4, CASH=50_000.0), step(3, "two", CASH=39_000.0, AAA=1000.0))
    assert [(agent, day[-2:], nav, state) for day, agent, state, _, nav, *_ in found.books] == [
        *(("one", day, 50_000.0, "ok") for day in ("02", "03", "04")),
        ("two", "03", 50_000.0, "ok"), ("two", "04", 51_000.0, "ok"),
    ]  # fmt: skip
    # a symbol without any price yet leaves no value
    late = TWO_DAYS.replace("BBB,2025-11-02,50,52,49,51,1\n", "")
    found = two_days(step(2, CASH=0.0, BBB=1.0), step(4, CASH=0.0, BBB=1.0), prices=late)
    assert [(day, nav) for day, _, _, _, nav, *_ in found.books] == [("2025-11-04", 60.0)]
    assert next(held for _, name, *_, held, _ in found.baselines if name == "equal weight") == {"AAA": 5000.0}


@given(st.floats(1, 1e6), st.floats(1, 1e6))
def test_equal_weight_earns_the_mean_return_of_its_symbols(first, second):
    prices = TWO_DAYS.replace("AAA,2025-11-04,12", f"AAA,2025-11-04,{first!r}")
    prices = prices.replace("BBB,2025-11-04,60", f"BBB,2025-11-04,{second!r}")
    found = two_days(step(2, CASH=50_000.0), step(4, CASH=50_000.0), prices=prices)
    ends = {name: nav for day, name, _, _, nav, *_ in found.baselines if day == "2025-11-04"}
    assert ends["equal weight"] == pytest.approx(50_000 * (first / 10 + second / 50) / 2, rel=1e-12)
    assert ends["cash"] == 50_000


def test_fills_have_their_stated_price_or_the_open_and_what_an_import_refuses_is_passed_over():
    fills = [action("buy", "600036.SH", 100, price=40.2), action("sell", "601318.SH", 100)]
    after = {"600036.SH": 100, "601318.SH": -100, "CASH": 101_480.0}
    found = season_aitrader(files(line(actions=fills, positions_after=after)), "cn-hourly")
    assert [row[3:7] for row in found.fills] == [(1, "600036.SH", 100.0, 40.2), (2, "601318.SH", -100.0, 55.0)]
    good = honest()
    found = season_aitrader(files(*good, line("2030-01-01 10:30:00")), "cn-hourly")
    assert found == season_aitrader(files(*good), "cn-hourly")
    with pytest.raises(UnknownNameError, match=r"unknown track 'us'\. Known: cn-hourly, crypto"):
        season_aitrader(files(*good, crypto()), "us")
