"""The views of a season's site follow from its tables: agents, events, claims and grades."""

# ruff: noqa: I001

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from season_runs import IDS, NOW, Scripted, orders, small

from assaymark.judging import (
    GradedPart, Horizon, HorizonGrades, HorizonScore, OutcomeGrade, horizon_ledgers, horizon_of, judge_score,
    load_scoring,
)  # fmt: skip
from assaymark.judging import season as judging_season
from assaymark.records import Context, Evidence, EvidenceState, Fact, Portfolio, Rationale, Series
from assaymark.report.season import order_texts, reply_problem
from assaymark.workflow import RunFolder, Store, tracks

A, B = IDS[0], IDS[1]
PLAN = load_scoring("v0.4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> RunFolder:
    """Six days: agent one buys, sells what it does not have, answers nonsense and then nothing; agent two holds."""
    said = {
        "2024-03-01": orders((A, "buy", 10.0), why="Bought 10 units."),
        "2024-03-04": orders((B, "sell", 5.0), why="Sold 5 units."), "2024-03-05": "I do not know.",
    }  # fmt: skip
    who = {"test/one": Scripted(lambda day: said.get(day, orders())), "test/two": Scripted(lambda _: orders())}
    named = {"model": "test/one", "other": "test/two", "last": "2024-03-08", "universe": IDS}
    made = small(tmp_path_factory.mktemp("views"), who, **named)
    tracks.run_season(made, who, now=NOW)
    return made


def test_steps_show_what_was_ordered_and_what_came_of_it(folder):
    played = tracks.season_material(folder)
    steps, navs = played.steps["one"], {one.day: one for one in played.navs["one"]}
    assert [(one.number, one.day) for one in steps][:3] == [(1, "2024-03-01"), (2, "2024-03-04"), (3, "2024-03-05")]
    bought, sold, nonsense, after = steps[:4]
    assert (order_texts(bought), bought.book.positions) == ([f"buy {A}, quantity 10"], {A: 10.0})
    assert [(one.symbol, one.quantity) for one in bought.fills] == [(A, 10.0)]
    assert (bought.nav, bought.book.cash) == (navs["2024-03-04"].nav, navs["2024-03-04"].cash)
    assert (sold.fills, [one.symbol for one in sold.rejections]) == ((), [B])
    assert B in sold.rejections[0].text
    assert (nonsense.decision.flags, order_texts(nonsense), reply_problem(after)) == (("invalid-reply",), [], "")
    assert reply_problem(nonsense)
    assert (steps[-1].nav, steps[-1].book) == (None, None)
    # statements that do not follow stand at their step
    store, wrong = Store(folder), (f"{sold.decision.record_id}\t3.00 are missing",)
    checks = store.read(tracks.CHECKS)
    store.write(tracks.CHECKS, [*checks, tracks.SeasonCheck("one", "odd", checks=5, passed=4, mismatches=wrong)], {})
    again = tracks.season_material(folder).steps["one"]
    assert [one.mismatches for one in again[:3]] == [(), ("3.00 are missing",), ()]
    store.write(tracks.CHECKS, checks, {})


TEXT = "Gold rose 3.1% in a week. Cash is 500, so 20 units fit. No number here."


def step(text: str = TEXT) -> judging_season.HorizonStep:
    return judging_season.HorizonStep(
        number=1, day="2024-03-01", record_id="r1", context_id="c1",
        actions=(), stated="", texts=(Rationale(text=text, kind="summary"),), fills=(), rejections=(), book=None,
        market=judging_season.NO_MARKET, constraints=(),
    )  # fmt: skip


def number(quote: str, state: EvidenceState, *facts: str, text: str = TEXT) -> Evidence:
    return Evidence(
        decision="r1", part=0, kind="summary", start=text.index(quote), quote=quote, number=0.0, unit="none",
        subject="", state=state, facts=facts, rule=f"rule of {quote}",
    )  # fmt: skip


CONTEXT = Context(
    completeness="complete", cutoff=datetime(2024, 3, 1, tzinfo=UTC), cutoff_source="test", prompt="",
    facts=(
        Fact(id="f1", instrument="GLD", field="return_5d", value=0.0312, unit="ratio",
             available_at=datetime(2024, 3, 1, tzinfo=UTC)),
    ),
    series=(
        Series(instrument="GLD", interval_s=86_400, times=(datetime(2024, 2, 29, tzinfo=UTC),
               datetime(2024, 3, 1, tzinfo=UTC)), close=(180.5, 186.1)),
    ),
    portfolio=Portfolio(currency="USD", cash=480.0, nav=1000.0, positions={"GLD": 2.5}),
)  # fmt: skip
NUMBERS = {"r1": [number("3.1%", "supported", "f1"), number("500", "contradicted"), number("20", "own_action")]}


def view(claims: dict[str, tuple[judging_season.HorizonClaim, ...]], numbers=NUMBERS):
    return tracks.ledger_view(Horizon((step(),)), numbers, claims, {"c1": CONTEXT})


def test_numbers_that_no_judge_quoted_stand_in_their_sentence_with_what_the_agent_saw():
    first, second, third = found = view({})
    assert [(one.quote, one.numbers, one.which) for one in found][1:] == [
        ("Cash is 500, so 20 units fit.", "contradicted", "500"), ("Cash is 500, so 20 units fit.", "own_action", "20")
    ]  # fmt: skip
    assert (first.quote, first.numbers, first.saw) == ("Gold rose 3.1% in a week.", "supported", "GLD return_5d 0.0312")
    assert [one.quote[one.start :].startswith(one.which) for one in found] == [True] * 3
    assert (second.saw, second.rule, third.rule) == ("", "rule of 500", "rule of 20")
    facts = ("series:GLD", "portfolio.cash", "portfolio.GLD", "f1", "own:quantity")
    numbers = [number("3.1%", "derivable", *facts[:3]), number("500", "derivable", *facts[3:])]
    first, second = view({}, {"r1": numbers})
    assert first.saw == "GLD close 2024-02-29 … 2024-03-01: 180.5 … 186.1; cash 480; GLD 2.5"
    assert second.saw == "GLD return_5d 0.0312; own:quantity"
    assert view({}, {"r1": [number("3.1%", "derivable", *facts)]})[0].saw.endswith("; +2")


def test_quotations_gather_the_judges_and_the_numbers_in_them():
    quote = judging_season.HorizonClaim(quote="rose  3.1% in a week", step=1, state="supported")
    silent = judging_season.HorizonClaim(quote="No number here", step=1, state="not_verifiable")
    made_up = judging_season.HorizonClaim(quote="Silver fell", step=1, state="contradicted")
    found = view({"a": (quote, silent), "b": (replace(quote, state="contradicted"), made_up)})
    assert [(one.quote, one.numbers, dict(one.judges), one.disagree) for one in found] == [
        ("rose 3.1% in a week", "supported", {"a": "supported", "b": "contradicted"}, True),
        ("Cash is 500, so 20 units fit.", "contradicted", {}, False),
        ("Cash is 500, so 20 units fit.", "own_action", {}, False),
        ("No number here", None, {"a": "not_verifiable"}, False),
        ("Silver fell", None, {"b": "contradicted"}, False),
    ]
    assert found[-1].rule == tracks.MISQUOTED


def test_no_number_of_a_record_is_lost_or_invented(folder):
    """Every checked number is in some line, and lines without a judge have one number."""
    played = tracks.season_material(folder)
    steps = played.steps["one"]
    horizon = horizon_of(steps, played.contexts, agents=played.agents)
    ledger = horizon_ledgers([horizon], [one.decision for one in steps], played.contexts)[0]
    evidence = {one.record_id: ledger[one.number] for one in horizon.steps}
    found = tracks.ledger_view(horizon, evidence, {}, played.contexts)
    assert sum(map(len, ledger.values())) == len(found) == 2
    assert [(one.number, one.quote) for one in found] == [(1, "Bought 10 units."), (2, "Sold 5 units.")]
    assert all(one.numbers is not None for one in found)


WORDS = st.lists(
    st.sampled_from(["up 3", "7", "so.", "no! ", "\n", "\n\n", "a; b", "1.5", "ends?"]), min_size=1, max_size=12
)


@given(WORDS)
def test_sentences_around_numbers_are_those_of_a_plain_search(words):
    text = " ".join(words)
    found = [
        replace(number("3.1%", "supported"), start=at.start(), quote=at.group())
        for at in re.finditer(r"\d+(\.\d+)?", text)
    ]
    lines = tracks.ledger_view(Horizon((step(text),)), {"r1": found}, {}, {})
    wanted = []
    for one in found:
        start, stop = one.start, one.start + len(one.quote)
        while start and text[start - 1] != "\n":
            if text[start - 1].isspace() and text[start - 2 : start - 1] in ".!?;":
                break
            start -= 1
        while stop < len(text) and text[stop] != "\n" and not (text[stop].isspace() and text[stop - 1] in ".!?;"):
            stop += 1
        wanted.append(" ".join(text[start:stop].split()))
    assert sorted({one.quote for one in lines}) == sorted(set(wanted))


def test_a_text_without_an_end_is_cut_around_its_number():
    text = "x" * 5000 + " 7 " + "y" * 5000
    (found,) = tracks.ledger_view(Horizon((step(text),)), {"r1": [number("7", "supported", text=text)]}, {}, {})
    assert 500 < len(found.quote) < 700
    assert " 7 " in found.quote


def grade(
    points: float, *, trial: int = 1, agent: str = "one", judge: str = "a", state: str = "ok",
    outcome: OutcomeGrade | None = None, cap: float | None = None, lookahead: str = "pass", scope: str = "whole",
) -> tracks.SeasonGrade:  # fmt: skip
    """A judge that gives the same points to everything."""
    ok = state == "ok"
    parts = (GradedPart(first=1, last=6, tokens=10, over=False, call_key="k", state=state),)  # type: ignore[arg-type]
    reasoning = {part.name: points for part in PLAN.reasoning} if ok else {}
    evidence = {part.name: points for part in PLAN.evidence} if ok else {}
    grades = HorizonGrades(
        agent=agent, judge=judge, family="north", trial=trial, horizon="h", grader="g", state=state, parts=parts,
        reason=None if ok else "is no JSON", reasoning=reasoning, evidence=evidence,
        data_reliability=points if ok else None, lookahead_check=lookahead if ok else None,
        lookahead_reason="day 3 knows day 4" if lookahead == "fail" else "", verdict=f"verdict {trial}", summary="s",
        claims=(judging_season.HorizonClaim(quote=f"claim {trial}", step=1, state="supported"),) if ok else (),
    )  # type: ignore[arg-type]  # fmt: skip
    lowered = (
        ()
        if cap is None
        else (judging_season.CappedPart(part="claim_support", given=points, cap=cap, counted=min(points, cap)),)
    )
    counted = {**evidence, **{one.part: one.counted for one in lowered}}
    result = outcome.outcome if outcome else None
    score = judge_score(judge, reasoning, counted, result, plan=PLAN) if ok else None
    return tracks.SeasonGrade(
        agent=agent, judge=judge, family="north", trial=trial, scope=scope, period="", replicate=1, first="a", last="b",
        steps=6,
        score=HorizonScore(grades=grades, capped=lowered, disagreement=None, outcome=outcome, score=score, grader="g"),
    )  # type: ignore[arg-type]  # fmt: skip


def test_trials_are_averaged_and_neither_a_failed_look_ahead_nor_what_the_numbers_lowered_is_lost():
    rows = [grade(60.0), grade(80.0, trial=2, lookahead="fail"), grade(0.0, trial=3, state="invalid")]
    (found,) = tracks.grade_views([*rows, grade(1.0, scope="period")])
    assert (found.state, found.composite) == ("ok", pytest.approx(70.0))
    assert found.reasoning["temporal_consistency"] == found.evidence["claim_support"] == found.data_reliability == 70.0
    assert (found.lookahead, found.lookahead_reason) == ("fail", "day 3 knows day 4")
    assert (found.verdict, found.outcome_state) == ("verdict 1", "unresolved")
    assert tracks.claims_by_judge(rows, "one") == {"a": rows[0].score.grades.claims}
    resolved = OutcomeGrade(state="ok", outcome=40.0)
    one, other = tracks.grade_views([grade(80.0, cap=50.0, outcome=resolved), grade(80.0, judge="b", cap=95.0)])
    assert (one.evidence["claim_support"], one.capped, other.capped) == (50.0, {"claim_support": 80.0}, {})
    assert (one.outcome, one.outcome_state) == (40.0, "ok")
    assert one.composite < other.composite
    # a judge that is built in answers because its reply has to, and reads no tenses: a page may have no tick for that
    (asked,), (built_in,) = (tracks.grade_views([grade(60.0)], names) for names in ((), {grade(60.0).judge}))
    assert (asked.lookahead, built_in.lookahead, built_in.lookahead_reason) == ("pass", None, "")
    assert replace(asked, lookahead=None, lookahead_reason="") == built_in


def test_without_a_usable_reply_there_are_no_points_but_a_reason():
    (found,) = tracks.grade_views([grade(0.0, state="refused"), grade(0.0, state="invalid", trial=2)])
    assert (found.state, found.reason, found.composite, found.parts) == ("refused", "is no JSON", None, 1)
    assert not found.reasoning
    assert tracks.claims_by_judge([grade(0.0, state="refused")], "one") == {}
    (found,) = tracks.grade_views([grade(60.0, outcome=OutcomeGrade(state="invalid", reason="is no JSON"))])
    assert (found.outcome, found.outcome_state) == (None, "invalid")
