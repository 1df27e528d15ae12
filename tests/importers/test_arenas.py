"""Alpha Arena and DeepFund: small files in their real formats, and the real data by an independent reading."""

from __future__ import annotations

import ast
import gzip
import json
import re
import shlex
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import made_deepfund
import made_nof1
import pytest

from assaymark.cli import main
from assaymark.errors import InputError
from assaymark.importers import IMPORTERS


def nof1(conversations=None, trades=None, **options):
    files = made_nof1.files(made_nof1.honest() if conversations is None else conversations, trades)
    return IMPORTERS["nof1"].read(files, **options)


def told(call, *given) -> list[str]:
    with pytest.raises(InputError) as caught:
        call(*given)
    return [str(one) for one in caught.value.problems]


def test_a_conversation_is_one_decision_with_several_orders_and_a_second_call_in_a_bar_another_question():
    decisions = nof1().decisions
    names = [one.record_id for one in decisions]
    assert names == [f"2025-10-28T07:03Z/{one}" for one in ("0/gpt-5", "1/gpt-5", "0/grok-4")]
    first, failed = decisions[0], decisions[2]
    orders = [(a.instrument, a.kind, a.quantity, a.rationale) for a in first.actions]
    assert orders == [("ETH", "hold", 1.38, None), ("BTC", "buy", 0.02, "BTC broke out at 114207.5.")]
    eth = first.actions[0]
    assert (eth.leverage, eth.stop, eth.target, eth.confidence) == (15, 3920, 4265, 0.65)
    assert [(one.kind, one.text) for one in first.rationales] == [
        ("summary", "I hold ETH."), ("candidate", "BTC: BTC broke out at 114207.5."),
        ("risk", "Invalidation conditions\nETH: 4-hour close below 3900\nBTC: 4-hour close below 3900"),
        ("stage", "ETH trades at 4116.25, above its stop of 3920."),
    ]  # fmt: skip
    assert first.stages["orders"][0] == {"instrument": "ETH", "risk_usd": 157.96}
    assert (first.agent.family, first.call.seconds, first.call.timing_source) == ("openai", 46.0, "derived")
    kinds = [one.kind for one in failed.rationales]  # of a reply that is no JSON
    assert (failed.actions, failed.flags, kinds) == ((), ("invalid-reply",), ["stage"])


def test_the_prompt_is_kept_and_its_fixed_lines_are_facts():
    result = nof1()
    seen = result.contexts[result.decisions[0].context_id]
    assert seen.prompt == made_nof1.prompt()
    assert (seen.cutoff, seen.completeness) == (datetime(2025, 10, 28, 7, 3, 51, 230005, UTC), "partial")
    wanted = {
        ("ETH", "current_price"): (4116.25, "price"), ("BTC", "funding_rate"): (1.25e-05, "ratio"),
        ("ETH", "ema 50 period 4h"): (4004.813, "price"), ("ETH", "stop_loss"): (3920.0, "price"),
        ("", "total return"): (-61.16, "percent"),
    }  # fmt: skip
    facts = {(fact.instrument, fact.field): (fact.value, fact.unit) for fact in seen.facts}
    assert {key: facts[key] for key in wanted} == wanted
    assert (seen.portfolio.cash, seen.portfolio.nav, seen.portfolio.positions) == (1791.5, 3884.12, {"ETH": 1.38})
    # the section of BTC does not say its interval in minutes: its mid prices stay text
    (bars,) = seen.series
    assert (bars.instrument, bars.interval_s, bars.close[-1], bars.times[-1]) == ("ETH", 180, 4116.25, seen.cutoff)
    assert "interval of the mid prices (kept as text)" in result.report.missing


def test_accounts_and_closed_trades_are_outcomes():
    result = nof1(trades=[made_nof1.trade(), made_nof1.trade(id="other", entry_time=made_nof1.START - 9e4)])
    account, closed = result.outcomes
    assert (account.record_id, account.horizon) == ("2025-10-28T07:03Z/0/gpt-5", "to the agent's next step")
    assert account.value == pytest.approx(3980.0 / 3884.12 - 1)
    assert (closed.horizon, closed.value) == ("BTC until it was closed", pytest.approx(-0.01))
    assert result.report.no_place["trades that no imported decision opened"].examples == ("other",)
    assert "exit_liquidation of a trade" in result.report.no_place


@pytest.mark.parametrize("name", ["nof1", "deepfund"])
def test_the_manual_says_how_each_is_imported(name, tmp_path, monkeypatch, capsys):
    """The command of the manual, on a small file in the real format, leads to records that a plan can be locked on."""
    monkeypatch.chdir(tmp_path)
    make = {"nof1": made_nof1, "deepfund": made_deepfund}[name]
    Path("FOLDER").mkdir()
    for file, data in make.files(make.honest()).items():
        (Path("FOLDER") / file).write_bytes(gzip.compress(data) if name == "nof1" else data)
    manual = (Path(__file__).parents[2] / "docs/import.md").read_text(encoding="utf-8")
    (line,) = (one for one in manual.splitlines() if one.startswith(f"assaymark import {name} "))
    assert main(shlex.split(line)[1:]) == 0
    assert (tmp_path / "runs" / name / "tables/decisions.parquet").is_file()
    said = capsys.readouterr().out
    if name == "nof1":
        assert "flag invalid-reply: 1" in said
        assert "no place for inserted_at, run_id, skill of a conversation: 3 (such as gpt-5_" in said


def test_every_problem_of_the_conversations_at_once():
    call, order = made_nof1.conversation, made_nof1.order
    odd = [
        call(llm_response={"ETH": order("BTC", confidence=2)}), call(llm_response={"ETH": order("BTC")}),
        call(llm_response={"ETH": order("ETH", "wait")}, after=1.0), call(user_prompt="Buy?"), call(after=-9.0),
        {"id": "x"}, call("glm-4"), call("glm-4", id="again"),
    ]  # fmt: skip
    said = told(nof1, odd)
    place = "conversations.json conversation"
    signals = "must be 'buy_to_enter', 'sell_to_enter', 'hold' or 'close_position'"
    within = "is not within a day after the prompt's current time, 2025-10-28T07:03:51.230005+00:00"
    assert said[:5] == [
        f"{place} 1, llm_response.ETH, confidence: must be at most 1 (got 2)",
        f"{place} 2, llm_response.ETH.coin: is another coin's order (got 'BTC')",
        f"{place} 3, llm_response.ETH, signal: {signals} (got 'wait')",
        f"{place} 4, user_prompt: does not begin with its minutes, its current time and its invocations",
        f"{place} 5, timestamp: {within} (got 2025-10-28T07:03:42.230005+00:00)",
    ]  # fmt: skip
    assert f"{place} 6, model_id: is missing" in said
    assert said[-1] == f"{place} 8, id: glm-4 is given twice (first at {place} 7)"
    assert nof1(odd, keep_going=True).report.good == 1
    for data, what in (
        (b"{", "not JSON"), (b'{"trades": []}', "conversations must be a list (got null; other keys: trades)"),
        (b'{"conversations": []}', "contains no conversation"),
    ):  # fmt: skip
        assert what in told(IMPORTERS["nof1"].read, {"conversations.json": data})[0]


def test_what_cannot_be_read_of_a_prompt_stays_text():
    text = made_nof1.prompt()
    for good, bad in (
        (made_nof1.HELD, "{'symbol': 'ETH', 'quantity': 1e999}\n{'symbol': " + "[" * 500 + "}\n{'symbol'}"),
        ("Mid prices: [", "Mid prices: [none, "), ("Available Cash: 1791.5", "Available Cash: " + "9" * 400),
        ("current_ema20 = 3983.611", "current_ema20 = high"),
    ):  # fmt: skip
        text = text.replace(good, bad)
    result = nof1([made_nof1.conversation(user_prompt=text)])
    (seen,) = result.contexts.values()
    assert (seen.prompt, seen.series, seen.portfolio) == (text, (), None)
    assert {name.partition(" (")[0]: one.count for name, one in result.report.missing.items()} == {
        "current_price in its fixed line": 2, "interval of the mid prices": 1, "mid prices": 1,
        "position in its fixed form": 3, "available_cash in its fixed line": 1, "outcome at a next step": 1,
    }  # fmt: skip


def deepfund(rows=None, **options):
    return IMPORTERS["deepfund"].read(made_deepfund.files(rows or made_deepfund.honest()), **options)


def test_a_row_is_one_decision_with_all_its_prompts():
    result = deepfund()
    first, again, other = sorted(result.decisions, key=lambda one: one.provenance.path)
    assert [(one.record_id, one.agent.family, one.flags) for one in (first, again, other)] == [
        ("2025-04-14/MSFT/grok-3-mini (exp-a)", "xai", ()),
        ("2025-04-14/MSFT/grok-3-mini (exp-a)/r2", "xai", ("replayed",)),
        ("2025-04-14/MSFT/glm-4 (exp-b)", "zhipu", ()),
    ]
    assert (again.replicate, again.actions[0].kind, again.decided_at.tzinfo) == (2, "hold", UTC)
    assert other.missing == ("text",)
    assert (first.cluster, first.actions[0].quantity, first.actions[0].price) == ("2025-W16", 90, 387.81)
    stages = [one.text for one in first.rationales if one.kind == "stage"]
    assert stages == ["technical analyst (Bearish): An RSI of 71.2 is high."]
    seen = result.contexts[first.context_id]
    assert seen.prompt.endswith("Decide.\n\n--- prompt of the technical analyst ---\nRSI is 71.2.")
    facts = {one.field: one.value for one in seen.facts}
    assert facts == {"current_price": 387.81, "holding_shares": 0.0, "remaining_shares": 90.0}
    assert seen.cutoff == datetime(2025, 4, 15, tzinfo=UTC)
    places = result.report.no_place
    assert places["signals of runs that decided nothing on their ticker"].examples == ("news MSFT",)
    assert places["cashflow, positions, total_assets, trading_date, updated_at of portfolio"].count == 4


def test_every_problem_of_the_database_at_once_and_a_damaged_one_is_one_line():
    rows, row = made_deepfund.honest(), made_deepfund.decision
    rows["decision"] += [
        row("d4", "pa1", shares=-1, action="Wait"), row("d5", "pz"), row("d6", "pa1", trading_date="yesterday"),
        row("d8", "pa1", trading_date="9999-12-31T00:00:00"), row("d7", "pb2"),
    ]  # fmt: skip
    rows["portfolio"][3]["config_id"] = "cz"
    assert told(deepfund, rows) == [
        f"deepfund.db decision row {one}"
        for one in (
            "4, action: must be 'Buy', 'Sell' or 'Hold' (got 'Wait')", "4, shares: must be at least 0 (got -1)",
            "6, trading_date: must be a time such as 2024-03-01T16:00:00Z (got 'yesterday')",
            "7, trading_date: must be a time from 1970 to 2200 (got 9999-12-31T00:00:00)",
            "5, portfolio_id: no such portfolio (got 'pz')",
            "8, portfolio_id: its portfolio is of no config (got 'cz')",
        )
    ]  # fmt: skip
    report = deepfund(rows, keep_going=True).report
    assert (report.good, report.bad) == (3, 5)
    whole = made_deepfund.files(made_deepfund.honest())["deepfund.db"]
    for data in (b"SQLite format 3\x00" + b"\x01" * 400, whole[:5000]):
        with pytest.raises(InputError, match=r"deepfund\.db: no readable SQLite file"):
            IMPORTERS["deepfund"].read({"deepfund.db": data})
    tables = {name: text.replace("llm_prompt, action", "action") for name, text in made_deepfund.TABLES.items()}
    del tables["signal"]
    said = told(IMPORTERS["deepfund"].read, made_deepfund.files({}, tables))
    wanted = ["deepfund.db: has no table signal", "deepfund.db decision: no column llm_prompt"]
    assert [one.partition(" (got")[0] for one in said] == wanted


@pytest.mark.shared
def test_the_real_conversations(shared):
    folder = shared / "data" / "nof1"
    result = IMPORTERS["nof1"].read({name: (folder / name).read_bytes() for name in IMPORTERS["nof1"].files(folder)})
    raw = json.loads(gzip.decompress((folder / "conv.json.gz").read_bytes()))["conversations"]
    assert (result.report.good, result.report.bad, result.report.counts["agents"]) == (100, 0, 6)
    of = {one.provenance.path.partition(" ")[0]: one for one in result.decisions}
    assert len(of) == 100
    kinds = {"hold": "hold", "buy_to_enter": "buy", "close_position": "close"}
    fields = ("quantity", "leverage", "stop_loss", "profit_target", "confidence")
    for said in raw:
        made = of[said["id"]]
        orders = {name: one for name, one in said["llm_response"].items() if isinstance(one, dict)}
        found = [(a.instrument, a.kind, a.quantity, a.leverage, a.stop, a.target, a.confidence) for a in made.actions]
        assert found == [(n, kinds[one["signal"]], *(one[key] for key in fields)) for n, one in orders.items()]
        risk = "\n".join(one.text for one in made.rationales if one.kind == "risk")
        assert all(one["invalidation_condition"] in risk for one in orders.values())
        seen = result.contexts[made.context_id]
        assert seen.prompt == said["user_prompt"]
        positions = [ast.literal_eval(line) for line in seen.prompt.split("\n") if line.startswith("{'symbol'")]
        assert seen.portfolio.positions == {one["symbol"]: one["quantity"] for one in positions}
        facts = {(fact.instrument, fact.field): fact.value for fact in seen.facts}
        prices = re.findall(r"### ALL (\w+) DATA\s+current_price = ([\d.]+)", seen.prompt)
        assert len(prices) == 6
        assert all(facts[name, "current_price"] == float(price) for name, price in prices)
        assert all(facts[one["symbol"], "liquidation_price"] == one["liquidation_price"] for one in positions)
    assert sum(len(one.actions) for one in result.decisions) == 456
    families = {one.agent.family for one in result.decisions}
    assert families == {"alibaba", "anthropic", "deepseek", "google", "openai", "xai"}
    assert result.report.flags == {"invalid-reply": 1}
    assert result.report.no_place["trades that no imported decision opened"].count == 253


@pytest.mark.shared
def test_the_real_database(shared, tmp_path):
    packed = shared / "data" / "deepfund" / "deepfund.db.gz"
    result = IMPORTERS["deepfund"].read({packed.name: packed.read_bytes()})
    assert main(["import", "deepfund", str(packed), "--out", str(tmp_path / "run")]) == 0
    assert main(["import", "nof1", str(packed), "--out", str(tmp_path / "run")]) == 1
    (tmp_path / "d.db").write_bytes(gzip.decompress(packed.read_bytes()))
    with closing(sqlite3.connect(tmp_path / "d.db")) as base:
        columns = "id, ticker, action, shares, price, justification, llm_prompt"
        rows = base.execute(f"select {columns} from decision").fetchall()
    made = {one.provenance.path.removeprefix("decision "): one for one in result.decisions}
    assert len(made) == 24
    for name, ticker, action, shares, price, justification, prompt in rows:
        (order,) = made[name].actions
        assert (order.instrument, order.kind, order.quantity, order.price) == (ticker, action.lower(), shares, price)
        assert made[name].rationales[0].text == justification
        seen = result.contexts[made[name].context_id]
        assert seen.prompt.startswith(prompt.strip())
        assert [one.value for one in seen.facts if one.field == "current_price"] == [price]
    assert sum(one.kind == "stage" for made in result.decisions for one in made.rationales) == 70
    assert result.report.flags == {"replayed": 20}
