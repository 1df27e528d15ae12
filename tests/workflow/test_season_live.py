"""A live season at the command line, day by day: corporate actions, a halt, late data, and agents that fail."""

# ruff: noqa: I001

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from live_seasons import (
    COST, DAYS, DIVIDEND_DAY, HALT, LATE, NAMES, NEXT, SEASON, SPLIT_DAY, START, Row, arrive, as_they_are, bar_of,
    by_action, by_close, by_factor, evening, file_of, scripted, stepped, traded,
)  # fmt: skip
from season_runs import Scripted, begun, orders

from assaymark.cli import main, models
from assaymark.engine import Ledger
from assaymark.importers import EQUAL_WEIGHT
from assaymark.records import Context
from assaymark.workflow import DECISIONS, MEASUREMENTS, RunFolder, Store
from assaymark.workflow import tracks

BUYS = {"DIVI": 200.0, "HALT": 300.0, "PLAIN": 100.0, "SPLIT": 20.0}


def wishes(day: str) -> str:
    """Buy everything on the first day, more of SPLIT on the evening before its split; sell HALT while it is halted."""
    if day == str(SEASON[0]):
        return orders(*((name, "buy", units) for name, units in BUYS.items()))
    if day == str(SEASON[6]):
        return orders(("SPLIT", "buy", 3.0))
    return orders(("HALT", "sell", 100.0)) if day == str(HALT[0]) else orders()


AGENTS = {"buyer": "test/buyer", "babbler": "test/babbler"}


@dataclass(frozen=True)
class Played:
    """A season that was played to its end: its folder and site, and the status and output of each step."""

    folder: RunFolder
    site: Path
    said: Mapping[date | str, tuple[int, str, str]]
    buyer: Scripted


@pytest.fixture(scope="module", params=[by_factor, by_action], ids=["factors", "listed"])
def played(request, tmp_path_factory) -> Played:
    """The season of twenty days, by `season step` on each evening. The data of one day come after those of the next."""
    path = tmp_path_factory.mktemp("live")
    source, folder = path / "market", path / "run"
    arrive(source, DAYS[-21], request.param)
    (path / "season.toml").write_text(file_of(source, AGENTS))
    buyer = Scripted(wishes)
    said = {}
    with scripted({"test/buyer": buyer, "test/babbler": Scripted(lambda _: "I would rather not use JSON.")}):
        # Unasked: `season init` refuses an agent that writes no JSON on its first call.
        tracks.lock_season(RunFolder(folder), file_of(source, AGENTS), "season.toml", now=datetime.now(UTC))
        for day in SEASON:
            if day != LATE:
                arrive(source, day, request.param, without=LATE if day == NEXT else None)
            said[day] = stepped(folder, evening(day))
            if day == NEXT:
                arrive(source, LATE, request.param)
                said["then"] = stepped(folder, evening(day, hour=23))
        assert main(["season", "judge", str(folder)]) == 0
        assert main(["season", "publish", str(folder), "--out", str(path / "site"), "--language", "en"]) == 0
    return Played(RunFolder(folder), path / "site", said, buyer)


def by_hand() -> list[float]:
    """What the buyer's book is worth on each evening, from what was traded and nothing else."""
    cash, units, close = START, dict.fromkeys(NAMES, 0.0), dict.fromkeys(NAMES, 0.0)
    worth = []
    for at, day in enumerate(SEASON):
        for name in NAMES:
            if bar := bar_of(name, day):
                units[name] *= bar.split
                cash += units[name] * bar.dividend
        bought = BUYS if at == 1 else {"SPLIT": 3.0 * 10.0} if day == SPLIT_DAY else {}
        for name, wanted in bought.items():
            cash -= wanted * bar_of(name, day).open * (1 + COST)
            units[name] += wanted
        close |= {name: bar.close for name in NAMES if (bar := bar_of(name, day))}
        worth.append(cash + sum(units[name] * close[name] for name in NAMES))
    return worth


def test_total_returns_are_those_by_hand(played):
    navs = [one for one in Store(played.folder).read(tracks.NAVS) if one.agent == "buyer"]
    assert [one.day for one in navs] == [str(day) for day in SEASON]
    assert [one.nav for one in navs] == pytest.approx(by_hand(), rel=1e-9)
    (found,) = [one for one in Store(played.folder).read(MEASUREMENTS)
                if one.name == "season.return" and one.labels == {"agent": "buyer"}]  # fmt: skip
    assert found.value == pytest.approx(by_hand()[-1] / START - 1, rel=1e-9)
    assert navs[7].positions["SPLIT"] == 230.0
    # the baseline earns the same actions
    units = {name: START / 4 / (1 + COST) / bar_of(name, SEASON[1]).open for name in NAMES}
    last = {name: traded()[name][max(traded()[name])].close for name in NAMES}
    worth = sum(units[name] * (10.0 if name == "SPLIT" else 1.0) * last[name] for name in NAMES)
    held = tracks.season_material(played.folder).baselines[EQUAL_WEIGHT]
    assert held[-1].nav == pytest.approx(units["DIVI"] * 1.25 + worth, rel=1e-9)


def test_actions_are_rows_of_their_own_kind_that_add_up(played):
    fills = [one for one in Store(played.folder).read(tracks.FILLS) if one.agent == "buyer"]
    acted = {one.kind: one for one in fills if one.kind != "order"}
    assert {kind: (one.day, one.symbol) for kind, one in acted.items()} == {
        "split": (str(SPLIT_DAY), "SPLIT"), "dividend": (str(DIVIDEND_DAY), "DIVI")
    }  # fmt: skip
    assert (acted["split"].quantity, acted["split"].price, acted["split"].cost) == (180.0, 0.0, 0.0)
    assert (acted["dividend"].quantity, acted["dividend"].cost) == (0.0, pytest.approx(-250.0))
    assert acted["dividend"].price == pytest.approx(1.25)
    cash = START - sum(one.quantity * one.price + one.cost for one in fills)
    assert cash == pytest.approx(
        [one.cash for one in Store(played.folder).read(tracks.NAVS) if one.agent == "buyer"][-1]
    )
    waited = [one for one in fills if (one.kind, one.day) == ("order", str(SPLIT_DAY))]
    assert [(one.quantity, one.record_id) for one in waited] == [(30.0, f"live-{SEASON[6]}-buyer")]
    store = Store(played.folder)
    checks = store.read(tracks.CHECKS)
    assert {one.kind for one in checks if one.agent == "buyer"} == {"fill", "cash", "position"}
    assert all(one.passed == one.checks and not one.mismatches for one in checks)
    rejected = [one for one in store.read(tracks.REJECTIONS) if one.agent == "buyer"]
    assert [(one.symbol, one.reason, one.day) for one in rejected] == [("HALT", "stale-price", str(HALT[1]))]
    assert [one.stale for one in store.read(tracks.NAVS) if one.agent == "buyer"].count(("HALT",)) == 3
    flags = {one.flags for one in store.read(DECISIONS) if one.agent.id == "babbler"}
    assert flags == {("invalid-reply",)}


def test_a_late_day_is_waited_for_and_taken_in_order(played):
    until = f"waiting for the data of {LATE} until {LATE + timedelta(days=2)} 21:30 UTC"
    said = [played.said[when] for when in (LATE, NEXT, "then")]
    assert [(status, err) for status, _, err in said[:2]] == [(0, "")] * 2
    assert until in said[0][1]
    assert "nothing is due" not in said[0][1]
    assert f"{until}; the days after it are there and follow in order" in said[1][1]
    assert said[2][0] == 0
    assert "live: 2 days done" in said[2][1]
    assert {one.state for one in Store(played.folder).read(tracks.NAVS)} == {"ok"}


def shown(played: Played, day: date) -> Context:
    """What the buyer was shown on a day."""
    (found,) = [one for one in Store(played.folder).contexts().values()
                if one.cutoff.date() == day and one.portfolio.positions.get("PLAIN")]  # fmt: skip
    return found


def test_agents_are_shown_bars_on_todays_level_and_told_of_actions(played):
    context = shown(played, SPLIT_DAY)
    series = {one.instrument: one for one in context.series}["SPLIT"]
    before, now = bar_of("SPLIT", SEASON[6]), bar_of("SPLIT", SPLIT_DAY)
    assert series.close[-2:] == pytest.approx((before.close / 10, now.close), rel=1e-5)
    assert series.open[-1] == pytest.approx(now.open, rel=1e-5)
    assert series.volume[-2:] == (10_000.0, 10_000.0)
    assert len(series.open) == len(series.high) == len(series.low) == len(series.volume) == len(series.close) == 30
    facts = {(one.instrument, one.field): one for one in context.facts}
    assert facts["SPLIT", "price"].value == series.close[-1]
    assert (facts["SPLIT", "split"].value, facts["SPLIT", "split"].as_of.date()) == (10.0, SPLIT_DAY)
    assert "SPLIT: split of 10 for 1" in context.prompt
    assert "your book now holds 200 units" in context.prompt
    later = {(one.instrument, one.field): one for one in shown(played, SEASON[12]).facts}
    assert later["DIVI", "dividend"].value == pytest.approx(1.25)
    assert later["DIVI", "dividend"].available_at.date() == DIVIDEND_DAY
    assert "250.00 was paid into its cash" in shown(played, DIVIDEND_DAY).prompt


def test_parts_that_the_season_has_no_data_for_are_not_applicable(played):
    scores = [one.score for one in Store(played.folder).read(tracks.GRADES) if one.agent == "buyer"]
    parts = {"claim_support", "momentum_use", "no_unsupported_claims", "no_contradiction"}
    assert all(set(one.grades.evidence) == parts for one in scores)
    plan = tracks.season_material(played.folder).scoring
    assert [part.name for part in plan.not_applicable] == ["valuation_use", "analyst_use", "sector_use"]
    assert {part.name: round(part.weight, 3) for part in plan.evidence}["claim_support"] == round(25 / 65 * 100, 3)
    with Ledger.open(played.folder.ledger) as ledger:
        (system, *_) = [message.text for message in ledger.call(scores[0].grades.parts[0].call_key).messages]
    assert "Not applicable in this season, whose material has no such field: Correct use of valuation" in system
    assert "analyst_use" not in system
    agent = html.unescape((played.site / "agents" / "buyer.html").read_text(encoding="utf-8"))
    assert "Not applicable, as the season has no such data: " in agent
    assert agent.count("Analyst") == 1
    rules = html.unescape((played.site / "rules.html").read_text(encoding="utf-8")).replace("\xa0", " ")
    assert "not applicable: the season has no such data, and the 10 % of this part went to the others" in rules


def test_pages_say_what_came_into_force(played):
    first = html.unescape((played.site / "index.html").read_text(encoding="utf-8"))
    assert "Splits or dividends of DIVI and SPLIT came into force while they were held." in first
    agent = "".join(
        html.unescape(one.read_text(encoding="utf-8")) for one in (played.site / "agents" / "buyer").glob("*.html")
    )
    assert "split of SPLIT: 180 units added" in agent
    assert "dividend of DIVI: 250.00 in cash" in agent
    assert "Returns are total returns" in html.unescape((played.site / "rules.html").read_text(encoding="utf-8"))


def small(path: Path, rows: Callable[..., Iterator[Row]], *arrived: date, **rest: object) -> tuple[RunFolder, dict]:
    """A season of the buyer alone over the snapshots of some days."""
    for day in arrived:
        arrive(path / "market", day, rows, **rest)
    who = {**models(), "test/buyer": Scripted(wishes)}
    return begun(path / "run", file_of(path / "market", {"buyer": "test/buyer"}), who), who


def test_a_source_that_does_not_say_whether_prices_are_adjusted_is_refused_for_live_seasons(tmp_path, capsys):
    arrive(tmp_path / "market", SEASON[0], by_close)
    (tmp_path / "season.toml").write_text(text := file_of(tmp_path / "market", {"buyer": "reference/momentum"}))
    assert main(["season", "init", str(tmp_path / "season.toml"), "--out", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().err
    assert "files does not say whether prices are adjusted for splits and dividends (DIVI, HALT, PLAIN, SPLIT)" in said
    assert "adj_factor" in said
    assert not (tmp_path / "run").exists()
    source = tmp_path / "market" / str(SEASON[0])
    replay = text.replace(f"'{tmp_path / 'market'}', live = true", f"'{source}'").replace(
        str(SEASON[-1]), str(SEASON[0])
    )
    (tmp_path / "season.toml").write_text(replay)
    assert main(["season", "init", str(tmp_path / "season.toml"), "--out", str(tmp_path / "run")]) == 0


def test_a_move_that_no_action_explains_is_a_failing_check_with_its_day_and_instrument(tmp_path):
    folder, who = small(tmp_path, as_they_are, SEASON[8])
    tracks.step_season(folder, who, now=evening(SEASON[8]))
    checks = {one.kind: one for one in Store(folder).read(tracks.CHECKS)}
    bought = checks["fill"]  # of SPLIT something was bought on that day
    assert (bought.checks - bought.passed, len(bought.mismatches)) == (1, 1)
    before, now = bar_of("SPLIT", SEASON[6]), bar_of("SPLIT", SPLIT_DAY)
    said = f"price of SPLIT on {SPLIT_DAY}: {now.close:.10g} after {before.close:.10g} on {SEASON[6]}, "
    said += "explained by no action"
    assert bought.mismatches[0].endswith(said)
    assert checks["position"].passed == checks["position"].checks
    tracks.judge_season(folder, who)
    tracks.publish_season(folder, tmp_path / "site")
    first = html.unescape((tmp_path / "site" / "index.html").read_text(encoding="utf-8"))
    assert f"1 move of a price is explained by no split or dividend of the market data (SPLIT {SPLIT_DAY})." in first
    agent = html.unescape((tmp_path / "site" / "agents" / "buyer.html").read_text(encoding="utf-8"))
    assert f"The price of SPLIT went from {before.close:.10g} on {SEASON[6]}" in agent
    german = html.unescape((tmp_path / "site" / "de" / "index.html").read_text(encoding="utf-8"))
    assert f"von keinem Split und keiner Dividende der Marktdaten erklärt (SPLIT {SPLIT_DAY})." in german
    german = html.unescape((tmp_path / "site" / "de" / "agents" / "buyer.html").read_text(encoding="utf-8"))
    assert "Der Kurs von SPLIT ging von" in german


def test_a_replay_of_the_whole_market_has_the_books_of_the_live_season(played, tmp_path):
    arrive(tmp_path / "market", SEASON[-1])
    text = file_of(tmp_path / "market" / str(SEASON[-1]), {"buyer": "test/buyer"}).replace(", live = true", "")
    who = {**models(), "test/buyer": Scripted(wishes)}
    folder = begun(tmp_path / "run", text, who)
    tracks.run_season(folder, who, now=evening(SEASON[-1]))
    live = [one for one in Store(played.folder).read(tracks.NAVS) if one.agent == "buyer"]
    assert [one.nav for one in Store(folder).read(tracks.NAVS)] == pytest.approx([one.nav for one in live], rel=1e-9)


def test_a_day_whose_data_do_not_come_in_time_is_lost_loudly_and_overdue_data_are_an_error(tmp_path):
    folder, who = small(tmp_path, by_factor, SEASON[3], without=SEASON[2])
    late = datetime.combine(SEASON[2], time(21, 30), UTC) + timedelta(hours=48)
    waiting = tracks.step_season(folder, who, now=late - timedelta(minutes=1))
    assert waiting.days == tuple(SEASON[:2])
    assert waiting.overdue == ()
    assert f"waiting for the data of {SEASON[2]}" in waiting.lines[-1]
    done = tracks.step_season(folder, who, now=late)
    assert done.days == tuple(SEASON[2:4])
    assert done.overdue == (
        f"{SEASON[2]}: its data did not come in time; the day is recorded without, nobody was asked, and orders waited",
    )
    assert [one.state for one in Store(folder).read(tracks.NAVS)] == ["ok", "ok", "no data", "ok"]
    for day in SEASON[:3]:
        arrive(tmp_path / "later", day)
    file, over = tmp_path / "season.toml", tmp_path / "over"
    file.write_text(file_of(tmp_path / "later", {"holder": "reference/equal-weight"}))
    assert main(["season", "init", str(file), "--out", str(over)]) == 0
    for done in (True, False):  # however long ago they were, days whose data are there are done
        status, out, err = stepped(over, evening(SEASON[10]))
        assert (status, "3 days done" in out, "nothing is due" in out) == (1, done, False)
        assert f"{SEASON[3]}: its data are overdue since {SEASON[3] + timedelta(days=2)} 21:30 UTC" in err
        assert f"the data end on {SEASON[2]}" in err
    file.write_text(file.read_text().replace("[calendar]", "[calendar]\nlate_after_h = 700"))
    assert main(["season", "init", str(file), "--out", str(tmp_path / "slow")]) == 0
    assert stepped(tmp_path / "slow", evening(SEASON[10]))[0] == 0


class Holding(BaseHTTPRequestHandler):
    """An agent that trades nothing."""

    def do_POST(self) -> None:
        body = json.dumps({"orders": [], "rationale": "I hold."}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[str]:
    """The model of an agent behind an address, which is gone afterwards."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Holding) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http/127.0.0.1:{server.server_port}/decide"
        server.shutdown()


def test_an_absent_agent_never_stops_the_day(tmp_path):
    source, folder = tmp_path / "market", tmp_path / "run"
    for day in SEASON[:3]:
        arrive(source, day)
    buyer = Scripted(lambda day: orders((NAMES[0], "buy", 1.0)) if day == str(SEASON[0]) else orders())
    with scripted({"test/buyer": buyer}):
        with serving() as ghost:
            (tmp_path / "season.toml").write_text(file_of(source, {"buyer": "test/buyer", "ghost": ghost}))
            assert main(["season", "init", str(tmp_path / "season.toml"), "--out", str(folder)]) == 0
            assert stepped(folder, evening(SEASON[0]))[0] == 0
        status, out, _ = stepped(folder, evening(SEASON[2]))
    assert status not in (0, 1)  # done, and degraded
    assert "live: 2 days done" in out
    assert "ghost" in out
    store = Store(RunFolder(folder))
    flags = {(one.agent.id, str(one.decided_at.date())): one.flags for one in store.read(DECISIONS)}
    assert flags["ghost", str(SEASON[0])] == ()
    assert "absent" in flags["ghost", str(SEASON[1])]
    assert all(flags["buyer", str(day)] == () for day in SEASON[:3])
    assert [one.positions for one in store.read(tracks.NAVS) if one.agent == "buyer"][-1] == {NAMES[0]: 1.0}
