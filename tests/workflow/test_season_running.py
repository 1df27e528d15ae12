"""Seasons day by day: the same bytes however often they were stopped; what goes wrong is written down."""

# ruff: noqa: I001

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from agent_servers import free_port
from season_runs import IDS, NOW, Scripted, begun, market, orders, season_text, stored, table_bytes, until, without

from assaymark.agents import season_message
from assaymark.claims import english
from assaymark.cli import main, models
from assaymark.engine.providers.http_agent import PythonAgent
from assaymark.errors import InputError, LedgerError, ModelError, PlanError
from assaymark.market import synthetic_history
from assaymark.portfolio import Bar, Book, StatedFill, StatedStep, reconcile
from assaymark.prompting import fence, material_blocks
from assaymark.records import Context, canonical_json, content_id
from assaymark.workflow import CONTEXTS, DECISIONS, RunFolder, Store, content_digest
from assaymark.workflow import tracks

A, B = IDS[0], IDS[1]
TABLES = ("contexts", "decisions", "fills", "rejections", "navs", "outcomes", "baselines", "checks")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> RunFolder:
    """A replay that nobody disturbed. Not to be changed."""
    folder = begun(tmp_path_factory.mktemp("whole") / "run", season_text(), models())
    done = tracks.run_season(folder, models(), now=NOW)
    assert len(done.days) == 11
    return folder


def scripted(tmp_path: Path, answers, history=None, **changes) -> tuple[RunFolder, Scripted, dict]:
    """A season of a small market in which agent one is scripted and agent two holds."""
    source = stored(tmp_path / "market", history or market())
    head = f"universe = {IDS}\nmarket = {{source = '{source}'}}\n" + changes.pop("head", "")
    one = Scripted(answers)
    who = {"test/one": one, "test/two": Scripted(lambda _: orders())}
    text = season_text(head=head, model="test/one", other="test/two", last="2024-03-08", **changes)
    return begun(tmp_path / "run", text, who), one, who


class Stop(Exception):
    """A planted kill."""


def stopping(number: int):
    def progress(what: str, done: int, _total: int) -> None:
        if what == "days" and done == number:
            raise Stop

    return progress


def test_a_season_replayed_twice_or_stopped_between_days_is_byte_equal(whole, tmp_path):
    wanted = table_bytes(whole)
    assert set(wanted) == {f"{name}.parquet" for name in TABLES}
    stopped = begun(tmp_path / "stopped", season_text(), models())
    for days in (1, 3, 0, 2):
        with pytest.raises(Stop):
            tracks.run_season(stopped, models(), now=NOW, progress=stopping(days))
    tracks.run_season(stopped, models(), now=NOW)
    assert table_bytes(stopped) == wanted
    steps = begun(tmp_path / "steps", season_text(), models())
    for _ in range(11):
        assert len(tracks.step_season(steps, models(), now=NOW).days) == 1
    assert table_bytes(steps) == wanted
    assert tracks.step_season(steps, models(), now=NOW).days == ()
    assert tracks.read_journal(steps)[1] == tracks.read_journal(whole)[1]


def test_a_season_killed_while_it_runs_goes_on(whole, tmp_path):
    folder = begun(tmp_path / "killed", season_text(), models())
    command = [sys.executable, "-m", "assaymark", "season", "run", str(folder.path)]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until_ = time.monotonic() + 60
    while time.monotonic() < until_ and started.poll() is None:
        if tracks.journal_path(folder).is_file() and tracks.journal_path(folder).stat().st_size > 0:
            break
        time.sleep(0.005)
    os.kill(started.pid, signal.SIGKILL)
    started.wait()
    with tracks.journal_path(folder).open("ab") as half:
        half.write(b"0123456789\t{")  # what a kill can leave of a line
    assert main(["season", "run", str(folder.path)]) == 0
    assert table_bytes(folder) == table_bytes(whole)


def test_a_journal_is_done_once_makes_lost_tables_again_and_is_never_read_damaged(tmp_path):
    folder = begun(tmp_path / "run", season_text(last="2024-03-06"), models())
    tracks.step_season(folder, models(), now=NOW, day=date(2024, 3, 5))

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in [*folder.tables.iterdir(), tracks.journal_path(folder)]}

    before = files()
    again = tracks.step_season(folder, models(), now=NOW, day=date(2024, 3, 5))
    assert (again.days, again.lines[0]) == ((), "nothing is due after 2024-03-05")
    assert files() == before
    tracks.run_season(folder, models(), now=NOW)
    wanted = table_bytes(folder)
    (folder.tables / "navs.parquet").unlink()
    with (
        tracks.Journal.open(folder),
        pytest.raises(LedgerError, match="another step of this season is at work; nothing was"),
    ):
        tracks.step_season(folder, models(), now=NOW)
    tracks.run_season(folder, models(), now=NOW)
    assert table_bytes(folder) == wanted
    path = tracks.journal_path(folder)
    raw = path.read_bytes()
    place = raw.index(b"cash") + 8
    for damaged in (raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :], b"\n".join(raw.split(b"\n")[1:])):
        path.write_bytes(damaged)
        with pytest.raises(LedgerError, match="damaged at line 1"):
            tracks.run_season(folder, models(), now=NOW)


def test_contexts_and_prompts_are_those_of_the_slow_way(whole):
    store = Store(whole)
    contexts = store.contexts()  # each is held against its name
    assert len(contexts) == 21  # on the first day both see the same
    assert store.content(CONTEXTS) == content_digest(CONTEXTS.to_arrow(contexts.values()))
    facts = {row["context_id"]: row["facts"] for row in store.columns(CONTEXTS, "context_id", "facts")}
    assert facts == {name: len(one.facts) for name, one in contexts.items()}
    locked = tracks.open_season(whole)
    day = locked.data.clock(locked.season).day(date(2024, 3, 8))
    shared = tracks.day_material(locked.season, day, {A})
    book = Book(10.5, {A: 3.0})
    prompt = tracks.told(locked.season, "one", ['a note with "facts":[],"instruments":[], in it\tand a tab'])
    context = tracks.agent_context(shared, book, 99.0, "USD", prompt)
    assert tracks.context_json(context, shared.facts, shared.series, shared.instruments) == canonical_json(context)
    blocks = tracks.agent_sections(shared, context)
    assert [one.text for one in blocks] == [fence(*block) for block in material_blocks(context)]
    assert season_message(blocks).text.startswith("MATERIAL.")
    shown = [one for one in contexts.values() if one.cutoff == day.moment]
    assert {content_id(one) for one in shown} <= contexts.keys()


def test_nothing_in_a_context_is_from_after_its_decision(whole):
    store = Store(whole)
    contexts = store.contexts()
    for decision in store.read(DECISIONS):
        context = contexts[decision.context_id]
        assert context.cutoff < decision.decided_at
        assert all(one.available_at <= context.cutoff for one in context.facts)
        assert all(max(one.times) <= context.cutoff for one in context.series)
        assert {one.id for one in context.instruments} == {one.instrument for one in context.series}
        assert context.completeness == "complete"
        assert decision.call.seconds is None  # times stand apart
    assert all(one.seconds is not None and one.seconds >= 0 for one in store.read(tracks.TIMES))


def test_books_follow_from_fills_and_bars(whole):
    store = Store(whole)
    history = tracks.open_season(whole).data.history
    columns = {one.id: column for column, one in enumerate(history.listings)}
    rows = {str(day): row for row, day in enumerate(history.days.astype("datetime64[D]"))}
    for agent in ("one", "two"):
        steps = []
        for nav in (one for one in store.read(tracks.NAVS) if one.agent == agent):
            bars = {
                name: Bar(*(float(history.bars[f][rows[nav.day], columns[name]]) for f in ("open", "high", "low",
                                                                                         "close")))
                for name in tracks.open_season(whole).data.universe
            }  # fmt: skip
            fills = tuple(
                StatedFill(symbol=one.symbol, quantity=one.quantity, price=one.price, cost=one.cost)
                for one in store.read(tracks.FILLS)
                if (one.day, one.agent) == (nav.day, agent)
            )
            steps.append(StatedStep(name=nav.day, fills=fills, book=Book(nav.cash, nav.positions), bars=bars))
            closes = {name: bar.close for name, bar in bars.items()}
            assert nav.nav == pytest.approx(Book(nav.cash, nav.positions).nav(closes), rel=1e-12)
        found = reconcile(Book(100_000.0), steps)
        assert found.data_reliability == 100.0
        assert sum(len(one.fills) for one in steps) > 3


def test_contexts_hold_bars_sectors_and_filings_as_they_were_known(whole):
    history = synthetic_history(0)
    contexts = list(Store(whole).contexts().values())
    assert len(contexts) > 10
    for context in contexts:
        view = history.as_of(context.cutoff)
        listed = {one.id: one for one in view.instruments}
        facts = {}
        for one in context.facts:
            facts.setdefault((one.instrument, one.source), []).append(one)
        for series in context.series:
            assert {len(series.open), len(series.high), len(series.low), len(series.volume)} == {len(series.close)}
            assert [one.value for one in facts[series.instrument, "close"]] == [series.close[-1]]
            assert [one.value for one in facts[series.instrument, "listing"]] == [listed[series.instrument].sub]
            known = [one for one in view.fundamentals(series.instrument) if one.filed_at <= context.cutoff]
            shown = {(one.field, one.id.rsplit(".", 1)[1]): one for one in facts.get((series.instrument, "filing"), [])}
            assert len(shown) == min(len(known), 8)
            for filed in known[-8:]:
                fact = shown[filed.field, filed.period]
                assert (fact.value, fact.available_at, fact.unit) == (filed.value, filed.filed_at, "per share")
                assert fact.as_of < fact.available_at <= context.cutoff
    assert any(one.source == "filing" for context in contexts for one in context.facts)


def test_orders_fill_at_the_next_open_or_close_and_never_on_their_day(tmp_path):
    history = market()
    row = [str(day) for day in history.days].index("2024-03-04")
    for fill, field in (("next_open", "open"), ("close", "close")):
        place = tmp_path / fill
        answers = lambda day: orders((A, "buy", 10.0)) if day == "2024-03-01" else orders()  # noqa: E731
        folder, *_, who = scripted(place, answers, rules=f'fill = "{fill}"\ncost_bps = 20.0')
        tracks.run_season(folder, who, now=NOW)
        (found,) = Store(folder).read(tracks.FILLS)
        assert (found.day, found.record_id) == ("2024-03-04", "spring-2024-03-01-one")
        assert found.price == history.bars[field][row, 0]
        assert found.cost == pytest.approx(10.0 * found.price * 0.002)


def test_orders_that_break_a_rule_are_kept_and_their_agent_is_told(tmp_path):
    wrong = orders(
        (A, "buy", 1e9), ("NOBODY", "buy", 1.0), (A, "short", 1.0), (B, "sell", 1.0), (A, "buy", 0.5),
        (A, "buy", -1.0), (B, "buy", 1.0), (B, "buy", 1.0),
    )  # fmt: skip
    answers = lambda day: wrong if day == "2024-03-01" else orders()  # noqa: E731
    folder, one, who = scripted(tmp_path, answers, rules="fractional = false\nmax_orders = 5")
    tracks.run_season(folder, who, now=NOW)
    found = Store(folder).read(tracks.REJECTIONS)
    assert sorted(each.reason for each in found) == sorted(
        ["not-taken", "not-taken", "beyond-cash", "short-forbidden", "not-held", "fraction", "beyond-count"]
    )
    assert {each.day for each in found} == {"2024-03-04"}
    told_ = one.prompts[1]
    for words in ("cash is 100,000.00", "'NOBODY' is not offered", "short positions are not allowed",
                  "nothing of it is held", "multiples of 1", "above 0", "5 a day are allowed"):  # fmt: skip
        assert words in told_
    assert "not carried out" not in one.prompts[0] + one.prompts[2]
    assert len(Store(folder).read(tracks.FILLS)) == 1
    assert "rejected-order" in Store(folder).read(DECISIONS)[0].flags


def test_a_price_that_is_old_is_not_traded_at(tmp_path):
    answers = lambda day: {"2024-03-01": orders((A, "buy", 10.0)), "2024-03-04": orders((A, "sell", 10.0), (B, "buy", 1.0))}.get(day, orders())  # noqa: E731, E501  # fmt: skip
    folder, one, who = scripted(tmp_path, answers, without(market(), "2024-03-05", A, B))
    tracks.run_season(folder, who, now=NOW)
    found = {each.symbol: each for each in Store(folder).read(tracks.REJECTIONS)}
    assert (found[A].reason, found[B].reason) == ("stale-price", "no-price")
    assert "days old" in one.prompts[2]
    navs = {each.day: each for each in Store(folder).read(tracks.NAVS) if each.agent == "one"}
    assert navs["2024-03-05"].stale == (A,)
    assert navs["2024-03-05"].nav == navs["2024-03-04"].nav
    assert navs["2024-03-06"].stale == ()
    shown = Store(folder).contexts()
    there = [c for c in shown.values() if c.cutoff.date() == date(2024, 3, 5)]
    assert {A in {i.id for i in c.instruments} for c in there} == {True}  # the same material for both agents
    assert all(B not in {i.id for i in c.instruments} for c in there)


def test_a_day_without_data_is_written_down_and_orders_wait(tmp_path):
    answers = lambda day: orders((A, "buy", 10.0)) if day == "2024-03-04" else orders()  # noqa: E731
    folder, one, who = scripted(tmp_path, answers, without(market(), "2024-03-05"))
    done = tracks.step_season(folder, who, now=NOW, day=date(2024, 3, 5))
    assert "without data: 2024-03-05" in done.lines[0]
    tracks.run_season(folder, who, now=NOW)  # the order waits from one run to the next
    states = {each.day: each.state for each in Store(folder).read(tracks.NAVS)}
    assert [day for day, state in states.items() if state == "no data"] == ["2024-03-05"]
    assert "2024-03-05" not in one.asked
    (fill,) = Store(folder).read(tracks.FILLS)
    assert (fill.day, fill.record_id) == ("2024-03-06", "spring-2024-03-04-one")


def test_an_instrument_that_ends_is_paid_out_at_its_last_close(tmp_path):
    history = market()
    ends = tuple(replace(one, delisted=date(2024, 3, 5)) if one.id == A else one for one in history.listings)
    history = replace(history, listings=ends)
    for day in ("2024-03-06", "2024-03-07", "2024-03-08", "2024-03-11", "2024-03-12", "2024-03-13", "2024-03-14"):
        history = without(history, day, A)
    answers = lambda day: orders((A, "buy", 10.0)) if day == "2024-03-01" else orders()  # noqa: E731
    folder, _, who = scripted(tmp_path, answers, history)
    tracks.run_season(folder, who, now=NOW)
    fills = {one.kind: one for one in Store(folder).read(tracks.FILLS)}
    row = [str(day) for day in history.days].index("2024-03-05")
    assert fills[tracks.DELISTED].day == "2024-03-06"
    assert (fills[tracks.DELISTED].quantity, fills[tracks.DELISTED].cost) == (-10.0, 0.0)
    assert fills[tracks.DELISTED].price == history.bars["close"][row, 0]
    navs = {one.day: one for one in Store(folder).read(tracks.NAVS) if one.agent == "one"}
    assert navs["2024-03-06"].positions == {}
    assert navs["2024-03-06"].nav == pytest.approx(navs["2024-03-05"].nav)
    steps = {one.day: one for one in tracks.season_material(folder).steps["one"]}
    assert [one.symbol for one in steps["2024-03-05"].fills] == [A]
    assert steps["2024-03-05"].book.positions == {}
    assert all(one.passed == one.checks for one in Store(folder).read(tracks.CHECKS))


@pytest.mark.parametrize(
    ("answer", "flag"),
    [
        (ModelError("it broke", retryable=False), "no-answer"), ("I would rather not use JSON.", "invalid-reply"),
        ('{"orders": "all"}', "invalid-reply"),
    ],
)  # fmt: skip
def test_an_agent_that_fails_every_day_holds_and_that_is_seen(tmp_path, answer, flag):
    folder, one, who = scripted(tmp_path, lambda _: answer)
    done = tracks.run_season(folder, who, now=NOW)
    assert done.lines[-1] == "one gave no usable reply on 6 of 6 days, and held"
    mine = [each for each in Store(folder).read(DECISIONS) if each.agent.id == "one"]
    assert [each.flags for each in mine] == [(flag,)] * 6
    assert all(each.missing for each in mine)
    assert {each.nav for each in Store(folder).read(tracks.NAVS)} == {100_000.0}
    assert "your last reply could not be used" in one.prompts[1]
    asked = len(one.asked)
    tracks.run_season(folder, who, now=NOW)
    assert len(one.asked) == asked


def test_a_call_that_was_answered_is_not_made_again_after_a_kill(tmp_path):
    folder, one, who = scripted(tmp_path, lambda _: orders((A, "buy", 1.0)))
    with pytest.raises(Stop):
        tracks.run_season(folder, who, now=NOW, progress=stopping(3))
    tracks.journal_path(folder).unlink()  # as if nothing of it had reached the disk
    tracks.run_season(folder, who, now=NOW)
    assert one.asked == sorted(set(one.asked))
    assert len(one.asked) == 6


def test_replicates_are_asked_and_only_the_first_trades(tmp_path):
    count: list[str] = []

    def answers(day: str) -> str:
        count.append(day)
        return orders((A, "buy", float(count.count(day))))

    folder, _, who = scripted(tmp_path, answers, head="replicates = 3")
    tracks.run_season(folder, who, now=NOW)
    mine = [each for each in Store(folder).read(DECISIONS) if each.agent.id == "one"]
    assert sorted({each.replicate for each in mine}) == [1, 2, 3]
    assert len(mine) == 18
    assert len({each.record_id for each in mine}) == 18
    assert len({each.context_id for each in mine}) == 6
    assert len(Store(folder).read(tracks.FILLS)) == 5
    first = {each.record_id: each.actions[0].quantity for each in mine if each.replicate == 1}
    assert all(each.quantity == first[each.record_id] for each in Store(folder).read(tracks.FILLS))


def test_live_is_the_same_code_over_a_source_that_grows(tmp_path):
    answers = lambda day: orders((A, "buy", float(day[-2:])))  # noqa: E731
    replay, _, who = scripted(tmp_path / "replay", answers)
    tracks.run_season(replay, who, now=NOW)

    source = tmp_path / "source"
    stored(source / "first", until(market(), "2024-03-05"))
    head = f"universe = {IDS}\nmarket = {{source = '{source}', live = true}}"
    text = season_text(head=head, model="test/one", other="test/two", last="2024-03-08")
    live = begun(tmp_path / "live", text, who)
    early = datetime(2024, 3, 5, 21, 0, tzinfo=UTC)
    assert tracks.step_season(live, who, now=early).days == (date(2024, 3, 1), date(2024, 3, 4))
    assert tracks.step_season(live, who, now=early + timedelta(hours=1)).days == (date(2024, 3, 5),)
    waiting = tracks.step_season(live, who, now=early + timedelta(days=2))
    assert waiting.days == ()
    with pytest.raises(InputError, match="2024-03-06 lies ahead of the market, which ends on 2024-03-05"):
        tracks.step_season(live, who, now=NOW, day=date(2024, 3, 6))
    stored(source / "second", market(), "grown")
    with pytest.raises(InputError, match="is not over"):
        tracks.step_season(live, who, now=datetime(2024, 3, 7, 21, 0, tzinfo=UTC), day=date(2024, 3, 7))
    tracks.step_season(live, who, now=datetime(2024, 3, 30, tzinfo=UTC))
    assert table_bytes(live) == table_bytes(replay)
    digests = {one.record["market"] for one in tracks.read_journal(live)[0]}
    assert len(digests) == 2


def test_bad_clocks_are_refused(whole, tmp_path, capsys):
    for day, words in ((date(2024, 3, 4), "lies before 2024-03-15"), (date(2024, 4, 1), "lies outside of the season")):
        with pytest.raises(InputError, match=words):
            tracks.step_season(whole, models(), now=NOW, day=day)
    source = stored(tmp_path / "market", market())
    text = season_text(head=f"universe = {IDS}\nmarket = {{source = '{source}', live = true}}")
    with pytest.raises(InputError, match="a time needs a zone"):
        tracks.step_season(begun(tmp_path / "run", text, models()), models(), now=datetime(2024, 3, 5))
    assert main(["season", "step", str(whole.path), "--day", "tomorrow"]) == 1
    assert capsys.readouterr().err == "assaymark: --day: must be a day such as 2024-03-01 (got 'tomorrow')\n"
    assert main(["season", "run", str(tmp_path / "nowhere")]) == 1
    assert "holds no season; make one with" in capsys.readouterr().err


def test_the_commands_lock_step_and_run_and_a_dry_run_writes_nothing(tmp_path, capsys):
    file, folder = tmp_path / "season.toml", tmp_path / "run"
    file.write_text(season_text(last="2024-03-06"))

    def told(*words: str) -> str:
        assert main(["season", *words]) == 0
        return capsys.readouterr().out

    assert "2 agents, 8 instruments, 2024-03-01 to 2024-03-06" in told("init", str(file), "--out", str(folder))
    before = sorted(folder.rglob("*"))
    out = told("run", str(folder), "--dry-run")
    assert "in all 8 calls, 0 answered already; the rest: costs nothing" in out  # two agents on four days
    assert "4 days: what agents hold on later ones is not known" in out
    assert "dry run: nothing was sent" in out
    assert sorted(folder.rglob("*")) == before
    assert "2024-03-01 done" in told("step", str(folder))
    rest = json.loads(told("run", str(folder), "--dry-run", "--json"))["models"]
    assert sum(one["stages"]["agents"] for one in rest) == 6
    assert "2 days done" in told("step", str(folder), "--day", "2024-03-05")
    assert "2024-03-06 done" in told("run", str(folder))
    file.write_text("name = 3")
    assert main(["season", "init", str(file), "--out", str(tmp_path / "other")]) == 1
    assert not (tmp_path / "other").exists()


def test_an_agent_outside_is_sent_the_context_itself_and_a_market_that_changed_is_refused(tmp_path):
    seen: list[Context] = []

    def decide(context: Context) -> dict:
        seen.append(context)
        return {"orders": [{"instrument": A, "side": "buy", "quantity": 1.0}], "rationale": "It is there."}

    locked, _, who = scripted(tmp_path, lambda _: orders())
    folder = RunFolder(tmp_path / "outside")
    who["python/mine:decide"] = PythonAgent(decide)
    text = (tmp_path / "run" / "plan.toml").read_text().replace("test/one", "python/mine:decide")
    tracks.run_season(begun(folder.path, text, who), who, now=NOW)
    assert {content_id(one) for one in seen} <= Store(folder).contexts().keys()
    assert len(Store(folder).read(tracks.FILLS)) == 5
    assert seen[1].portfolio.positions == {A: 1.0}
    shutil.rmtree(tmp_path / "market")
    stored(tmp_path / "market", without(market(), "2024-03-05", A))
    with pytest.raises(PlanError, match="the market changed after the lock"):
        tracks.run_season(locked, who, now=NOW)
    assert not tracks.journal_path(locked).exists()


def test_a_provider_without_money_stops_the_command_and_nothing_is_lost(tmp_path):
    poor = [True]

    def answers(day: str):
        return ModelError("no money left", retryable=False, quota=True) if day == "2024-03-06" and poor else orders()

    folder, one, who = scripted(tmp_path, answers)
    with pytest.raises(ModelError, match="no money left"):
        tracks.run_season(folder, who, now=NOW)
    assert [nav.day for nav in Store(folder).read(tracks.NAVS)][-1] == "2024-03-05"
    poor.clear()
    assert tracks.run_season(folder, who, now=NOW).days[0] == date(2024, 3, 6)
    assert [flags for each in Store(folder).read(DECISIONS) if (flags := each.flags)] == []
    assert one.asked.count("2024-03-05") == 1


def unreachable(tmp_path, *, allow=("one",)) -> tuple[RunFolder, Path]:
    """A season whose agent one has an address that nobody answers at, and its file."""
    address = f"http/127.0.0.1:{free_port()}/decide"
    source = stored(tmp_path / "market", market())
    head = f"universe = {IDS}\nmarket = {{source = '{source}'}}\n"
    path = tmp_path / "season.toml"
    path.write_text(season_text(head=head, model=address, last="2024-03-05"))
    return RunFolder(tmp_path / "run"), path


def test_an_agent_that_does_not_answer_is_a_problem_of_the_lock_unless_it_is_allowed_to(tmp_path, capsys):
    folder, path = unreachable(tmp_path)
    assert main(["season", "init", str(path), "--out", str(folder.path)]) == 1
    said = capsys.readouterr().err
    assert "agents.one.model: nothing answers at http://127.0.0.1:" in said
    assert "--allow-absent one" in said
    assert not folder.path.exists()
    assert main(["season", "init", str(path), "--out", str(folder.path), "--allow-absent", "nobody"]) == 1
    said = capsys.readouterr().err
    assert "2 problems" in said
    assert "--allow-absent: unknown agent 'nobody'" in said
    assert main(["season", "init", str(path), "--out", str(folder.path), "--allow-absent", "one"]) == 0
    assert "no answer came from: one" in capsys.readouterr().out
    assert main(["season", "init", str(path), "--out", str(folder.path)]) == 0  # locked: nothing is looked at again


def test_an_absent_agent_never_stops_the_day(tmp_path, capsys):
    folder, path = unreachable(tmp_path)
    main(["season", "init", str(path), "--out", str(folder.path), "--allow-absent", "one"])
    capsys.readouterr()
    assert main(["season", "step", str(folder.path)]) == 3
    out = capsys.readouterr().out
    assert "2024-03-01 done" in out
    assert "one was absent on 1 of 1 days, and held (last: nothing answers at http://127.0.0.1:" in out
    assert main(["season", "run", str(folder.path), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["absent"] == {"one": 2}
    assert main(["season", "run", str(folder.path)]) == 0  # nothing was due
    for name, flags in {"one": ("no-answer", "absent"), "two": ()}.items():
        mine = [one for one in Store(folder).read(DECISIONS) if one.agent.id == name]
        assert [one.flags for one in mine] == [flags] * 3
        assert name == "two" or all(one.missing[0].startswith("nothing answers at") for one in mine)
    assert len(Store(folder).read(tracks.NAVS)) == 6
    graded = SimpleNamespace(state="ok", parts=())
    grade = SimpleNamespace(last="2024-03-05", judge="j", scope="period", score=SimpleNamespace(grades=graded))
    notes = [english().render(one) for one in tracks.season_notes(tracks.season_material(folder), [grade])]
    assert any(one.startswith("one was absent on 3 of 3 days and held its book. It could not be") for one in notes)


def test_a_day_on_which_nobody_is_there_is_not_done(tmp_path):
    folder, path = unreachable(tmp_path)
    text = path.read_text().replace("reference/equal-weight", f"http/127.0.0.1:{free_port()}/decide")
    tracks.lock_season(folder, text, "season.toml", models(), now=NOW, allow_absent=("one", "two"))
    with pytest.raises(ModelError, match="no agent could be asked on 2024-03-01"):
        tracks.run_season(folder, models(), now=NOW)
    assert tracks.read_journal(folder)[0] == []


def test_a_live_season_goes_on_without_a_provider_that_has_no_money(tmp_path):
    """A replay stops there, since nothing waits for it; a day of a live season does not come again."""
    source = stored(tmp_path / "market", market())
    head = f"universe = {IDS}\nmarket = {{source = '{source}', live = true}}"
    broke = Scripted(lambda _: ModelError("no money left", retryable=False, quota=True))
    who = {"poor/one": broke, "test/two": Scripted(lambda _: orders())}
    text = season_text(head=head, model="poor/one", other="test/two", last="2024-03-05")
    folder = begun(tmp_path / "run", text, who)
    done = tracks.run_season(folder, who, now=NOW)
    assert (len(done.days), done.absent) == (3, {"one": 3})
    assert done.lines[-1].endswith("(last: poor: no money left)")
    mine = [one.flags for one in Store(folder).read(DECISIONS) if one.agent.id == "one"]
    assert mine == [("no-answer", "absent")] * 3


def test_what_an_agent_raises_on_many_days_is_said_once(tmp_path, monkeypatch, capsys):
    (tmp_path / "season_agent_for_this_test.py").write_text("def decide(context):\n    return context.closes['SPY']\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    file, folder = tmp_path / "season.toml", tmp_path / "run"
    text = season_text(last="2024-03-06", model="python/season_agent_for_this_test:decide")
    file.write_text(text, encoding="utf-8")
    assert main(["season", "init", str(file), "--out", str(folder)]) == 0
    assert main(["season", "run", str(folder), "--strict-agents"]) == 1
    err = capsys.readouterr().err
    assert "season_agent_for_this_test.py, line 2); stopped here" in err
    assert "recorded as no answer" not in err
    assert main(["season", "run", str(folder)]) == 0
    raised = [line for line in capsys.readouterr().err.splitlines() if " raised " in line]
    assert len(raised) == 1
    assert "raised AttributeError: 'Context' object has no attribute 'closes' (" in raised[0]
    assert raised[0].endswith("line 2), 4 times; recorded as no answer")
