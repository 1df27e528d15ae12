"""Replies to the stages: what is read, what is not, and what state is recorded for it."""

# ruff: noqa: I001

from __future__ import annotations

import dataclasses
import json
import math
import re
from datetime import UTC, datetime

import numpy as np
import pytest
from bench_worlds import AGENT, world
from hypothesis import given
from hypothesis import strategies as st

from assaymark.benchmark import (
    ASKED, COLUMNS, MOST_CHARACTERS, PROFILES, BenchMarket, EpisodeRules, EpisodeState, MarketWindow, parse_signals,
    parse_views, parse_weights, rationale_of, reply_schema, stage_template, stage_texts,
)  # fmt: skip
from assaymark.engine import CallSpec, Finish, Reply, Text
from assaymark.prompting import cells, sections

TICKERS = ("SPY", "BTC-USD", "^VIX", "BIL")


def reply(text: str, finish: Finish = "stop") -> Reply:
    return Reply(text=text, model="m", finish=finish)


def rows(key: str, column: str, values: dict[str, object]) -> str:
    return json.dumps({key: [{"ticker": name, column: value} for name, value in values.items()]})


VIEWS = {"SPY": 0.4, "BTC-USD": -1, "^VIX": 0.05, "BIL": 0}
LINES = "SPY: +0.4\nBTC-USD: -1\n^VIX: 0.05\nBIL: 0"


SIGNALS = {"SPY": "buy", "BTC-USD": "sell", "^VIX": "hold", "BIL": "hold"}
WHOLE = [
    (parse_views, [0.4, -1.0, 0.05, 0.0], [
        rows("views", "view", VIEWS), "```json\n" + rows("views", "view", VIEWS) + "\n```",
        "Thinking about SPY first.\n" + rows("views", "view", VIEWS) + "\nThat is all.", json.dumps({"views": VIEWS}),
        json.dumps(VIEWS), json.dumps(VIEWS, indent=2), json.dumps({**VIEWS, "rationale": "calm"}), LINES,
        LINES.lower(), LINES.replace(": ", " = ").replace("-1", "−1.0"), LINES.replace("-1", "–1.0"),
        "SPY: +0.40, BTC-USD: -1, ^VIX: 0.05, BIL: 0",
        "- **SPY**: 0.4 (strong)\n- **BTC-USD**: -1.0 - crash\n- **^VIX**: 0.05\n- **BIL**: 0",
        "1. SPY: 0.4\n2. BTC-USD: -1\n3. ^VIX: .05\n4. BIL: 0.0",
        "| Ticker | View |\n|---|---|\n| SPY | 0.4 |\n| BTC-USD | -1 |\n| ^VIX | 0.05 | calm |\n| BIL | 0 |",
        "My view of the market is as follows.\n\n" + LINES + "\n\nTOTAL: 4 assets",
        "<think>SPY: 0.9 or so {maybe}\nBIL: 1</think>\n" + LINES,
        '<think>{"views": {"SPY": 1}}</think>' + json.dumps({"views": VIEWS}),
        'First {"views": {"SPY": 0.1}} and then, finally: ' + rows("views", "view", VIEWS),
        f"```\n{rows('views', 'view', {'SPY': 0.9})}\n```\nNo:\n```json\n{rows('views', 'view', VIEWS)}\n```",
        rows("views", "view", {name: str(value) for name, value in VIEWS.items()}),
        LINES + "\nSPY: 0.4",  # two values for one asset count if they agree
        "SPY: momentum looks good here\n" + LINES,  # a remark does not count
    ]),
    (parse_signals, [*SIGNALS.values()], [
        "SPY: buy\nBTC-USD: SELL\n^VIX: Hold\nBIL: hold", rows("signals", "signal", SIGNALS),
        "SPY: buy (0.4)\nBTC-USD: sell - falling\n^VIX: hold.\nBIL: **hold**",
        "SPY: buy, BTC-USD: sell, ^VIX: hold, BIL: hold",
    ]),
    (parse_weights, pytest.approx([0.6, 0, 0, 0.4]), [  # what is left out is zero
        "SPY: 0.6\nBIL: 0.4", "SPY: 60%\nBIL: 40 %", "SPY: 60\nBIL: 40",
        "SPY: 0.6\nBTC-USD: 0\nBIL: 0.4\nTotal: 1.0\nTOTAL: 1.0", rows("weights", "weight", {"SPY": 0.6, "BIL": 0.4}),
        rows("weights", "weight", {"SPY": "60%", "BIL": "40%"}),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("parse", "values", "text"), [(*one, text) for *one, texts in WHOLE for text in texts])
def test_one_answer_in_many_forms(parse, values, text):
    found, state = parse(reply(text), TICKERS)
    assert list(found) == values
    assert (state.state, state.reason) == ("ok", "")


NEUTRAL = {
    "1.5": "outside", "-7": "outside", "40%": "percentage", "0.3 to 0.5": "no number", "0,3": "no number",
    "not 0.3": "no number", "NaN": "no number", "1e999": "out of all range", "bullish": "no number",
}  # fmt: skip
"""Views that do not say one thing."""

IN_PART = [
    *((parse_views, f"SPY: {value}\nBTC-USD: 0.2\n^VIX: 0.2\nBIL: 0.2", [0.0, 0.2, 0.2, 0.2], ["SPY", reason])
      for value, reason in NEUTRAL.items()),
    (parse_views, "SPY: 0.4\nGOLD: 0.9", [0.4, 0.0, 0.0, 0.0],
     ["3 of 4 assets are missing, read as 0: BTC-USD, ^VIX, BIL", "left out: GOLD"]),
    (parse_views, LINES + "\nSPY: 0.5", [0.0, -1.0, 0.05, 0.0], ["given 2 times, not alike"]),
    (parse_views, rows("views", "view", VIEWS).replace("0.05", "NaN"), [0.4, -1.0, 0.0, 0.0],
     ["NaN is not JSON", "^VIX"]),  # costs its row
    *((parse_signals, f"SPY: {value}\nBTC-USD: sell\n^VIX: buy\nBIL: buy", ["hold", "sell", "buy", "buy"], ["SPY"])
      for value in ("do not buy", "buy or hold", "buy/hold", "sell only if it breaks", "0.4", "long")),
    *((parse_weights, text, pytest.approx([0.75, 0, 0, 0.25]), [why])  # a sum that is off is brought to one
      for text, why in (("SPY: 0.6\nBIL: 0.2", "0.8"), ("SPY: 0.6\nBIL: 0.2\nGOLD: 0.2", "GOLD"))),
]  # fmt: skip


@pytest.mark.parametrize(("parse", "text", "values", "reasons"), IN_PART)
def test_what_a_reply_lacks_says_twice_or_does_not_say_clearly_is_neutral_and_recorded(parse, text, values, reasons):
    found, state = parse(reply(text), TICKERS)
    assert (list(found), state.state) == (values, "partial")
    assert [one for one in reasons if one not in state.reason] == []


@pytest.mark.parametrize("whole", [LINES, rows("views", "view", VIEWS)])
def test_a_cut_reply_keeps_what_is_whole(whole):
    at = whole.index("0.05") + 3  # in the middle of a number that would read as 0.0
    views, state = parse_views(reply(whole[:at], "length"), TICKERS)
    assert views.tolist() == [0.4, -1.0, 0.0, 0.0]
    assert state.state == "truncated"
    assert parse_views(reply(whole[:3], "length"), TICKERS)[1].state == "truncated"


@pytest.mark.parametrize("parse", [parse_views, parse_signals, parse_weights])
@pytest.mark.parametrize(
    ("given_reply", "state"),
    [
        (reply(""), "invalid"), (reply("", "refusal"), "refused"),
        (reply("the agent was not there", "failed"), "invalid"),
        (reply("I'm sorry, but I can't give financial advice."), "refused"),
        (reply("I cannot help with trading."), "refused"),
        (reply("Markets are uncertain and I would stay diversified."), "invalid"),
        (reply("def weights():\n    return {'SPY' : x for x in range(3)}"), "invalid"), (reply("{" * 5000), "invalid"),
        (reply("[" * 100_000), "invalid"),
        (reply('{"views": [1, null, {"ticker": 3, "view": 1}], "weights": 3}'), "invalid"),
        (reply("SPY: 0.1\n" * (MOST_CHARACTERS // 9 + 1)), "invalid"), (reply("\ud800"), "invalid"),
    ],
)  # fmt: skip
def test_what_names_no_value_is_a_state_with_a_reason(parse, given_reply, state):
    found, seen = parse(given_reply, TICKERS)
    assert seen.state == state
    assert seen.reason
    assert seen.reason.isprintable()
    assert (found is None) != (parse is parse_views)
    assert found is None or not found.any()


@pytest.mark.parametrize(
    "text",
    [
        "*" * 199_999, "************\n" * 15_000, "```a\n{\n" * 28_000, "{}" * 99_999, "SPY" + " " * 199_000,
        "```\n" + "\n" * 199_000, "SPY: " + "9" * 199_000, "SPY:0," * 33_000,
    ],
)  # fmt: skip
def test_a_reply_made_to_hang_a_pattern_is_read_at_once(text):
    for parse in (parse_views, parse_signals, parse_weights):
        assert parse(reply(text), TICKERS)[1].state != "ok"


SYMBOL = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=1, max_size=6)


@given(
    st.lists(
        st.builds(lambda lead, name, tail: lead + name + tail, st.sampled_from(["", "^"]), SYMBOL,
                  st.sampled_from(["", "-USD", "=F", ".B"])),
        min_size=1,
        max_size=12,
        unique=True,
    ).filter(lambda names: not all(name.isdigit() for name in names)),
    st.data(),
)  # fmt: skip
def test_any_universe_of_symbols_is_read_in_lines_and_in_json(names, data):
    """GC=F has the separator in its name, A is the beginning of AA, and 7203 is a number."""
    tickers = tuple(names)
    views = {name: data.draw(st.integers(-100, 100)) / 100 for name in tickers}
    lines = "\n".join(f"{name}: {value}" for name, value in views.items())
    for text in (rows("views", "view", views), lines):
        found, state = parse_views(reply(text), tickers)
        assert found.tolist() == list(views.values())
        assert state.state == "ok"


@given(st.floats(-1, 1))
def test_a_number_is_read_in_full(view):
    found, state = parse_views(reply(f"SPY: {view:.20f}\nBIL: {view!r}"), ("SPY", "BIL"))
    assert state.state == "ok"
    assert found == pytest.approx([view, view], abs=1e-15)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SPY: 1.4\nBIL: 0.1", "above 1"), ("SPY: 1.2\nBIL: -0.2", "below 0"), ("SPY: 0.2\nBIL: 0.2", "sum to 1"),
        ("SPY: 0.9\nBIL: 0.9", "sum to 1"), ("SPY: 0\nBIL: 0", "sum to 1"),
        ("SPY: 0.5\nBIL: about half", "weight of BIL"), ("SPY: 0.5\nSPY: 0.4\nBIL: 0.5", "not alike"),
        ("SPY: NaN\nBIL: 1", "weight of SPY"), ("SPY: 1e308\nBIL: 1e308", "out of all range"),
        (rows("weights", "weight", {"SPY": True, "BIL": 0.5}), "no number"),
        (rows("weights", "weight", {"SPY": math.nan, "BIL": 1.0}), "NaN is not JSON"),
        (rows("weights", "weight", {"GOLD": 1.0}), "sum to 1"),
    ],
)  # fmt: skip
def test_a_book_that_is_none_holds_what_is_held(text, reason):
    weights, state = parse_weights(reply(text), TICKERS)
    assert weights is None
    assert state.state == "invalid"
    assert reason in state.reason


def test_half_a_book_is_none():
    assert parse_weights(reply("SPY: 0.6\nBIL: 0.4\nBTC", "length"), TICKERS)[0] is None
    assert parse_weights(reply("SPY: 0.6\nBIL: 0.4", "length"), TICKERS)[1].state == "truncated"


@given(st.text(max_size=300) | st.text("SPYBIL:,.0123456789%-{}[]\"' \n|*eNa", max_size=300))
def test_no_text_makes_a_parser_raise_or_leave_its_range(text):
    views, _ = parse_views(reply(text), TICKERS)
    assert ((views >= -1) & (views <= 1)).all()
    signals, _ = parse_signals(reply(text, "length"), TICKERS)
    assert set(signals or ()) <= {"buy", "hold", "sell"}
    weights, state = parse_weights(reply(text), TICKERS)
    assert (weights is None) == (state.state not in ("ok", "partial"))
    assert weights is None or (weights.min() >= 0 and weights.sum() == pytest.approx(1))


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4).filter(lambda parts: sum(parts) > 0.01))
def test_every_book_comes_back(parts):
    book = dict(zip(TICKERS, (np.array(parts) / sum(parts)).tolist(), strict=True))
    given_back, state = parse_weights(reply(rows("weights", "weight", book)), TICKERS)
    assert state.state == "ok"
    assert given_back == pytest.approx([*book.values()], abs=1e-12)


def test_what_is_said_beside_the_weights():
    assert rationale_of('{"weights": [], "rationale": " Bonds hedge. "}') == "Bonds hedge."
    assert rationale_of('Here:\n```json\n{"weights": [], "rationale": "Calm."}\n```') == "Calm."
    assert rationale_of('I {think} so: {"weights": {"SPY": 1}, "rationale": "Calm."}') == "Calm."
    assert rationale_of("SPY: 1.0") == rationale_of('{"rationale": 3}') == rationale_of("[1]") == ""


# Prompts of the pipeline: complete, told the right rules, and blind to what came later


def calls_of(episode: EpisodeState, count: int = 3) -> list[CallSpec]:
    found = []
    for _ in range(count):
        call = episode.next_call()
        assert call is not None
        found.append(call)
        episode.take(Reply(text=episode.true_reply(), model="m"))
    return found


def user(call: CallSpec) -> str:
    return call.messages[1].text


def tables(text: str) -> dict[str, list[list[str]]]:
    return {one.label: [cells(line) for line in one.content.split("\n")] for one in sections(text)}


def test_the_tables_of_assets_series_and_correlations_are_complete():
    place = world("normal", "monthly", 81)
    known = place.known(place.decisions[0])
    first, _, third = calls_of(EpisodeState(AGENT, PROFILES["balanced"], place))
    for call in (first, third):
        rows = tables(user(call))["assets"]
        assert tuple(rows[0]) == COLUMNS
        assert [row[0] for row in rows[1:]] == list(known.tickers)
        assert ({len(row) for row in rows}, len(rows)) == ({len(COLUMNS)}, 82)
        assert "nan" not in user(call).lower().split()
    lines, found = {one.ticker: one for one in known.lines}, tables(user(first))
    for row in found["assets"][1:]:
        line = lines[row[0]]
        assert float(row[2]) == pytest.approx(line.close, rel=1e-5)
        assert float(row[5]) == pytest.approx(100 * line.volatility, abs=0.006)
        assert (row[-1], row[8] == "n/a") == (line.regime, line.beta is None)
    assert len(found["macro"]) == 13
    head, *rows = found["correlations"]
    assert [row[0] for row in rows] == head[5:]
    assert np.array([[float(cell) for cell in row[5:]] for row in rows]) == pytest.approx(known.between, abs=0.006)
    assert [row[4] for row in rows[1:]] == [row[5] for row in rows[1:]]


def test_only_the_stage_that_must_obey_a_profile_is_told_it():
    for profile in PROFILES.values():
        first, second, third = map(user, calls_of(EpisodeState(AGENT, profile, world())))
        assert profile.text in third
        assert f"{100 * profile.equity_cap:g}%" in third
        assert "profile" not in first + second
        assert "PORTFOLIO" not in first + second


def test_the_portfolio_is_shown_as_it_is():
    place = world()
    episode = EpisodeState(AGENT, PROFILES["balanced"], place)
    calls_of(episode, 3)
    held = dict(tables(user(calls_of(episode, 3)[2]))["portfolio"])
    result_nav = float(held["net_asset_value"]) / 100_000
    weights = [float(value) for name, value in held.items() if name in place.tickers]
    assert sum(weights) == pytest.approx(1, abs=0.002)
    assert result_nav != 1
    assert float(held["drawdown_from_peak_pct"]) <= 0


@pytest.mark.parametrize(("convention", "threshold"), [("paper", "0.2"), ("reference", "0.15")])
def test_the_threshold_that_is_said(convention, threshold):
    episode = EpisodeState(AGENT, PROFILES["balanced"], world(), EpisodeRules(convention=convention))
    first, second, _ = map(user, calls_of(episode))
    assert f"buy if its view is above {threshold}, sell if it is below -{threshold}," in second
    assert ("over the next 63 trading days" in first) == (convention == "paper")


def test_earlier_answers_stand_in_the_next_prompt():
    place = world()
    episode = EpisodeState(AGENT, PROFILES["balanced"], place)
    episode.next_call()
    tickers = place.known(place.decisions[0]).tickers
    episode.take(Reply(text=f"{tickers[0]}: 0.2004\n{tickers[1]}: -0.7", model="m"))
    shown = dict(tables(user(episode.next_call()))["views"][1:])
    assert [shown[name] for name in tickers[:3]] == ["0.2004", "-0.7", "0"]
    episode.take(Reply(text=f"{tickers[0]}: buy", model="m"))
    rows = tables(user(episode.next_call()))["signals"][1:]
    assert rows[:3] == [[tickers[0], "0.2004", "buy"], [tickers[1], "-0.7", "hold"], [tickers[2], "0", "hold"]]


def test_nothing_of_a_prompt_is_unfilled_its_parts_are_named_and_schemas_are_strict():
    for call in calls_of(EpisodeState(AGENT, PROFILES["balanced"], world()), 12):
        assert not re.search(r"\$\{?[a-z]", call.messages[0].text + user(call))
        assert call.template == stage_template().sha256 == Text.of(stage_template().text).sha256
        assert (call.seed, call.temperature) == (3, 0.0)
        assert call.schema is not None
        assert user(call).count("TASK S") == 1
    for stage in ASKED:
        schema = reply_schema(stage)
        assert (schema["additionalProperties"], schema["required"]) == (False, list(schema["properties"]))
        assert json.loads(stage_texts()[f"schema of {stage}"]) == schema


def test_what_becomes_known_later_changes_no_prompt_up_to_then():
    """Two markets that are alike up to the close of the second decision: so are the prompts of an episode."""
    place = world()
    history, second = place.market.history, place.decisions[1]
    close = int(datetime(second.year, second.month, second.day, 21, tzinfo=UTC).timestamp())
    rng = np.random.default_rng(3)
    factor = np.where(history.known_at > close, rng.uniform(0.5, 1.5, history.known_at.shape), 1.0)
    other = dataclasses.replace(
        history,
        bars={name: values * factor for name, values in history.bars.items()},
        macro=tuple(
            dataclasses.replace(one, values=np.where(one.released > close, one.values + 1, one.values))
            for one in history.macro
        ),
        news=tuple(
            dataclasses.replace(one, text="changed") if one.published_at.timestamp() > close else one
            for one in history.news
        ),
    )
    changed = MarketWindow(BenchMarket(other, place.market.universe), place.spec, place.pace)
    tickers = place.tickers
    said = [f"{tickers[0]}: 0.5\n{tickers[1]}: 0.1", f"{tickers[0]}: buy", f"{tickers[0]}: 0.3\n{tickers[1]}: 0.7"]
    texts = []
    for one in (place, changed):
        episode = EpisodeState(AGENT, PROFILES["balanced"], one)
        found = []
        while (call := episode.next_call()) is not None:
            found.append(user(call))
            episode.take(Reply(text=said[(len(found) - 1) % 3], model="m"))
        texts.append(found)
    assert texts[0][:6] == texts[1][:6]
    assert texts[0][6] != texts[1][6]
    assert texts[0][8] != texts[1][8]
