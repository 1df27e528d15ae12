"""Replies to the stages: parsed values and recorded states; and the prompts of the stages."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime, time

import numpy as np
import pytest
from bench_worlds import AGENT, world
from hypothesis import given
from hypothesis import strategies as st
from perturbed import later_changed

from assaymark import benchmark as bench
from assaymark.benchmark import PROFILES, EpisodeState, parse_signals, parse_views, parse_weights, rationale_of
from assaymark.engine import CallSpec, Finish, Reply, Text
from assaymark.prompting import cells, sections

TICKERS = ("SPY", "BTC-USD", "^VIX", "BIL")


def reply(text: str, finish: Finish = "stop") -> Reply:
    return Reply(text=text, model="m", finish=finish)


def rows(key: str, column: str, values: dict[str, object]) -> str:
    return json.dumps({key: [{"ticker": name, column: value} for name, value in values.items()]})


VIEWS = {"SPY": 0.4, "BTC-USD": -1, "^VIX": 0.05, "BIL": 0}
LINES, ROWS = "SPY: +0.4\nBTC-USD: -1\n^VIX: 0.05\nBIL: 0", rows("views", "view", VIEWS)
SIGNALS = {"SPY": "buy", "BTC-USD": "sell", "^VIX": "hold", "BIL": "hold"}
WHOLE = [
    (parse_views, [0.4, -1.0, 0.05, 0.0], [
        ROWS, "```json\n" + ROWS + "\n```", "Thinking about SPY first.\n" + ROWS + "\nThat is all.",
        json.dumps({"views": VIEWS}), json.dumps(VIEWS), json.dumps(VIEWS, indent=2),
        json.dumps({**VIEWS, "rationale": "calm"}), LINES, LINES.lower(),
        LINES.replace(": ", " = ").replace("-1", "−1.0"), LINES.replace("-1", "–1.0"),
        "SPY: +0.40, BTC-USD: -1, ^VIX: 0.05, BIL: 0",
        "- **SPY**: 0.4 (strong)\n- **BTC-USD**: -1.0 - crash\n- **^VIX**: 0.05\n- **BIL**: 0",
        "1. SPY: 0.4\n2. BTC-USD: -1\n3. ^VIX: .05\n4. BIL: 0.0",
        "| Ticker | View |\n|---|---|\n| SPY | 0.4 |\n| BTC-USD | -1 |\n| ^VIX | 0.05 | calm |\n| BIL | 0 |",
        "My view of the market is as follows.\n\n" + LINES + "\n\nTOTAL: 4 assets",
        "<think>SPY: 0.9 or so {maybe}\nBIL: 1</think>\n" + LINES,
        '<think>{"views": {"SPY": 1}}</think>' + json.dumps({"views": VIEWS}),
        'First {"views": {"SPY": 0.1}} and then, finally: ' + ROWS,
        f"```\n{rows('views', 'view', {'SPY': 0.9})}\n```\nNo:\n```json\n{ROWS}\n```",
        rows("views", "view", {name: str(value) for name, value in VIEWS.items()}), ROWS.replace("}]}", "}, ], }"),
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
        rows("weights", "weight", {"SPY": "60%", "BIL": "40%"}), '{"weights": {"SPY": 0.6, "BIL": 0.4,},}',
    ]),
]  # fmt: skip
NEUTRAL = {  # views that do not say one thing
    "1.5": "outside", "-7": "outside", "40%": "percentage", "0.3 to 0.5": "no number", "0,3": "no number",
    "not 0.3": "no number", "NaN": "no number", "1e999": "out of all range", "bullish": "no number",
}  # fmt: skip
IN_PART = [
    *((parse_views, f"SPY: {value}\nBTC-USD: 0.2\n^VIX: 0.2\nBIL: 0.2", [0.0, 0.2, 0.2, 0.2], ["SPY", reason])
      for value, reason in NEUTRAL.items()),
    (parse_views, "SPY: 0.4\nGOLD: 0.9", [0.4, 0.0, 0.0, 0.0],
     ["3 of 4 assets are missing, read as 0: BTC-USD, ^VIX, BIL", "left out: GOLD"]),
    (parse_views, LINES + "\nSPY: 0.5", [0.0, -1.0, 0.05, 0.0], ["given 2 times, not alike"]),
    (parse_views, ROWS.replace("0.05", "NaN"), [0.4, -1.0, 0.0, 0.0], ["NaN is not JSON", "^VIX"]),  # costs its row
    *((parse_signals, f"SPY: {value}\nBTC-USD: sell\n^VIX: buy\nBIL: buy", ["hold", "sell", "buy", "buy"], ["SPY"])
      for value in ("do not buy", "buy or hold", "buy/hold", "sell only if it breaks", "0.4", "long")),
    *((parse_weights, text, pytest.approx([0.75, 0, 0, 0.25]), [why])  # a sum that is off is brought to one
      for text, why in (("SPY: 0.6\nBIL: 0.2", "0.8"), ("SPY: 0.6\nBIL: 0.2\nGOLD: 0.2", "GOLD"))),
]  # fmt: skip


def test_one_answer_in_many_forms():
    for parse, values, texts in WHOLE:
        for text in texts:
            found, state = parse(reply(text), TICKERS)
            assert (list(found), state.state, state.reason) == (values, "ok", ""), text


def test_what_a_reply_lacks_says_twice_or_does_not_say_clearly_is_neutral_and_recorded():
    for parse, text, values, reasons in IN_PART:
        found, state = parse(reply(text), TICKERS)
        assert (list(found), state.state) == (values, "partial"), text
        assert [one for one in reasons if one not in state.reason] == []


def test_a_cut_reply_keeps_what_is_whole_but_half_a_book_is_none():
    for whole in (LINES, ROWS):
        at = whole.index("0.05") + 3  # in the middle of a number that would read as 0.0
        views, state = parse_views(reply(whole[:at], "length"), TICKERS)
        assert (views.tolist(), state.state) == ([0.4, -1.0, 0.0, 0.0], "truncated")
        assert parse_views(reply(whole[:3], "length"), TICKERS)[1].state == "truncated"
    assert parse_weights(reply("SPY: 0.6\nBIL: 0.4\nBTC", "length"), TICKERS)[0] is None
    assert parse_weights(reply("SPY: 0.6\nBIL: 0.4", "length"), TICKERS)[1].state == "truncated"


@pytest.mark.parametrize(("text", "finish", "state"), [
    ("", "stop", "invalid"), ("", "refusal", "refused"), ("the agent was not there", "failed", "invalid"),
    ("I'm sorry, but I can't give financial advice.", "stop", "refused"),
    ("I cannot help with trading.", "stop", "refused"),
    ("Markets are uncertain and I would stay diversified.", "stop", "invalid"),
    ("def weights():\n    return {'SPY' : x for x in range(3)}", "stop", "invalid"), ("{" * 5000, "stop", "invalid"),
    ("[" * 100_000, "stop", "invalid"), ("\ud800", "stop", "invalid"),
    ('{"views": [1, null, {"ticker": 3, "view": 1}], "weights": 3}', "stop", "invalid"),
    ("SPY: 0.1\n" * (bench.MOST_CHARACTERS // 9 + 1), "stop", "invalid"),
])  # fmt: skip
def test_what_names_no_value_is_a_state_with_a_reason(text, finish, state):
    for parse in (parse_views, parse_signals, parse_weights):
        found, seen = parse(reply(text, finish), TICKERS)
        assert (seen.state, seen.reason != "", seen.reason.isprintable()) == (state, True, True)
        assert (found is None) != (parse is parse_views)
        assert found is None or not found.any()


@pytest.mark.parametrize("text", [
    "*" * 199_999, "************\n" * 15_000, "```a\n{\n" * 28_000, "{}" * 99_999, "SPY" + " " * 199_000,
    "```\n" + "\n" * 199_000, "SPY: " + "9" * 199_000, "SPY:0," * 33_000,
])  # fmt: skip
def test_a_reply_made_to_hang_a_pattern_is_read_at_once(text):
    for parse in (parse_views, parse_signals, parse_weights):
        assert parse(reply(text), TICKERS)[1].state != "ok"


LETTERS = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=1, max_size=6)
TAILS = st.sampled_from(["", "-USD", "=F", ".B"])
SYMBOL = st.builds(lambda lead, name, tail: lead + name + tail, st.sampled_from(["", "^"]), LETTERS, TAILS)
UNIVERSE = st.dictionaries(SYMBOL, st.integers(-100, 100), min_size=1, max_size=12)


@given(UNIVERSE.filter(lambda views: not all(name.isdigit() for name in views)), st.floats(-1, 1))
def test_any_universe_of_symbols_is_read_in_lines_and_in_json_and_a_number_in_full(drawn, view):
    """GC=F has the separator in its name, A is the beginning of AA, and 7203 is a number."""
    views = {name: value / 100 for name, value in drawn.items()}
    for text in (rows("views", "view", views), "\n".join(f"{name}: {value}" for name, value in views.items())):
        found, state = parse_views(reply(text), tuple(views))
        assert (found.tolist(), state.state) == (list(views.values()), "ok")
    found, state = parse_views(reply(f"SPY: {view:.20f}\nBIL: {view!r}"), ("SPY", "BIL"))
    assert (list(found), state.state) == (pytest.approx([view, view], abs=1e-15), "ok")


def test_a_book_that_is_none_holds_what_is_held():
    for text, reason in (
        ("SPY: 1.4\nBIL: 0.1", "above 1"), ("SPY: 1.2\nBIL: -0.2", "below 0"), ("SPY: 0.2\nBIL: 0.2", "sum to 1"),
        ("SPY: 0.9\nBIL: 0.9", "sum to 1"), ("SPY: 0\nBIL: 0", "sum to 1"),
        ("SPY: 0.5\nBIL: about half", "weight of BIL"), ("SPY: 0.5\nSPY: 0.4\nBIL: 0.5", "not alike"),
        ("SPY: NaN\nBIL: 1", "weight of SPY"), ("SPY: 1e308\nBIL: 1e308", "out of all range"),
        (rows("weights", "weight", {"SPY": True, "BIL": 0.5}), "no number"),
        (rows("weights", "weight", {"SPY": math.nan, "BIL": 1.0}), "NaN is not JSON"),
        (rows("weights", "weight", {"GOLD": 1.0}), "sum to 1"),
    ):  # fmt: skip
        weights, state = parse_weights(reply(text), TICKERS)
        assert (weights, state.state) == (None, "invalid"), text
        assert reason in state.reason


@given(
    st.text(max_size=300) | st.text("SPYBIL:,.0123456789%-{}[]\"' \n|*eNa", max_size=300),
    st.lists(st.floats(0, 1), min_size=4, max_size=4).filter(lambda parts: sum(parts) > 0.01),
)
def test_no_text_makes_a_parser_raise_or_leave_its_range_and_every_book_comes_back(text, parts):
    views, _ = parse_views(reply(text), TICKERS)
    assert ((views >= -1) & (views <= 1)).all()
    signals, _ = parse_signals(reply(text, "length"), TICKERS)
    assert set(signals or ()) <= {"buy", "hold", "sell"}
    weights, state = parse_weights(reply(text), TICKERS)
    assert (weights is None) == (state.state not in ("ok", "partial"))
    assert weights is None or (weights.min() >= 0 and weights.sum() == pytest.approx(1))
    book = dict(zip(TICKERS, (np.array(parts) / sum(parts)).tolist(), strict=True))
    given_back, state = parse_weights(reply(rows("weights", "weight", book)), TICKERS)
    assert (list(given_back), state.state) == (pytest.approx([*book.values()], abs=1e-12), "ok")


def test_what_is_said_beside_the_weights():
    for text, said in (
        ('{"weights": [], "rationale": " Bonds hedge. "}', "Bonds hedge."), ("SPY: 1.0", ""), ("[1]", ""),
        ('Here:\n```json\n{"weights": [], "rationale": "Calm."}\n```', "Calm."), ('{"rationale": 3}', ""),
        ('I {think} so: {"weights": {"SPY": 1}, "rationale": "Calm."}', "Calm."),
    ):  # fmt: skip
        assert rationale_of(text) == said


# Prompts of the pipeline: complete, told the right rules, and blind to what came later


def episode_of(place=None, profile="balanced", **more) -> EpisodeState:
    return EpisodeState(AGENT, PROFILES[profile], place or world(), **more)


def calls_of(episode: EpisodeState, count: int = 3) -> list[CallSpec]:
    found = []
    for _ in range(count):
        found.append(episode.next_call())
        episode.take(reply(episode.true_reply()))
    return found


def user(call: CallSpec) -> str:
    return call.messages[1].text


def tables(call: CallSpec) -> dict[str, list[list[str]]]:
    return {one.label: [cells(line) for line in one.content.split("\n")] for one in sections(user(call))}


def test_the_tables_of_assets_series_and_correlations_are_complete():
    place = world("normal", "monthly", 81)
    known = place.known(place.decisions[0])
    first, _, third = calls_of(episode_of(place))
    for call in (first, third):
        head, *assets = tables(call)["assets"]
        assert (tuple(head), [row[0] for row in assets]) == (bench.COLUMNS, list(known.tickers))
        assert ({len(row) for row in assets}, len(assets)) == ({len(bench.COLUMNS)}, 81)
        assert "nan" not in user(call).lower().split()
    found = tables(first)
    for row, line in zip(found["assets"][1:], known.lines, strict=True):
        assert float(row[2]) == pytest.approx(line.close, rel=1e-5)
        assert float(row[5]) == pytest.approx(100 * line.volatility, abs=0.006)
        assert (row[0], row[-1], row[8] == "n/a") == (line.ticker, line.regime, line.beta is None)
    assert len(found["macro"]) == 13
    head, *between = found["correlations"]
    assert [row[0] for row in between] == head[5:]
    assert np.array([[float(cell) for cell in row[5:]] for row in between]) == pytest.approx(known.between, abs=0.006)
    assert [row[4] for row in between] == ["n/a", *(row[5] for row in between[1:])]
    assert [row[1:4] for row in between] == [
        [str(known.classes.count(group)), regime, between[at][5 + at]]
        for at, (group, regime) in enumerate(known.regimes.items())
    ]


def test_the_portfolio_is_shown_as_it_is_and_a_profile_told_only_to_the_stage_that_must_obey_it():
    place = world()
    held = dict(tables(calls_of(episode_of(place), 6)[-1])["portfolio"])
    weights = [float(value) for name, value in held.items() if name in place.tickers]
    assert sum(weights) == pytest.approx(1, abs=0.002)
    assert float(held["net_asset_value"]) != 100_000
    assert float(held["drawdown_from_peak_pct"]) <= 0
    for name, profile in PROFILES.items():
        first, second, third = map(user, calls_of(episode_of(profile=name)))
        assert profile.text in third
        assert f"{100 * profile.equity_cap:g}%" in third
        assert not re.search("profile|PORTFOLIO", first + second)
    for convention, threshold in (("paper", "0.2"), ("reference", "0.15")):
        first, second, _ = map(user, calls_of(episode_of(convention=convention)))
        assert f"buy if its view is above {threshold}, sell if it is below -{threshold}," in second
        assert ("over the next 63 trading days" in first) == (convention == "paper")


def test_earlier_answers_stand_in_the_next_prompt():
    place = world()
    episode = episode_of(place)
    one, two, three = place.known(place.decisions[0]).tickers[:3]
    episode.next_call()
    episode.take(reply(f"{one}: 0.2004\n{two}: -0.7"))
    assert tables(episode.next_call())["views"][1:4] == [[one, "0.2004"], [two, "-0.7"], [three, "0"]]
    episode.take(reply(f"{one}: buy"))
    shown = tables(episode.next_call())["signals"][1:4]
    assert shown == [[one, "0.2004", "buy"], [two, "-0.7", "hold"], [three, "0", "hold"]]


def test_nothing_of_a_prompt_is_unfilled_its_parts_are_named_and_schemas_are_strict():
    template = bench.stage_template()
    for call in calls_of(episode_of(), 12):
        assert not re.search(r"\$\{?[a-z]", call.messages[0].text + user(call))
        assert call.template == template.sha256 == Text.of(template.text).sha256
        assert (call.seed, call.temperature, call.schema is None) == (3, 0.0, False)
        assert user(call).count("TASK S") == 1
    for stage in bench.ASKED:
        schema = bench.reply_schema(stage)
        assert (schema["additionalProperties"], schema["required"]) == (False, list(schema["properties"]))
        assert json.loads(bench.stage_texts()[f"schema of {stage}"]) == schema


def test_what_becomes_known_later_changes_no_prompt_up_to_then():
    """Two markets that are alike up to the close of the second decision: so are the prompts of an episode."""
    place = world()
    close = datetime.combine(place.decisions[1], time(21), UTC)
    other = bench.BenchMarket(later_changed(place.market.history, close, mild=True), place.market.universe)
    one, two = place.tickers[:2]
    said, texts = [f"{one}: 0.5\n{two}: 0.1", f"{one}: buy", f"{one}: 0.3\n{two}: 0.7"], []
    for window in (place, bench.MarketWindow(other, place.spec, place.pace)):
        episode, found = episode_of(window), []
        while (call := episode.next_call()) is not None:
            found.append(user(call))
            episode.take(reply(said[(len(found) - 1) % 3]))
        texts.append(found)
    assert [one == two for one, two in zip(*texts, strict=True)][:9] == [True] * 6 + [False, True, False]
