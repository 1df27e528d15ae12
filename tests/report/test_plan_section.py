"""The plan, the panel and the records: what each locked value says, and what the records lack."""

from __future__ import annotations

from dataclasses import replace

import assay_runs as runs
import pytest

from assaymark.protocol import Claims, Inference
from assaymark.records import AGGREGATE, Rationale
from assaymark.report.book import Book
from assaymark.report.plan import plan_view


@pytest.mark.parametrize(
    ("inference", "claims", "said"),
    [
        ({}, {}, ("whole study’s order claims", "each tested at half of it, α .025")),
        ({"share_alpha": False}, {}, ("error rate of each Holm family", "each tested at α .05")),
        ({}, {"dimensions": ("aggregate",)}, ("whole study’s order claims", "tested at all of it, α .05")),
    ],
)
def test_the_plan_says_at_which_level_a_family_is_tested(inference, claims, said):
    run = runs.realistic()
    plan = run.study.model_copy(update={"inference": Inference(**inference), "claims": Claims(**claims)})
    meanings = {row.field: row.meaning for row in plan_view(Book.of(replace(run, study=plan))).rows}
    assert said[0] in meanings["inference.alpha"]
    assert meanings["inference.share_alpha"].endswith(said[1])


def test_every_locked_value_says_what_it_decides():
    assert all(row.meaning for row in plan_view(Book.of(runs.realistic())).rows)


def test_records_without_a_judged_text_are_counted():
    run = runs.minimal()
    silent = [
        replace(run.decisions[0], rationales=(), missing=("text",)),
        replace(run.decisions[1], rationales=(Rationale(text="Fees: none.", kind="arena"),)),
    ]

    def missing(decisions, notes=()):
        return plan_view(Book.of(replace(run, decisions=tuple(decisions), import_notes=notes))).missing

    assert missing(run.decisions) == ()
    assert missing([silent[0], run.decisions[1]]) == ("One of two records holds no text that is judged.",)
    assert missing(silent) == ("Two of two records hold no text that is judged.",)
    assert missing(silent, ("text (1 records)", "fees (2 records)")) == (
        "Two of two records hold no text that is judged.",
        "Fees (2 records).",
    )
    assert missing(run.decisions, ("text of a note (1 records)",)) == ("Text of a note (1 record).",)


def test_what_is_undefined_for_one_reason_is_one_row():
    run = runs.realistic()
    some = runs.measured("noise.repetition_stability", {"judge": "north-1", "ddof": "0"}, 0.97)
    floors = plan_view(Book.of(replace(run, measurements=(*run.measurements, some)))).floors
    assert [(row.about, row.value) for row in floors[:3]] == [
        ("north-1, repeated (ddof 0)", "0.970"),
        ("north-1, quay-1 and strand-1, repeated (ddof 1)", "not defined: one trial, needs two"),
        ("Badger, Marten, Otter, Stoat and Weasel, replicates", "not defined: no replicates"),
    ]


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
