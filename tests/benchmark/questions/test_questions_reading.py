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

from assaymark.benchmark import questions
from assaymark.errors import InputError

RETURNS = (-0.02, 0.01, 0.03)
PAYLOADS = {
    "T1": (questions.ReturnDirection("ETH-USD", 21, 60, 320.88, 441.72, 0.377, 0.796), questions.Direction("positive")),
    "T2": (questions.TailRisk("XLV", 0.95, RETURNS), questions.Number(-0.02)),
    "T3": (questions.PositionSize("VCIT", 0.1, RETURNS), questions.Number(0.5)),
    "T4": (
        questions.PairAllocation(("XLY", "STIP"), (0.195, 0.033), (0.202, 0.05), 0.001, 0.15, 0.1224),
        questions.Weights({"XLY": 0.476, "STIP": 0.524}),
    ),
    "T5": (
        questions.SharpeAllocation(
            ("VLUE", "XRP-USD", "DBC"), (0.1, 0.2, 0.3), ((1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0)), 0.04
        ),
        questions.Weights({"VLUE": 0.2, "XRP-USD": 0.3, "DBC": 0.5}),
    ),
    "T6": (
        questions.Rebalancing(("IVV", "BNB-USD"), (0.435, 0.565), (0.5, 0.5), 0.05),
        questions.Trade(True, "buy", "IVV", 0.065),
    ),
    "T7": (
        questions.RegimeCall("equity", 60, 103.1, ()),
        questions.RegimeView("sideways", questions.CHANGES["sideways"]),
    ),
}


def question(template, answer=None):
    payload, truth = PAYLOADS[template]
    return questions.Question(
        f"{template}-1", template, "test", "bull", date(2025, 3, 3), payload, questions.Context(), answer or truth
    )


READ = {
    "T1": {
        "positive": ["ANSWER: positive", '{"answer": "positive"}'],
        "negative": [
            "**Answer:** Negative.", "It could be positive or negative.\nANSWER: negative", "Not positive, negative",
        ],
        "flat": ["I expect momentum to fade.\nFinal answer: flat"],
        None: ["positive or negative", "ANSWER: positive, negative or flat", "The sky is blue."],
    },
    "T2": {
        -0.02: [
            "ANSWER: -0.0200", "VaR at 95% is -0.0200", "The 95% VaR is −2.00%", "VaR95 = -0.02", "VaR(95%) ≈ -2%",
            "1-day 95% confidence VaR: -0.02", "The 5th percentile of 252 returns is -0.02",
            "ANSWER: -0.02 (that is, -2.00%)", "ANSWER: a loss of 2%", "Step 1: sort. Step 2: pick.\nANSWER: -2e-2",
            "-200 bps", "ANSWER: $-0.02$",
        ],
        0.02: ["0.02"],
        None: ["ANSWER: -0.02 or -0.03", "ANSWER: NaN", "ANSWER: infinity", "ANSWER: none"],
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
        questions.Trade(False): [
            "No, do not rebalance.", "ANSWER: no", "Rebalancing is not needed.", "There is no need to trade.",
            "The portfolio should not be rebalanced",
        ],
        questions.Trade(True, "buy", "IVV", 0.065): [
            "ANSWER: yes; buy 0.065 of IVV", "Yes. IVV is too low: buy 0.065",
            "The portfolio should be rebalanced: buy 0.0650 of IVV.",
        ],
        questions.Trade(True, "sell", "BNB-USD", 0.065): ["(A) Yes. (B) Sell 6.5% of BNB-USD"],
        (questions.Trade(True), "partial"): ["Yes"],
        None: ["Maybe."],
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
    for wanted, replies in READ[template].items():
        for reply in replies:
            read = questions.read_answer(question(template), reply)
            match read.answer:
                case None:
                    assert wanted == (None if read.state == "invalid" else read.state), reply
                    assert questions.score_answer(question(template), reply).score == 0.0
                case questions.Direction(way):
                    assert way == wanted
                case questions.Number(value):
                    assert value == pytest.approx(wanted), reply
                case questions.Weights(weights):
                    said = [*weights.values(), *([read.state] if read.state != "ok" else [])]
                    assert said[:2] == pytest.approx(wanted[:2]), reply
                    assert said[2:] == list(wanted[2:])
                case questions.Trade() as trade:
                    assert (trade if read.state == "ok" else (trade, read.state)) == wanted
                case questions.RegimeView(regime, changes):
                    assert " ".join([str(regime), *map("=".join, changes.items())]) == wanted
            assert (read.reason != "") == (read.state != "ok")


def test_a_name_inside_of_another_is_not_that_name():
    read = questions.read_answer(question("T5"), "ANSWER: VLUE=0.2, XRP-USD=0.3, DBC=0.5")
    assert read.answer.weights == pytest.approx({"VLUE": 0.2, "XRP-USD": 0.3, "DBC": 0.5})
    other = questions.Weights({"USD": 0.4, "XRP-USD": 0.6})
    assert questions.read_answer(question("T4", other), "ANSWER: XRP-USD=0.6, STIP=0.4").state == "partial"


def test_the_order_of_weights_in_a_reply_changes_no_bit_of_its_score():
    """Nor does the hash seed of the interpreter, which orders sets of names: tables are compared by their bytes."""
    said = {"XLY": 0.1, "GLD": 0.2, "STIP": 0.3, "DBC": 0.37, "VTI": 0.03}
    written = [", ".join(f"{name}={said[name]}" for name in order) for order in permutations(said)]
    assert len({questions.score_answer(question("T5"), f"ANSWER: {line}").score for line in written}) == 1


def test_weights_of_instruments_that_were_not_asked_for_cost_what_they_take():
    score = questions.score_answer(question("T4"), "ANSWER: XLY=0.476, STIP=0.324, GLD=0.2")
    assert score.state == "partial"
    assert "GLD" in score.reason
    assert score.score == pytest.approx(0.8)


@pytest.mark.parametrize("template", PAYLOADS)
def test_a_cut_off_reply_counts_only_with_its_mark(template):
    cut = questions.read_answer(question(template), "So far -0.02, yes, buy, positive, XLY=1", finish="length")
    assert (cut.answer, cut.state) == (None, "truncated")
    assert questions.read_answer(question(template), "ANSWER: yes", finish="refusal").state == "refused"
    assert questions.read_answer(question(template), "", finish="failed").state == "invalid"


@pytest.mark.parametrize(
    ("reply", "score"), [("-0.02", 1.0), ("-0.021", 0.95), ("-0.03", 0.5), ("0.02", 0.0), ("-9", 0.0)]
)
def test_numbers_score_by_relative_error(reply, score):
    assert questions.score_answer(question("T2"), f"ANSWER: {reply}").score == pytest.approx(score)


def test_equal_weights_in_figure_27_differ_between_the_conventions():
    """The cosine of .5 and .5 with .476 and .524 is .9988; the overlap is .976."""
    reply = "ANSWER: XLY=0.5, STIP=0.5"
    assert questions.score_answer(question("T4"), reply).score == pytest.approx(0.976)
    assert questions.score_answer(question("T4"), reply, convention="reference").score == pytest.approx(
        0.9988, abs=1e-4
    )


@pytest.mark.parametrize(
    ("reply", "score"),
    [("yes; buy 0.065 of IVV", 1.0), ("yes; sell 0.065 of IVV", 0.7), ("yes; buy 0.1 of BNB-USD", 0.7),
     ("yes; sell 0.1 of BNB-USD", 0.4), ("yes", 0.4), ("no", 0.0), ("no; buy 0.065 of IVV", 0.0)],
)  # fmt: skip
def test_a_trade_is_credited_only_after_a_right_yes(reply, score):
    assert questions.score_answer(question("T6"), f"ANSWER: {reply}").score == pytest.approx(score)


def test_a_right_no_is_all_and_a_regime_is_half():
    one = question("T6", questions.Trade(False))
    assert [questions.score_answer(one, said).score for said in ("No.", "Yes; buy 0.065 of IVV")] == [1.0, 0.0]
    told = ", ".join(f"{name}={change}" for name, change in questions.CHANGES["sideways"].items())
    scores = {
        "regime=sideways": 0.5, f"regime=bull; {told}": 0.5, f"regime=sideways; {told}": 1.0,
        f"regime=sideways; {told.replace('hold', 'neutral')}": 1.0,
    }  # fmt: skip
    assert {said: questions.score_answer(question("T7"), said).score for said in scores} == scores


FRAGMENTS = st.sampled_from(
    ["ANSWER:", "answer", "XLY", "STIP", "IVV", "=", ":", "%", "0.5", "-1e999", "1e-400", "nan", "inf", "yes", "no",
     "not ", "buy", "sell", "{", "}", '"', "regime", "bull", "bear", "equity", "increase", "\n", " ", "\\", "9" * 400,
     "−", "[", "]", "positive", "flat", "loss of", "VaR", "at", "is", "₿", "\x00", "\ud800"]
)  # fmt: skip


@given(
    st.sampled_from(sorted(PAYLOADS)),
    st.lists(FRAGMENTS, max_size=40).map(" ".join),
    st.sampled_from(["stop", "length"]),
)
def test_no_reply_breaks_the_reading(template, reply, finish):
    for convention in ("paper", "reference"):
        found = questions.score_answer(question(template), reply, finish=finish, convention=convention)
        assert 0.0 <= found.score <= 1.0
        assert all(0.0 <= value <= 1.0 for value in found.parts.values())
        assert (found.reason == "") == (found.state == "ok")
        if found.state not in ("ok", "partial"):
            assert found.score == 0.0


@pytest.mark.parametrize("template", PAYLOADS)
@pytest.mark.parametrize(
    "piece", ["XLY = ", "9", " ", "not ", "equity: ", "ANSWER: ", "{", "at 9 ", "1,111", "regime", "-"]
)
def test_a_huge_reply_is_read_in_passing(template, piece):
    assert questions.score_answer(question(template), piece * 60_000).score == 0.0


@given(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda one: sum(one) > 0.01))
def test_any_weights_come_back_as_written(raw):
    total = math.fsum(raw)
    names = ("VLUE", "XRP-USD", "DBC")
    reply = "ANSWER: " + ", ".join(f"{name}={value / total:.6f}" for name, value in zip(names, raw, strict=True))
    found = questions.read_answer(question("T5"), reply).answer
    assert [found.weights[name] for name in names] == pytest.approx([value / total for value in raw], abs=2e-6)


@given(
    st.floats(-0.3, -1e-4), st.sampled_from(["ANSWER: {:.6f}", "VaR at 95% is {:.6f}", "the 95% VaR equals {:.6f}."])
)
def test_any_number_comes_back_as_written(value, form):
    assert questions.read_answer(question("T2"), form.format(value)).answer.value == pytest.approx(value, abs=1e-6)


# Questions as JSON lines: round trip, tampering, the authors' layout, the card and the manifest


@pytest.fixture(scope="module")
def some(whole):
    return tuple(whole.questions[::37])


def test_what_is_written_is_read_back_with_both_prompts_for_whoever_only_asks(some, tmp_path):
    digest = questions.write_questions(tmp_path / "q.jsonl", some)
    assert questions.read_questions(tmp_path / "q.jsonl") == some
    assert digest == hashlib.sha256((tmp_path / "q.jsonl").read_bytes()).hexdigest() == questions.questions_digest(some)
    for one in some:
        line = json.loads(questions.question_line(one))
        assert line["prompt"] == one.prompt("full")
        assert ("restricted" in line) == (one.template in ("T4", "T5"))


def test_the_answer_as_text_is_the_answer(whole):
    for one in whole.questions[::5]:
        found = questions.score_answer(one, f"ANSWER: {questions.answer_text(one.answer)}")
        assert found.state == "ok"
        assert found.score == pytest.approx(1.0, abs=1e-6)


def read(folder, *items):
    """The questions of a file of these items, each a question, a mapping or a line."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in items]
    (folder / "q.jsonl").write_text("\n".join(lines))
    return questions.read_questions(folder / "q.jsonl")


def test_what_is_no_question_is_named_line_by_line(some, tmp_path):
    fields = json.loads(questions.question_line(some[0]))
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


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "holds no questions"), (b"\xff\xfe", "is not UTF-8"), (None, "cannot be read")]
)
def test_files_that_are_none(content, message, tmp_path):
    if content is not None:
        (tmp_path / "q.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=message):
        questions.read_questions(tmp_path / "q.jsonl")


def published(template, answer, question="Covariance(XLY,STIP) = 0.000100, Correlation = 0.200\nWhich?", **more):
    """An item in the layout in which the authors published theirs."""
    return {
        "qa_id": f"{template}_all_20250303_001", "template_id": template, "complexity": 2, "split": "test",
        "market_regime": "bull", "asset_class": "all", "assets": ["XLY", "STIP"], "decision_date": "2025-03-03",
        "context_summary": "Min-variance weights: XLY=0.476", "question": question, "answer": answer,
        "answer_numeric": None, "explanation": "XLY=0.476", "metadata": {"weights": {"XLY": 0.476}},
    } | more  # fmt: skip


@pytest.mark.parametrize(
    ("template", "answer", "more", "expected"),
    [
        ("T1", "positive", {}, questions.Direction("positive")),
        ("T1", "down", {}, questions.Direction("negative")),
        ("T2", "-0.0080", {"answer_numeric": -0.008012}, questions.Number(-0.008012)),
        ("T3", "1.0000", {}, questions.Number(1.0)),
        ("T4", "w_XLY=0.4760, w_STIP=0.5240", {}, questions.Weights({"XLY": 0.476, "STIP": 0.524})),
        ("T6", "yes", {}, questions.Trade(True)),
        ("T6", "Yes; buy 0.065 of XLY", {}, questions.Trade(True, "buy", "XLY", 0.065)),
        ("T6", "no", {}, questions.Trade(False)),
        (
            "T7",
            "Regime: bear; Allocations: equities: decrease, cash: increase, commodities: neutral",
            {},
            questions.RegimeView("bear", {"equity": "decrease", "commodity": "hold", "cash": "increase"}),
        ),
    ],
)
def test_the_published_layout_is_read(template, answer, more, expected, tmp_path):
    (one,) = read(tmp_path, published(template, answer, **more))
    assert one.answer == expected
    assert isinstance(one.payload, questions.Printed)
    assert one.level == {"T1": 1, "T2": 1, "T3": 1, "T4": 2, "T6": 3, "T7": 4}[template]
    # Their summary states answers and stays out.
    assert "0.476" not in one.prompt("full")


def test_a_published_yes_without_a_trade_is_scored_by_the_decision(tmp_path):
    (one,) = read(tmp_path, published("T6", "yes"))
    assert [questions.score_answer(one, said).score for said in ("yes; sell 0.1 of STIP", "no")] == [1.0, 0.0]
    with pytest.raises(InputError, match="answer: no weights"):
        read(tmp_path, published("T4", "balanced"))


def test_a_published_prompt_loses_its_covariances_when_restricted(tmp_path):
    text = "Assets: XLY, STIP\nCovariance matrix (annualized):\n[[0.1, 0.0],\n [0.0, 0.1]]\nRisk-free rate: 4.00%"
    (one,) = read(tmp_path, published("T5", "w_XLY=0.5, w_STIP=0.5", text))
    assert "0.1" in one.prompt("full")
    assert "0.1" not in one.prompt("restricted")
    assert "Risk-free rate: 4.00%" in one.prompt("restricted")
    questions.write_questions(tmp_path / "again.jsonl", [one])
    assert questions.read_questions(tmp_path / "again.jsonl") == (one,)


def test_the_manifest_names_a_set_and_the_card_counts_what_is_there(whole):
    small = replace(whole, questions=whole.questions[:50])
    assert questions.manifest(small) == questions.manifest(small)
    assert (
        questions.manifest(small)["sha256"]
        != questions.manifest(replace(small, questions=whole.questions[1:51]))["sha256"]
    )
    assert questions.manifest(small)["items"] == 50
    card = questions.dataset_card(whole)
    wanted = "6,269 items", "T6 that need a trade: 389 of 778", *(f"| {name} | " for name in questions.TEMPLATES)
    assert [one for one in wanted if one not in card] == []
    assert "nan" not in card
