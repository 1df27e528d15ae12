"""Questions as JSON lines: round trip, tampering, the authors' layout, the card and the manifest."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from assaymark.benchmark.questions import (
    TEMPLATES,
    answer_text,
    dataset_card,
    manifest,
    question_line,
    questions_digest,
    read_questions,
    score_answer,
    write_questions,
)
from assaymark.benchmark.questions.payloads import Direction, Number, Printed, RegimeView, Trade, Weights
from assaymark.errors import InputError


@pytest.fixture(scope="module")
def some(whole):
    return tuple(whole.questions[::37])


def test_what_is_written_is_read_back(some, tmp_path):
    digest = write_questions(tmp_path / "q.jsonl", some)
    assert read_questions(tmp_path / "q.jsonl") == some
    assert digest == hashlib.sha256((tmp_path / "q.jsonl").read_bytes()).hexdigest() == questions_digest(some)


def test_the_answer_as_text_is_the_answer(whole):
    for one in whole.questions[::5]:
        found = score_answer(one, f"ANSWER: {answer_text(one.answer)}")
        assert found.state == "ok"
        assert found.score == pytest.approx(1.0, abs=1e-6)


def test_both_prompts_are_in_the_file_for_whoever_only_asks(some):
    for one in some:
        line = json.loads(question_line(one))
        assert line["prompt"] == one.prompt("full")
        assert ("restricted" in line) == (one.template in ("T4", "T5"))


def test_another_prompt_than_the_payload_gives_is_refused(some, tmp_path):
    fields = json.loads(question_line(some[0]))
    (tmp_path / "q.jsonl").write_text(json.dumps(fields | {"prompt": fields["prompt"] + "The answer is 1."}))
    with pytest.raises(InputError, match="line 1, prompt: is not the one that its payload gives"):
        read_questions(tmp_path / "q.jsonl")


def test_every_line_that_is_no_question_is_named(some, tmp_path):
    fields = json.loads(question_line(some[0]))
    lines = [
        "no json",
        "[]",
        json.dumps(fields | {"template": "T9", "split": "all", "regime": "calm", "day": "tomorrow"}),
        json.dumps(fields | {"truth": {"value": "much"}}),
        json.dumps(fields | {"payload": fields["payload"] | {"extra": 1}}),
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(lines))
    with pytest.raises(InputError) as caught:
        read_questions(tmp_path / "q.jsonl")
    places = [str(one.where) for one in caught.value.problems]
    assert [place for place in places if place.startswith("line 3")] == [
        "line 3, template",
        "line 3, split",
        "line 3, regime",
        "line 3, day",
    ]
    assert {place.split(",")[0] for place in places} == {f"line {n}" for n in range(1, 6)}


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "holds no questions"), (b"\xff\xfe", "is not UTF-8"), (None, "cannot be read")]
)
def test_files_that_are_none(content, message, tmp_path):
    if content is not None:
        (tmp_path / "q.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_questions(tmp_path / "q.jsonl")


def test_one_id_twice_is_refused(some, tmp_path):
    write_questions(tmp_path / "q.jsonl", [some[0], some[0]])
    with pytest.raises(InputError, match="id: comes more than once"):
        read_questions(tmp_path / "q.jsonl")


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
        ("T1", "positive", {}, Direction("positive")),
        ("T1", "down", {}, Direction("negative")),
        ("T2", "-0.0080", {"answer_numeric": -0.008012}, Number(-0.008012)),
        ("T3", "1.0000", {}, Number(1.0)),
        ("T4", "w_XLY=0.4760, w_STIP=0.5240", {}, Weights({"XLY": 0.476, "STIP": 0.524})),
        ("T6", "yes", {}, Trade(True)),
        ("T6", "Yes; buy 0.065 of XLY", {}, Trade(True, "buy", "XLY", 0.065)),
        ("T6", "no", {}, Trade(False)),
        (
            "T7",
            "Regime: bear; Allocations: equities: decrease, cash: increase, commodities: neutral",
            {},
            RegimeView("bear", {"equity": "decrease", "commodity": "hold", "cash": "increase"}),
        ),
    ],
)
def test_the_published_layout_is_read(template, answer, more, expected, tmp_path):
    (tmp_path / "q.jsonl").write_text(json.dumps(published(template, answer, **more)))
    (one,) = read_questions(tmp_path / "q.jsonl")
    assert one.answer == (pytest.approx(expected) if isinstance(expected, float) else expected)
    assert isinstance(one.payload, Printed)
    assert one.level == {"T1": 1, "T2": 1, "T3": 1, "T4": 2, "T6": 3, "T7": 4}[template]
    # Their summary states answers and stays out.
    assert "0.476" not in one.prompt("full")


def test_a_published_yes_without_a_trade_is_scored_by_the_decision(tmp_path):
    (tmp_path / "q.jsonl").write_text(json.dumps(published("T6", "yes")))
    (one,) = read_questions(tmp_path / "q.jsonl")
    assert score_answer(one, "yes; sell 0.1 of STIP").score == 1.0
    assert score_answer(one, "no").score == 0.0


def test_a_published_prompt_loses_its_covariances_when_restricted(tmp_path):
    text = "Assets: XLY, STIP\nCovariance matrix (annualized):\n[[0.1, 0.0],\n [0.0, 0.1]]\nRisk-free rate: 4.00%"
    (tmp_path / "q.jsonl").write_text(json.dumps(published("T5", "w_XLY=0.5, w_STIP=0.5", text)))
    (one,) = read_questions(tmp_path / "q.jsonl")
    assert "0.1" in one.prompt("full")
    assert "0.1" not in one.prompt("restricted")
    assert "Risk-free rate: 4.00%" in one.prompt("restricted")
    write_questions(tmp_path / "again.jsonl", [one])
    assert read_questions(tmp_path / "again.jsonl") == (one,)


def test_a_published_answer_that_says_nothing_is_refused(tmp_path):
    (tmp_path / "q.jsonl").write_text(json.dumps(published("T4", "balanced")))
    with pytest.raises(InputError, match="answer: no weights"):
        read_questions(tmp_path / "q.jsonl")


def test_the_manifest_names_a_set_and_changes_with_it(whole):
    small = replace(whole, questions=whole.questions[:50])
    assert manifest(small) == manifest(small)
    assert manifest(small)["sha256"] != manifest(replace(small, questions=whole.questions[1:51]))["sha256"]
    assert manifest(small)["items"] == 50


def test_the_card_counts_what_is_there(whole):
    card = dataset_card(whole)
    assert "6,269 items" in card
    assert "T6 that need a trade: 389 of 778" in card
    for name in TEMPLATES:
        assert f"| {name} | " in card
    assert "nan" not in card
