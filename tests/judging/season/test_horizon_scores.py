"""From replies on a horizon to a score: rounds, parts put together, the two ledgers, the outcome call."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from horizon_records import AGENTS, PLAN, START, answer, answer_text, horizon, season
from hypothesis import given
from hypothesis import strategies as st

from assaymark import judging
from assaymark.engine import Reply
from assaymark.errors import InputError
from assaymark.judging import season as judging_season
from assaymark.prompting import sections
from assaymark.protocol import JudgeSpec
from assaymark.records import Outcome, canonical_json, parse

JUDGE = JudgeSpec(name="auditor", model="reference/season-auditor", family="ledger")
LONG = "word " * 1500


def graded(found, *texts, budget=120_000, plan=PLAN, finish="stop"):
    """The grades that these replies make, one for each part."""
    (task,) = judging.horizon_tasks({"desk": found}, [JUDGE], plan, budget=budget)
    for text in texts:
        planned = task.next_call()
        task.take(planned.read(Reply(text=text, model="m", finish=finish)), planned.call.key)
    return task.grades()


def test_grades_of_parts_are_averaged_by_their_steps():
    found = graded(horizon(3), answer_text(points=61))
    assert (found.state, len(found.parts), found.agent, found.judge) == ("ok", 1, "desk", "auditor")
    assert set(found.reasoning.values()) == {61.0}
    assert (found.data_reliability, found.lookahead_check, found.verdict) == (90.0, "pass", "Mixed, but steady")
    assert (found.grader, len(found.parts[0].call_key)) == (judging_season.grader_version(PLAN), 64)
    texts = [
        answer_text(points=80, notes="n", claims=[], lookahead_check="fail", lookahead_reason="sees March"),
        answer_text(points=40, notes="n", claims=[]), answer_text(points=20, claims=[], verdict="Weak"),
    ]  # fmt: skip
    found = graded(horizon(6, text=LONG), *texts, budget=5000)
    assert [one.size for one in found.parts] == [3, 2, 1]
    assert found.reasoning["thesis_quality"] == pytest.approx((80 * 3 + 40 * 2 + 20) / 6)
    assert (found.lookahead_check, found.lookahead_reason, found.verdict) == ("fail", "sees March", "Weak")


def test_a_reply_that_is_no_answer_leaves_a_state_and_no_score_and_half_a_task_no_grades():
    for finish, text, state in (
        ("stop", "I would rather not.", "invalid"), ("refusal", "", "refused"), ("length", answer_text(), "truncated"),
    ):  # fmt: skip
        found = graded(horizon(2), text, finish=finish)
        assert (found.state, found.reasoning, found.data_reliability, bool(found.reason)) == (state, {}, None, True)
        score = judging.horizon_score(found, PLAN)
        assert (score.score, score.capped) == (None, ())
    long = horizon(6, text=LONG)
    found = graded(long, answer_text(notes="n", claims=[]), "no", budget=5000)
    assert found.state == "invalid"
    assert found.reason.startswith("part 2 of 3: not one JSON object")
    with pytest.raises(InputError, match=r"has 3 parts to answer \(got 1\)"):
        graded(long, answer_text(notes="n", claims=[]), budget=5000)


TRUE = "GOOGL trades at a pe of 21.5 now."
FALSE = "GOOGL has a margin of 12.3% and a return_5d of 9.87%."


def ledgered(*texts):
    records, contexts = season(len(texts))
    records = [
        replace(one, decision=replace(one.decision, rationales=(replace(one.decision.rationales[0], text=text),)))
        for one, text in zip(records, texts, strict=True)
    ]
    found = judging.horizon_of(records, contexts, agents=AGENTS)
    return found, judging_season.horizon_ledgers([found], [one.decision for one in records], contexts)[0]


def test_no_judge_can_score_a_contradicted_claim_as_supported():
    found, ledger = ledgered(TRUE, FALSE)
    states = [one.state for ones in ledger.values() for one in ones]
    assert (states.count("supported"), states.count("contradicted")) == (1, 2)
    claims = [{"quote": FALSE, "step": 2, "state": "supported", "fields": ["margin"]}]
    grades = graded(found, answer_text(points=90, claims=claims))
    score = judging.horizon_score(grades, PLAN, horizon=found, ledger=ledger)
    assert [(one.part, one.given, one.cap, one.counted) for one in score.capped] == [
        (part, 90.0, *[pytest.approx(100 / 3)] * 2) for part in ("claim_support", "no_contradiction")
    ]
    free = judging.judge_score("auditor", grades.reasoning, grades.evidence, plan=PLAN)
    assert free.evidence - score.score.evidence == pytest.approx((90 - 100 / 3) * 0.35)
    assert (score.disagreement.overruled, score.disagreement.table) == (1, {"supported": {"contradicted": 1}})
    # what is recorded before the outcome call, and after it, comes back from disk as it was
    grade = judging.OutcomeGrade(state="ok", outcome=55.0)
    whole = judging.horizon_score(grades, PLAN, horizon=found, ledger=ledger, outcome=grade)
    assert parse(judging.HorizonGrades, canonical_json(grades)) == grades
    assert parse(judging.HorizonScore, canonical_json(whole)) == whole
    assert parse(judging.HorizonGrades, canonical_json(graded(found, "no"))).state == "invalid"
    # without a number that can be decided nothing is capped
    _, ledger = ledgered("I like it.", "So do I, at 17.77 somewhere.")
    free = judging_season.cap_evidence({"claim_support": 88.0, "no_contradiction": 7.0}, ledger)
    assert [(one.cap, one.counted) for one in free] == [(None, 88.0), (None, 7.0)]


def test_the_disagreement_of_the_ledgers_is_counted():
    found, ledger = ledgered(TRUE, FALSE)
    claims = [
        judging_season.HorizonClaim(quote=quote, step=step, state=state)
        for quote, step, state in (
            (TRUE, 1, "supported"), ("pe  of\n21.5", 1, "contradicted"), ("trades at", 1, "not_verifiable"),
            ("a margin of 12.3%", 2, "contradicted"), ("never said", 2, "supported"), ("", 2, "supported"),
        )
    ]  # fmt: skip
    said = judging_season.ledger_disagreement(claims, found, ledger)
    assert said.table == {
        "supported": {"supported": 1}, "contradicted": {"supported": 1, "contradicted": 1},
        "not_verifiable": {"no number": 1},
    }  # fmt: skip
    assert (said.strict, said.overruled, said.misquoted, said.unnoticed, said.claims) == (1, 0, 2, 1, 6)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.floats(0, 100))
def test_a_cap_never_raises_a_grade(supported, contradicted, silent, grade):
    def found(contradicted):
        counts = {"supported": supported, "contradicted": contradicted, "not_verifiable": silent}
        numbers = tuple(SimpleNamespace(state=state) for state, count in counts.items() for _ in range(count))
        return judging_season.cap_evidence({"claim_support": grade, "no_contradiction": grade}, {1: numbers})

    for one, more in zip(found(contradicted), found(contradicted + 1), strict=True):
        assert one.counted <= one.given
        assert one.counted in (one.given, one.cap)
        assert more.counted <= one.counted


def outcomes(found, *values, resolved=True):
    at = START + timedelta(days=30) if resolved else None
    return [
        Outcome(record_id=one.record_id, horizon="5d", value=value, benchmark=0.01, source="close", resolved_at=at)
        for one, value in zip(found.steps, values, strict=False)
    ]


def test_outcomes_are_shown_in_a_call_of_their_own_after_the_grades_and_nowhere_else():
    found = horizon(3)
    grades = graded(found, answer_text())
    (planned,) = judging.outcome_calls(grades, found, outcomes(found, 0.0271828, -0.0314159), JUDGE, PLAN)
    shown = planned.call.messages[1].text
    assert [one.label for one in sections(shown)] == ["book", "step", "outcomes", "step", "outcomes", "step"]
    assert "5d\t0.0271828\t0.01\t2026-02-04T14:30:00Z" in shown
    assert not any(word in shown for word in ("pe of 21.5", "market", "Decision"))  # no reasons
    assert (planned.judge, planned.call.trial) == (JUDGE, 1)
    named = {"author-v1.txt", "horizon-v1.txt", "outcome-v1.txt", "schema outcome"}
    assert {one for one in judging_season.judge_texts(PLAN) if PLAN.version not in one} == named
    first = judging.horizon_tasks({"desk": found}, [JUDGE], PLAN)[0].next_call().call
    assert first.template != planned.call.template
    assert "outcome" not in {one.label for one in sections(first.messages[1].text)}
    # without a resolved outcome there is no call
    for none in (outcomes(found, 0.1, resolved=False), outcomes(horizon(1, record_id="another"), 0.1)):
        assert judging.outcome_calls(grades, found, none, JUDGE, PLAN) == []
    with pytest.raises(InputError, match=r"has no grades to complete \(state invalid"):
        judging.outcome_calls(graded(found, "no"), found, outcomes(found, 0.1), JUDGE, PLAN)
    other = JUDGE.model_copy(update={"name": "reader"})
    with pytest.raises(InputError) as caught:
        judging.outcome_calls(grades, horizon(2), [], other, PLAN)
    assert len(caught.value.problems) == 2


def test_an_outcome_enters_the_composite_and_a_missing_one_goes_to_the_others():
    found = horizon(2)
    grades = graded(found, answer_text(points=50))
    (planned,) = judging.outcome_calls(grades, found, outcomes(found, 0.1), JUDGE, PLAN)
    for text, grade, composite in (
        ('{"outcome": 90, "reason": "paid"}', judging.OutcomeGrade(state="ok", outcome=90.0, reason="paid"), 54.0),
        ("90", None, 50.0),
    ):
        made = judging.outcome_grade([planned], [Reply(text=text, model="m")])
        assert made == grade if grade else (made.state, made.outcome) == ("invalid", None)
        score = judging.horizon_score(grades, PLAN, outcome=made)
        assert (score.score.composite, score.outcome.state) == (pytest.approx(composite), made.state)
    with pytest.raises(InputError, match="one for each of 1 parts"):
        judging.outcome_grade([planned], [])
    # scores are of the plan they were graded with
    with pytest.raises(InputError, match="use the plan it was graded with"):
        judging.horizon_score(grades, judging.load_scoring("v0.3"))
    score = judging.horizon_score(grades, PLAN)
    assert (score.grader, score.score.grader) == (judging_season.grader_version(PLAN), PLAN.grader)
    assert (score.score.plan, score.grades.data_reliability) == (PLAN.digest, answer()["data_reliability"])


def test_ledgers_are_cut_as_their_horizons_are_and_several_are_those_of_each():
    records, contexts = season(5)
    others = [
        replace(one, decision=replace(one.decision, record_id=f"other/{at}", agent=AGENTS[1]))
        for at, one in enumerate(season(5, text="GOOGL has a pe of 99.9 and a margin of 25%.")[0])
    ]
    whole, other = (judging.horizon_of(steps, contexts, agents=AGENTS) for steps in (records, others))
    decisions, ends = [one.decision for one in (*records, *others)], ((1, 5), (2, 4), (5, 5))
    cuts = [whole, other, *(whole.between(*some) for some in ends)]
    ledger, *rest = found = judging_season.horizon_ledgers(cuts, decisions, contexts)
    assert found == [judging_season.horizon_ledgers([one], decisions, contexts)[0] for one in cuts]
    assert sum(map(len, ledger.values())) == 5
    assert rest[1:] == [{step: ledger[step] for step in ledger if low <= step <= high} for low, high in ends]
    with pytest.raises(InputError) as caught:  # every decision and context is needed
        judging_season.horizon_ledgers([horizon(1)], [], {})
    assert len(caught.value.problems) == 2


TEXTS = st.text(st.sampled_from("ab \n\t\x1f\u2003."), max_size=30)


@given(st.lists(TEXTS, max_size=3), TEXTS)
def test_quotations_are_found_however_they_are_spaced(texts, quote):
    """The same by a regular expression."""
    step = SimpleNamespace(texts=[SimpleNamespace(text=text) for text in texts])
    pattern = re.compile(r"\s+".join(map(re.escape, quote.split())))
    slowly = [(at, *match.span()) for at, text in enumerate(texts) for match in pattern.finditer(text)]
    assert judging_season.find_quotation(quote, step) == (slowly if quote.split() else [])
    step = horizon(1).steps[0]
    ((part, start, end),) = judging_season.find_quotation("and   may still\nbe", step)
    assert step.texts[part].text[start:end] == "and may still be"


JUDGES = judging.reference_season_judges()
PANEL = [JudgeSpec(name=name.rpartition("-")[2], model=name, family="reference") for name in sorted(JUDGES)]


@pytest.mark.parametrize("refused", [None, 0, 1, 2])
def test_a_season_is_judged_in_as_many_rounds_as_it_has_parts_and_a_refusal_ends_its_task_and_no_other(refused):
    horizons = {"long": horizon(6, text=LONG), "short": horizon(2)}
    tasks, asked = judging.horizon_tasks(horizons, PANEL, PLAN, budget=5000), []
    while due := [(task, planned) for task in tasks if (planned := task.next_call()) is not None]:
        for task, planned in due:
            reply = asyncio.run(JUDGES[planned.call.model].complete(planned.call))
            if len(asked) == refused and (task.judge.name, task.agent) == ("reader", "long"):
                reply = Reply(text="", model="m", finish="refusal")
            task.take(planned.read(reply), planned.call.key)
        asked.append(len(due))
    assert asked == [6, *[3 - (refused is not None and refused < number) for number in (1, 2)]]
    found = {(task.agent, task.judge.name): task.grades() for task in tasks}
    states = {about: grades.state for about, grades in found.items()}
    assert states.pop(("long", "reader")) == ("ok" if refused is None else "refused")
    assert set(states.values()) == {"ok"}
    parts = {about: len(grades.parts) for about, grades in found.items()}
    assert parts.pop(("long", "reader")) == (3 if refused is None else refused + 1)
    assert set(parts.items()) == {
        ((agent, judge.name), n) for agent, n in (("long", 3), ("short", 1)) for judge in PANEL
        if (agent, judge.name) != ("long", "reader")
    }  # fmt: skip
