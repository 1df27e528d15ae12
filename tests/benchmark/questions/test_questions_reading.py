"""Replies are read strictly by meaning and leniently by form, and scored by rule whatever they hold."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from datetime import date
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.benchmark import questions as qa
from assaymark.errors import InputError

RETURNS = (-0.02, 0.01, 0.03)
PAIR, THREE, UNIT = ("XLY", "STIP"), ("VLUE", "XRP-USD", "DBC"), ((1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0))
PAYLOADS = {
    "T1": (qa.ReturnDirection("ETH-USD", 21, 60, 320.88, 441.72, 0.377, 0.796), qa.Direction("positive")),
    "T2": (qa.TailRisk("XLV", 0.95, RETURNS), qa.Number(-0.02)),
    "T3": (qa.PositionSize("VCIT", 0.1, RETURNS), qa.Number(0.5)),
    "T4": (qa.PairAllocation(PAIR, (0.195, 0.033), (0.202, 0.05), 0.001, 0.15, 0.1224),
           qa.Weights({"XLY": 0.476, "STIP": 0.524})),
    "T5": (qa.SharpeAllocation(THREE, (0.1, 0.2, 0.3), UNIT, 0.04),
           qa.Weights({"VLUE": 0.2, "XRP-USD": 0.3, "DBC": 0.5})),
    "T6": (qa.Rebalancing(("IVV", "BNB-USD"), (0.435, 0.565), (0.5, 0.5), 0.05), qa.Trade(True, "buy", "IVV", 0.065)),
    "T7": (qa.RegimeCall("equity", 60, 103.1, ()), qa.RegimeView("sideways", qa.CHANGES["sideways"])),
}  # fmt: skip


def question(template, answer=None):
    (payload, truth), day = PAYLOADS[template], date(2025, 3, 3)
    return qa.Question(f"{template}-1", template, "test", "bull", day, payload, qa.Context(), answer or truth)


def score(template, reply, **more) -> float:
    return qa.score_answer(question(template), reply, **more).score


READ = {
    "T1": {
        "positive": ["ANSWER: positive", '{"answer": "positive"}'],
        "negative": [
            "**Answer:** Negative.", "It could be positive or negative.\nANSWER: negative", "Not positive, negative",
        ],
        "flat": [
            "I expect momentum to fade.\nFinal answer: flat", "ANSWER: <flat>",
            '{"answer": "flat", "rationale": "neither positive, nor will it be negative"}',
        ],
        None: ["positive or negative", "ANSWER: positive, negative or flat", "The sky is blue."],
    },
    "T2": {
        -0.02: [
            "ANSWER: -0.0200", "VaR at 95% is -0.0200", "The 95% VaR is −2.00%", "VaR95 = -0.02", "VaR(95%) ≈ -2%",
            "1-day 95% confidence VaR: -0.02", "The 5th percentile of 252 returns is -0.02",
            "ANSWER: -0.02 (that is, -2.00%)", "ANSWER: a loss of 2%", "Step 1: sort. Step 2: pick.\nANSWER: -2e-2",
            "-200 bps", "ANSWER: $-0.02$", '{"rationale": "the worst day was -0.05", "answer": -0.02}',
            '{"answer": "-0.02", "rationale": "the worst day was -0.05"}',
        ],
        0.02: ["0.02"], None: ["ANSWER: -0.02 or -0.03", "ANSWER: NaN", "ANSWER: infinity", "ANSWER: none"],
    },
    "T3": {  # the last step of a calculation counts
        0.5: ["f = 0.10/0.2 = 0.5"],
        1.0: ["ANSWER: f = 0.10/0.0034 = 29.4 -> capped at 1.0", "ANSWER: f = min(1, 29.4) = 1.0"],
    },
    "T4": {
        (0.476, 0.524): [
            "ANSWER: XLY=0.476, STIP=0.524", "w_XLY = 47.6%, w_STIP = 52.4%", "XLY: 47.6\nSTIP: 52.4",
            "47.6% in XLY and 52.4% in STIP", '```json\n{"weights": {"XLY": 0.476, "STIP": 0.524}}\n```',
            "$w_{XLY} = 0.476$, $w_{STIP} = 0.524$", "ANSWER: [0.476, 0.524]",
            "\\boxed{w_{\\text{XLY}} = 0.476, w_{\\text{STIP}} = 0.524}", "| XLY | 0.476 |\n| STIP | 0.524 |",
            '{"weights": [{"ticker": "XLY", "weight": 0.476}, {"ticker": "STIP", "weight": 0.524}]}',
        ],
        (1.0, 0.0, "partial"): ["ANSWER: XLY=1.0"],
        (0.5 / 0.95, 0.45 / 0.95, "partial"): ["ANSWER: XLY=0.5, STIP=0.45"],
        None: [
            "ANSWER: XLY=1.3, STIP=-0.3", "ANSWER: XLY=0.9, STIP=0.9", "ANSWER: XLY=NaN, STIP=0.2",
            "ANSWER: XLY=0.2, XLY=0.8, STIP=0.2", "", "def solve(): return weights",
        ],
        "refused": ["I cannot give investment advice.", "I'm sorry, but I can't help with that."],
    },
    "T6": {
        qa.Trade(False): [
            "No, do not rebalance.", "ANSWER: no", "Rebalancing is not needed.", "There is no need to trade.",
            "The portfolio should not be rebalanced", '{"rebalance": false}',
        ],
        qa.Trade(True, "buy", "IVV", 0.065): [
            "ANSWER: yes; buy 0.065 of IVV", "Yes. IVV is too low: buy 0.065",
            "The portfolio should be rebalanced: buy 0.0650 of IVV.", "Yes: 0.065 of IVV should be bought; size 0.065",
            '{"rebalance": true, "side": "buy", "size": 0.065, "instrument": "IVV"}',
            '{"answer": "yes; buy 0.065 of IVV, and there is no other trade"}',
        ],
        qa.Trade(True, "sell", "BNB-USD", 0.065): ["(A) Yes. (B) Sell 6.5% of BNB-USD"],
        (qa.Trade(True), "partial"): ["Yes"], None: ["Maybe."],
    },
    "T7": {
        "bull equity=increase cash=decrease": ["ANSWER: regime=bull; equity=increase, cash=decrease"],
        "sideways equity=hold bond=hold": ["Regime: Sideways\n- Equities: maintain\n- Bonds: neutral"],
        "crisis equity=decrease cash=increase": ["Regime is crisis. Reduce stocks, raise cash."],
        "bear real_estate=decrease": ['{"regime": "bear", "real_estate": "lower"}'],
        "bear": ["Not a bull market but a bear market."],
        "None bond=hold": ["It is a bull or a bear market. Bonds: hold"],
        "None real_estate=increase crypto=decrease": ["Real Estate: overweight; Crypto: reduce"],
    },
}  # fmt: skip
"""Replies of each template by what they say; a reply that says it in part, or none of it, has its state beside it."""


@pytest.mark.parametrize("template", READ)
def test_replies_are_read_strictly_by_meaning_and_leniently_by_form(template):
    for wanted, reply in ((wanted, reply) for wanted, replies in READ[template].items() for reply in replies):
        read = qa.read_answer(question(template), reply)
        match read.answer:
            case None:
                assert wanted == (None if read.state == "invalid" else read.state), reply
                assert score(template, reply) == 0.0
            case qa.Direction(way):
                assert way == wanted
            case qa.Number(value):
                assert value == pytest.approx(wanted), reply
            case qa.Weights(weights):
                said = [*weights.values(), *([read.state] if read.state != "ok" else [])]
                assert said[:2] == pytest.approx(wanted[:2]), reply
                assert said[2:] == list(wanted[2:])
            case qa.Trade() as trade:
                assert (trade if read.state == "ok" else (trade, read.state)) == wanted
            case qa.RegimeView(regime, changes):
                assert " ".join([str(regime), *map("=".join, changes.items())]) == wanted
        assert (read.reason != "") == (read.state != "ok")


def test_names_inside_of_names_the_order_of_weights_and_instruments_that_were_not_asked_for():
    read = qa.read_answer(question("T5"), "ANSWER: VLUE=0.2, XRP-USD=0.3, DBC=0.5")
    assert read.answer.weights == pytest.approx({"VLUE": 0.2, "XRP-USD": 0.3, "DBC": 0.5})
    other = qa.Weights({"USD": 0.4, "XRP-USD": 0.6})
    assert qa.read_answer(question("T4", other), "ANSWER: XRP-USD=0.6, STIP=0.4").state == "partial"
    # The order changes no bit of a score; nor does the hash seed of the interpreter, which orders sets of names.
    said = {"XLY": 0.1, "GLD": 0.2, "STIP": 0.3, "DBC": 0.37, "VTI": 0.03}
    written = [", ".join(f"{name}={said[name]}" for name in order) for order in permutations(said)]
    assert len({score("T5", f"ANSWER: {line}") for line in written}) == 1
    found = qa.score_answer(question("T4"), "ANSWER: XLY=0.476, STIP=0.324, GLD=0.2")
    assert (found.state, "GLD" in found.reason, found.score) == ("partial", True, pytest.approx(0.8))


def test_a_cut_off_reply_counts_only_with_its_mark():
    for template in PAYLOADS:
        cut = qa.read_answer(question(template), "So far -0.02, yes, buy, positive, XLY=1", finish="length")
        assert (cut.answer, cut.state) == (None, "truncated")
        assert qa.read_answer(question(template), "ANSWER: yes", finish="refusal").state == "refused"
        assert qa.read_answer(question(template), "", finish="failed").state == "invalid"


def test_numbers_score_by_relative_error_and_a_trade_is_credited_only_after_a_right_yes():
    for template, reply, wanted in (
        ("T2", "-0.02", 1.0), ("T2", "-0.021", 0.95), ("T2", "-0.03", 0.5), ("T2", "0.02", 0.0), ("T2", "-9", 0.0),
        ("T6", "yes; buy 0.065 of IVV", 1.0), ("T6", "yes; sell 0.065 of IVV", 0.7),
        ("T6", "yes; buy 0.1 of BNB-USD", 0.7), ("T6", "yes; sell 0.1 of BNB-USD", 0.4), ("T6", "yes", 0.4),
        ("T6", "no", 0.0), ("T6", "no; buy 0.065 of IVV", 0.0),
    ):  # fmt: skip
        assert score(template, f"ANSWER: {reply}") == pytest.approx(wanted), reply
    # Equal weights in figure 27: their cosine with .476 and .524 is .9988; the overlap is .976.
    even = "ANSWER: XLY=0.5, STIP=0.5"
    assert score("T4", even) == pytest.approx(0.976)
    assert score("T4", even, convention="reference") == pytest.approx(0.9988, abs=1e-4)
    right_no = question("T6", qa.Trade(False))
    assert [qa.score_answer(right_no, said).score for said in ("No.", "Yes; buy 0.065 of IVV")] == [1.0, 0.0]
    told = ", ".join(f"{name}={change}" for name, change in qa.CHANGES["sideways"].items())
    scores = {
        "regime=sideways": 0.5, f"regime=bull; {told}": 0.5, f"regime=sideways; {told}": 1.0,
        f"regime=sideways; {told.replace('hold', 'neutral')}": 1.0,
    }  # fmt: skip
    assert {said: score("T7", said) for said in scores} == scores


FRAGMENTS = st.sampled_from(
    ["ANSWER:", "answer", "XLY", "STIP", "IVV", "=", ":", "%", "0.5", "-1e999", "1e-400", "nan", "inf", "yes", "no",
     "not ", "buy", "sell", "{", "}", '"', "regime", "bull", "bear", "equity", "increase", "\n", " ", "\\", "9" * 400,
     "−", "[", "]", "positive", "flat", "loss of", "VaR", "at", "is", "₿", "\x00", "\ud800"]
)  # fmt: skip
TEXTS = st.lists(FRAGMENTS, max_size=40).map(" ".join)


@given(st.sampled_from(sorted(PAYLOADS)), TEXTS, st.sampled_from(["stop", "length"]))
def test_no_reply_breaks_the_reading(template, reply, finish):
    for convention in ("paper", "reference"):
        found = qa.score_answer(question(template), reply, finish=finish, convention=convention)
        assert 0.0 <= found.score <= 1.0
        assert all(0.0 <= value <= 1.0 for value in found.parts.values())
        assert (found.reason == "") == (found.state == "ok")
        assert found.score == 0.0 or found.state in ("ok", "partial")


@pytest.mark.parametrize("template", PAYLOADS)
def test_a_huge_reply_is_read_in_passing(template):
    for piece in ("XLY = ", "9", " ", "not ", "equity: ", "ANSWER: ", "{", "at 9 ", "1,111", "regime", "-"):
        assert score(template, piece * 60_000) == 0.0


@given(
    st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda one: sum(one) > 0.01), st.floats(-0.3, -1e-4),
    st.sampled_from(["ANSWER: {:.6f}", "VaR at 95% is {:.6f}", "the 95% VaR equals {:.6f}."]),
)  # fmt: skip
def test_any_weights_and_any_number_come_back_as_written(raw, value, form):
    wanted = [one / math.fsum(raw) for one in raw]
    reply = "ANSWER: " + ", ".join(f"{name}={one:.6f}" for name, one in zip(THREE, wanted, strict=True))
    found = qa.read_answer(question("T5"), reply).answer
    assert [found.weights[name] for name in THREE] == pytest.approx(wanted, abs=2e-6)
    assert qa.read_answer(question("T2"), form.format(value)).answer.value == pytest.approx(value, abs=1e-6)


# Questions as JSON lines: round trip, tampering, the authors' layout, the card and the manifest


@pytest.fixture(scope="module")
def some(whole):
    return tuple(whole.questions[::37])


def test_what_is_written_is_read_back_with_both_prompts_for_whoever_only_asks(whole, some, tmp_path):
    path = tmp_path / "q.jsonl"
    digest = qa.write_questions(path, some)
    assert qa.read_questions(path) == some
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest() == qa.questions_digest(some)
    for one, line in zip(some, map(json.loads, path.read_text().splitlines()), strict=True):
        assert line["prompt"] == one.prompt("full")
        assert ("restricted" in line) == (one.template in ("T4", "T5"))
    for one in whole.questions[::5]:  # the answer as text is the answer
        found = qa.score_answer(one, f"ANSWER: {qa.answer_text(one.answer)}")
        assert (found.state, abs(found.score - 1.0) <= 1e-6) == ("ok", True)


def read(folder, *items):
    """The questions of a file of these items, each a question, a mapping or a line."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in items]
    (folder / "q.jsonl").write_text("\n".join(lines))
    return qa.read_questions(folder / "q.jsonl")


def test_what_is_no_question_is_named_line_by_line(some, tmp_path):
    fields = json.loads(qa.question_line(some[0]))
    with pytest.raises(InputError, match="line 1, prompt: is not the one that its payload gives"):
        read(tmp_path, fields | {"prompt": fields["prompt"] + "The answer is 1."})
    with pytest.raises(InputError) as caught:
        read(
            tmp_path, "no json", "[]", fields | {"template": "T9", "split": "all", "regime": "calm", "day": "tomorrow"},
            fields | {"truth": {"value": "much"}}, fields | {"payload": fields["payload"] | {"extra": 1}},
        )  # fmt: skip
    places = [str(one.where) for one in caught.value.problems]
    third = ["line 3, template", "line 3, split", "line 3, regime", "line 3, day"]
    assert [place for place in places if place.startswith("line 3")] == third
    assert {place.split(",")[0] for place in places} == {f"line {n}" for n in range(1, 6)}
    with pytest.raises(InputError, match="id: comes more than once"):
        read(tmp_path, fields, fields)
    for name, content, said in (("a", b"", "holds no questions"), ("b", b"\xff\xfe", "is not UTF-8")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=said):
            qa.read_questions(tmp_path / name)
    with pytest.raises(InputError, match="cannot be read"):
        qa.read_questions(tmp_path / "none")


def published(template, answer, question="Covariance(XLY,STIP) = 0.000100, Correlation = 0.200\nWhich?", **more):
    """An item in the layout in which the authors published theirs."""
    return {
        "qa_id": f"{template}_all_20250303_001", "template_id": template, "complexity": 2, "split": "test",
        "market_regime": "bull", "asset_class": "all", "assets": ["XLY", "STIP"], "decision_date": "2025-03-03",
        "context_summary": "Min-variance weights: XLY=0.476", "question": question, "answer": answer,
        "answer_numeric": None, "explanation": "XLY=0.476", "metadata": {"weights": {"XLY": 0.476}},
    } | more  # fmt: skip


def test_the_published_layout_is_read(tmp_path):
    regimes = "Regime: bear; Allocations: equities: decrease, cash: increase, commodities: neutral"
    for template, level, answer, expected in (
        ("T1", 1, "positive", qa.Direction("positive")), ("T1", 1, "down", qa.Direction("negative")),
        ("T2", 1, "-0.0080", qa.Number(-0.008012)), ("T3", 1, "1.0000", qa.Number(1.0)),
        ("T4", 2, "w_XLY=0.4760, w_STIP=0.5240", qa.Weights({"XLY": 0.476, "STIP": 0.524})),
        ("T6", 3, "yes", qa.Trade(True)), ("T6", 3, "no", qa.Trade(False)),
        ("T6", 3, "Yes; buy 0.065 of XLY", qa.Trade(True, "buy", "XLY", 0.065)),
        ("T7", 4, regimes, qa.RegimeView("bear", {"equity": "decrease", "commodity": "hold", "cash": "increase"})),
    ):  # fmt: skip
        (one,) = read(tmp_path, published(template, answer, answer_numeric=-0.008012 if template == "T2" else None))
        assert (one.answer, one.level) == (expected, level)
        assert isinstance(one.payload, qa.Printed)
        assert "0.476" not in one.prompt("full")  # their summary states answers and stays out
    (one,) = read(tmp_path, published("T6", "yes"))  # without a trade, scored by the decision
    assert [qa.score_answer(one, said).score for said in ("yes; sell 0.1 of STIP", "no")] == [1.0, 0.0]
    with pytest.raises(InputError, match="answer: no weights"):
        read(tmp_path, published("T4", "balanced"))
    text = "Assets: XLY, STIP\nCovariance matrix (annualized):\n[[0.1, 0.0],\n [0.0, 0.1]]\nRisk-free rate: 4.00%"
    (one,) = read(tmp_path, published("T5", "w_XLY=0.5, w_STIP=0.5", text))
    full, restricted = one.prompt("full"), one.prompt("restricted")
    assert ("0.1" in full, "0.1" in restricted, "Risk-free rate: 4.00%" in restricted) == (True, False, True)
    qa.write_questions(tmp_path / "again.jsonl", [one])
    assert qa.read_questions(tmp_path / "again.jsonl") == (one,)


def test_the_manifest_names_a_set_and_the_card_counts_what_is_there(whole):
    small, other = (replace(whole, questions=whole.questions[at : at + 50]) for at in (0, 1))
    first = qa.manifest(small)
    assert first == qa.manifest(small)
    assert first["sha256"] != qa.manifest(other)["sha256"]
    assert first["items"] == 50
    some = replace(whole, questions=whole.questions[::5])
    card, trades = qa.dataset_card(some), [one.answer.rebalance for one in some.questions if one.template == "T6"]
    wanted = "1,254 items", f"T6 that need a trade: {sum(trades)} of {len(trades)}"
    wanted = (*wanted, *(f"| {name} | " for name in qa.TEMPLATES))
    assert [one for one in wanted if one not in card] == []
    assert "nan" not in card
