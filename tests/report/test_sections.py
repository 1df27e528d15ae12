"""Sections on the edges: other panels, other intervals, other states."""

from __future__ import annotations

from dataclasses import replace

import assay_runs as runs
import pytest

from assaymark.records import AGGREGATE
from assaymark.report.agreement import agreement_view
from assaymark.report.board import board
from assaymark.report.book import Book
from assaymark.report.evidence import evidence_view, ledger_rows, written_number
from assaymark.report.fragility import fragility_view
from assaymark.report.levels import level_views
from assaymark.report.paging import paged
from assaymark.report.plan import plan_view
from assaymark.report.stability import stability_view
from assaymark.report.withheld import withheld_groups


def with_values(values, **more):
    run = runs.realistic()
    kept = [m for m in run.measurements if not m.name.startswith(("kappa", "redundancy"))]
    claims = runs.verdicts(runs.LEVELS, values)
    found = tuple(kept + runs.kappas(run.study, values))
    return Book.of(replace(run, measurements=found, verdicts=tuple(claims), **more))


# --- agreement ------------------------------------------------------------------------------------------------------


def test_agreement_answers_with_every_gate():
    values = {AGGREGATE: 0.5, "risk_fit": 0.6, "sizing": 0.3, "limits": 0.1}
    answer = agreement_view(with_values(values)).answer
    assert answer == (
        "On the aggregate the gate says publish. One of three dimensions may publish. "
        "Sizing: a finding about the judges, not a headline. Limits: halted."
    )


def test_agreement_that_was_not_measured_says_so():
    run = replace(runs.realistic(), measurements=(), verdicts=())
    view = agreement_view(Book.of(run))
    assert view.answer == "Agreement was not measured."
    assert view.forest is None
    assert view.scale is None
    assert board(Book.of(run)).note == "No score was measured."


def test_without_verdicts_the_plan_gates_the_point_estimate():
    run = replace(runs.realistic(), verdicts=())
    gates = {row.title: row.gate for row in agreement_view(Book.of(run)).rows}
    assert gates["All together"] == "publish"
    assert gates["Limits"] == "methodology"


def test_pairs_and_marks_come_from_the_contingency_tables():
    view = agreement_view(Book.of(runs.realistic()))
    assert view.pair_heads == ("north-1 and quay-1", "north-1 and strand-1", "strand-1 and quay-1")
    assert dict(view.pair_rows)["All together"] == ("0.66", "0.64", "0.68")
    assert view.scale is not None
    run = runs.realistic()
    bare = tuple(replace(m, detail={"clusters": 30, "pairs": {"north-1|quay-1": None}}) for m in run.measurements)
    other = agreement_view(Book.of(replace(run, measurements=bare)))
    assert other.scale is None
    assert dict(other.pair_rows)["Limits"] == ("not defined",)
    assert not any("clusters" in note for note in other.notes)


# --- stability ------------------------------------------------------------------------------------------------------


def test_stability_counts_the_families_that_matter():
    view = stability_view(Book.of(runs.realistic()))
    assert view.answer.startswith("For one of three families the rank correlation falls below 0.9")
    turned = {drop.family: drop.turned for drop in view.drops}
    assert turned["north"] == ()
    assert turned["quay"] == (("Badger", "Stoat"), ("Otter", "Stoat"), ("Stoat", "Weasel"))


def test_stability_without_a_change_says_so():
    run = runs.realistic()
    steady = tuple(replace(m, value=1.0) if m.name == "lofo.rho" else m for m in run.measurements)
    assert stability_view(Book.of(replace(run, measurements=steady))).answer == (
        "Leaving any one family out keeps the rank correlation at 0.9 or above."
    )


def test_stability_that_is_undefined_gives_its_state():
    view = stability_view(Book.of(runs.minimal()))
    assert view.answer == "Not measurable: one judge family, needs two."
    assert stability_view(Book.of(replace(runs.minimal(), measurements=()))).answer == (
        "Not measured: no family was left out."
    )
    assert view.drops == ()
    assert view.undefined == ("Without only: not measurable: one judge family, needs two.",)


def test_a_full_order_that_is_permitted_is_named():
    run = runs.realistic()
    levels = {"Marten": 4.3, "Otter": 4.0, "Badger": 3.7, "Weasel": 3.4, "Stoat": 3.1}
    found = runs.agents_measured(run.study, levels, AGGREGATE, "none")
    book = Book.of(
        replace(run, measurements=tuple(found), verdicts=tuple(runs.verdicts(levels, {AGGREGATE: 0.6}, bent="none")))
    )
    view = stability_view(book)
    assert "withheld" not in view.caption
    assert all(f">{agent} {place}<" in view.drops[0].svg for place, agent in enumerate(levels, 1))
    assert [row.places for row in board(book).rows] == ["1", "2", "3", "4", "5"]


# --- levels ---------------------------------------------------------------------------------------------------------


def test_the_third_level_starts_on_the_first_screen_whatever_there_is():
    for run in (runs.realistic(), runs.large()):
        headline, qualified, _ = level_views(Book.of(run))
        assert 76 * len(headline.shown) + 102 * len(qualified.shown) <= 440


def test_rank_one_of_the_aggregate_opens_the_page():
    headline = level_views(Book.of(runs.realistic()))[0]
    assert headline.shown[0].quote == "Marten ranks first of the 5 agents on the panel's aggregate score."
    assert headline.shown[1].quote == "Marten scores above Otter on the panel's aggregate score."


def test_groups_cover_every_withheld_claim_once():
    for run in (runs.realistic(), runs.large(), runs.withheld(), runs.hostile()):
        withheld = [v for v in run.verdicts if v.publication_level == "no-claim"]
        assert sum(group.covers for group in withheld_groups(Book.of(run))) == len(withheld)


def test_a_pair_that_never_met_is_said_to_be_so():
    run = runs.realistic()
    claim = runs.verdict(runs.above("Otter", "Badger", AGGREGATE), "no-claim", "publish", "tie-class", "passed")
    labels = {"dimension": AGGREGATE, "high": "Otter", "low": "Badger"}
    never = runs.measured("contrast", labels, None, n=0, state="never compared", detail={"p_holm": 1.0})
    (group,) = withheld_groups(Book.of(replace(run, verdicts=(claim,), measurements=(never,))))
    said = "".join(text for text, _ in group.why)
    assert said == "The pair forms a tie class. One pair never answered a common question. "


def test_contaminated_controls_and_bent_firsts_are_named():
    run = runs.realistic()
    bad = runs.verdict(runs.above("Otter", "Badger", AGGREGATE), "no-claim", "publish", "stable", "contaminated")
    bent = runs.verdict(runs.first("Otter", "sizing", 5), "no-claim", "publish", "judge-dependent", "passed")
    groups = withheld_groups(Book.of(replace(run, verdicts=(bad, bent))))
    said = ["".join(text for text, _ in group.why) for group in groups]
    assert said[0].startswith("The controls found the score contaminated.")
    assert said[1] == "For one agent it is judge-dependent. "


def test_undefined_agreement_halts_in_words():
    book = with_values({AGGREGATE: None})
    (group,) = withheld_groups(book)
    assert group.text == "Any order of the agents, or a first place, on the aggregate score."
    assert ("not measurable: one judge family, needs two", True) in group.why


@pytest.mark.parametrize(
    ("fragility", "text"),
    [
        ({"a": "headline"}, "Holds under the other rule"),
        ({"a": "qualified", "b": "headline"}, "Qualified under a"),
        ({"a": "no-claim", "b": "no-claim"}, "No claim under a or b"),
        ({"a": "no-claim", "b": "no-claim", "c": "no-claim"}, "No claim under 3 of 3 other rules"),
    ],
)
def test_the_chip_names_the_rules_that_matter(fragility, text):
    run = runs.realistic()
    claim = replace(run.verdicts[0], publication_level="headline", fragility=fragility)
    view = level_views(Book.of(replace(run, verdicts=(claim,))))[0].shown[0]
    assert view.chip is not None
    assert view.chip.text == text


def test_without_other_rules_there_is_neither_chip_nor_table():
    run = runs.realistic()
    bare = tuple(replace(v, fragility={}) for v in run.verdicts)
    book = Book.of(replace(run, verdicts=bare))
    assert level_views(book)[0].shown[0].chip is None
    assert fragility_view(book).rules == ()


def test_fragility_counts_what_moves():
    view = fragility_view(Book.of(runs.realistic()))
    assert view.answer == "Five verdicts of 105 would change under any of three rules that the plan did not lock."
    assert view.counts == ("all hold", "all hold", "5 lower")
    assert all(row.level != "no-claim" for row in view.rows)


def test_fragility_can_raise_a_withheld_claim_without_naming_it():
    run = runs.realistic()
    raised = tuple(
        replace(v, fragility={"softer": "qualified"}) if v.publication_level == "no-claim" else replace(v, fragility={})
        for v in run.verdicts
    )
    view = fragility_view(Book.of(replace(run, verdicts=raised)))
    assert view.rows == ()
    assert view.counts == ("70 higher",)


# --- board ----------------------------------------------------------------------------------------------------------


def test_a_permitted_score_without_interval_says_so():
    run = runs.realistic()
    found = tuple(replace(m, low=None, high=None, level=None) for m in run.measurements)
    first = board(Book.of(replace(run, measurements=found))).rows[0]
    assert (first.score, first.bounds) == ("4.31", "(no interval)")


def test_a_permitted_place_without_score_says_so():
    run = runs.realistic()
    found = tuple(m for m in run.measurements if m.name != "score.effect")
    rows = board(Book.of(replace(run, measurements=found))).rows
    assert rows[0].score == "not measured"
    assert rows[1].score == "not measured"


# --- evidence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(4.25, "percent", "4.25\u00a0%"), (-3.0, "bps", "−3 bps"), (1e20, "none", "1e+20"), (2.0, "<b>", "2 <b>")],
)
def test_numbers_are_shown_as_written(value, unit, text):
    assert written_number(value, unit) == text


def test_the_ledger_is_in_order_of_time_and_knows_its_agents():
    book = Book.of(runs.realistic())
    rows = ledger_rows(book)
    assert [row.record for row in rows[:3]] == ["rec-00000", "rec-00000", "rec-00001"]
    assert rows[0].agent == "Badger"
    orphan = ledger_rows(Book.of(replace(book.run, decisions=())))
    assert {row.agent for row in orphan} == {"unknown"}


def test_measured_shares_win_over_counted_rows():
    run = runs.realistic()
    share = runs.measured("evidence.share", {"state": "contradicted"}, 0.33, n=2400)
    book = Book.of(replace(run, measurements=(*run.measurements, share)))
    answer = evidence_view(book, ledger_rows(book)).answer
    assert "33\u00a0% contradict it" in answer


def test_undefined_side_measures_are_said_in_words():
    state = "undefined: no numbers"
    names = ("evidence.chance_corrected", "evidence.no_number_share", "forecast.mismatch")
    found = tuple(runs.measured(name, {}, None, n=0, state=state) for name in names)
    book = Book.of(replace(runs.realistic(), measurements=found))
    notes = " ".join(evidence_view(book, ()).notes)
    assert notes.count("not defined: no numbers") == 3
    bare = tuple(runs.measured("evidence.chance_corrected", {}, 0.4) for _ in range(1))
    notes = evidence_view(Book.of(replace(runs.realistic(), measurements=bare)), ()).notes
    assert "every number." in notes[0]


def test_nothing_wrong_is_said_without_a_percent():
    names = ("evidence.no_number_share", "forecast.mismatch")
    found = tuple(runs.measured(name, {}, 0.0, n=48) for name in names)
    run = runs.realistic()
    kept = tuple(item for item in run.evidence if item.state != "contradicted")
    book = Book.of(replace(run, measurements=found, evidence=kept))
    view = evidence_view(book, ledger_rows(book))
    assert view.answer.endswith("none contradicts it.")
    assert "Each of 48 records holds at least one number." in view.notes
    assert "None of 48 stated portfolio forecasts differs from the weighted sum of its own parts." in view.notes


def test_many_facts_are_counted():
    run = runs.realistic()
    item = replace(run.evidence[0], facts=("a", "b", "c", "d"), rule="")
    (row,) = ledger_rows(Book.of(replace(run, evidence=(item,))))
    assert row.against == ": a, b and 2 more"


def test_pages_are_full_but_never_over_their_limit():
    rows = ledger_rows(Book.of(runs.realistic()))[:50]
    limit = 3 * rows[0].size + 40
    parts = paged(rows, limit)
    assert tuple(row for part in parts for row in part) == rows
    assert all(sum(row.size for row in part) <= limit for part in parts)
    assert paged([], 10) == ((),)


# --- plan -----------------------------------------------------------------------------------------------------------


def test_a_panel_of_models_has_no_notice():
    run = replace(runs.realistic(), reference_panel=())
    view = plan_view(Book.of(run))
    assert view.reference == ""
    assert all(not judge.planted for judge in view.judges)


def test_a_mixed_panel_names_its_built_in_judges():
    run = replace(runs.realistic(), reference_panel=runs.PANEL[:2])
    assert plan_view(Book.of(run)).reference.startswith("north-1 and strand-1 are built-in graders")


def test_a_plan_without_effects_says_what_is_missing():
    run = runs.realistic()
    bare = replace(run, measurements=(runs.measured("mde", {"dimension": AGGREGATE}, 0.3),), family_size=None, calls=0)
    facts = {fact.term: fact for fact in (*plan_view(Book.of(bare)).plan_facts, *plan_view(Book.of(bare)).panel_facts)}
    assert facts["Claims"].note == "no contrast was tested"
    assert facts["Could detect"].note == "n = 1,250 trajectories"
    assert facts["Replies"].value == "0 calls, 42 invalid"
    assert plan_view(Book.of(bare)).judges[0].invalid == "14"


def test_families_that_made_nobody_are_no_conflict():
    run = replace(runs.realistic(), decisions=tuple(runs.decisions({"Marten": "elsewhere"}, 4)))
    facts = {fact.term: fact.value for fact in plan_view(Book.of(run)).panel_facts}
    assert facts["Conflict"] == "none"
