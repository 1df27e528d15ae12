"""Sections on the edges: other panels, other intervals, other states."""

from __future__ import annotations

from dataclasses import replace

import assay_runs as runs
import pytest
from read_blocks import blocks_of, notes, rows, tables, words

from assaymark.claims import Rules, governing_agreement, index
from assaymark.protocol import Inference
from assaymark.records import AGGREGATE, Rationale, StabilityFinding
from assaymark.report import (
    RunIndex,
    Table,
    evidence_section,
    interval,
    ledger_pages,
    ledger_rows,
    paged,
    plain,
    said_levels,
    withheld_groups,
    written_number,
)
from assaymark.report.study import (
    agreement_section,
    agreement_table,
    agreement_words,
    board,
    board_section,
    cards,
    checked,
    outside_group,
    rules_section,
    stability_section,
)


def with_values(values, **more):
    run = runs.realistic()
    kept = [m for m in run.measurements if not m.name.startswith(("kappa", "redundancy"))]
    claims = runs.verdicts(runs.LEVELS, values)
    found = tuple(kept + runs.kappas(run.study, values))
    return RunIndex.of(replace(run, measurements=found, verdicts=tuple(claims), **more))


def stable(run):
    book = RunIndex.of(run)
    return stability_section(book, outside_group(book))


# --- agreement ------------------------------------------------------------------------------------------------------


def test_agreement_answers_with_every_gate():
    values = {AGGREGATE: 0.5, "risk_fit": 0.6, "sizing": 0.3, "limits": 0.1}
    answer = agreement_words(with_values(values))
    assert answer == (
        "On the overall score agreement is enough. One of three dimensions: enough agreement. "
        "Sizing: weak agreement, no headline. Limits: too little agreement, no claim."
    )


def test_agreement_that_was_not_measured_says_so():
    run = replace(runs.realistic(), measurements=(), verdicts=())
    view = agreement_section(RunIndex.of(run))
    assert view.lead == "Agreement was not measured."
    assert view.blocks == ()
    assert "No score was measured." in words(board_section(RunIndex.of(run)))


def test_without_verdicts_the_plan_gates_the_point_estimate():
    run = replace(runs.realistic(), verdicts=())
    gates = {row[0]: row[-1] for row in rows(agreement_table(RunIndex.of(run)))}
    assert gates["Overall score"].startswith("enough")
    assert gates["Limits"] == "weak"


def test_pairs_and_marks_come_from_the_contingency_tables():
    def pairs_of(section):
        (found,) = (one for one in blocks_of(section) if getattr(one, "summary", "") == "κ of each pair of judges")
        return found

    def has_marks(section):
        return any(getattr(one, "title", "") == "Which marks did each judge give?" for one in blocks_of(section))

    view = agreement_section(RunIndex.of(runs.realistic()))
    assert pairs_of(view).heads[1:] == ("north-1 and quay-1", "north-1 and strand-1", "strand-1 and quay-1")
    assert rows(pairs_of(view))[0] == ("Overall score", "0.66", "0.64", "0.68")
    assert has_marks(view)
    run = runs.realistic()
    bare = tuple(replace(m, detail={"clusters": 30, "pairs": {"north-1|quay-1": None}}) for m in run.measurements)
    other = agreement_section(RunIndex.of(replace(run, measurements=bare)))
    assert not has_marks(other)
    assert ("Limits", "not defined") in rows(pairs_of(other))
    assert not any("clusters a percentile" in note for note in notes(other))


@pytest.mark.parametrize(
    ("pulls", "said"),
    [
        ({"north-1": 0.35, "quay-1": 0.71}, "quay-1 (0.71 without it) pulls it down."),
        ({"north-1": 0.35}, "No judge pulls it down beyond chance."),
        ({}, "It takes three judges to leave one out."),
    ],
)
def test_alpha_stands_beside_kappa_with_the_judges_that_pull_it_down(pulls, said):
    run = runs.realistic()
    without = {name: {"alpha": value, "pulls_down": value > 0.5} for name, value in pulls.items()}
    alpha = runs.measured("panel.alpha", {"dimension": AGGREGATE}, 0.46, low=0.3, high=0.6, detail={"without": without})
    view = agreement_section(RunIndex.of(replace(run, measurements=(*run.measurements, alpha))))
    assert f"Krippendorff’s α on the overall score is {interval(0.46, 0.3, 0.6)}. {said}" in notes(view)


def test_generalizability_and_the_matrix_of_judges_and_dimensions_are_shown_beside_kappa():
    run = runs.realistic()
    more = [
        runs.measured("panel.generalizability", {"dimension": AGGREGATE}, 0.873),
        runs.measured("panel.variance", {"dimension": AGGREGATE, "part": "judge x agent"}, 0.0225),
        runs.measured("dimension.mtmm", {"dimension": "sizing"}, 0.61, detail={"other_judges": 0.2, "same_judge": 0.5}),
        runs.measured("dimension.mtmm", {"dimension": "limits"}, None, state="undefined: flat"),
    ]
    view = agreement_section(RunIndex.of(replace(run, measurements=(*run.measurements, *more))))
    (note,) = (note for note in notes(view) if "eneralizability" in note)
    assert "on the overall score is 0.87:" in note
    assert "0.022 squared points" in note
    assert note.endswith("standard deviation of 0.15 points.")
    assert rows(tables(view)["Dimension"]) == [("Sizing", "0.61", "0.20", "0.50")]
    bare = agreement_section(RunIndex.of(run))
    assert "Dimension" not in tables(bare)
    assert not any("eneralizability" in note for note in notes(bare))


def formats_of(values, dimension="sizing"):
    found = []
    for name, value in values.items():
        state = "too few to gate: 4 records in 1 cluster" if name == "option" else "undefined: no variance"
        more = {"detail": {"clusters": 5}} | ({"state": state} if value is None else {})
        found.append(runs.measured("kappa.mean_pairwise", {"dimension": dimension, "format": name}, value, **more))
    return found


def in_formats(pooled, values):
    """The gating note, the halt or gate words and the verdict's own kappa for one dimension with formats."""
    run = runs.realistic()
    kept = [m for m in run.measurements if not m.name.startswith(("kappa", "redundancy"))]
    found = [*kept, *runs.kappas(run.study, {"sizing": pooled}), *formats_of(values)]
    return RunIndex.of(replace(run, measurements=tuple(found)))


@pytest.mark.parametrize(
    ("pooled", "formats", "note", "words"),
    [
        (0.66, {"v1": 0.51, "v2": 0.31, "option": None}, "0.31 in v2", "κ 0.31 in v2"),
        (0.25, {"v1": 0.51}, "", "κ 0.25"),
        (0.66, {"v1": 0.1966}, "0.197 in v1", "κ 0.197 in v1"),
        (0.66, {"v1": 0.3962, "option": None}, "0.396 in v1", "κ 0.396 in v1"),
        (0.66, {"v1": 0.51, "v2": None}, "not defined: no variance in v2", "not defined: no variance in v2"),
        (None, {"v1": 0.51}, "", "not measurable: one judge family, needs two"),
    ],
)
def test_the_lowest_gated_kappa_decides_as_for_the_verdicts(pooled, formats, note, words):
    book = in_formats(pooled, formats)
    assert (book.gating_note("sizing"), book.gating_words("sizing")) == (note, words)
    known = index(book.run.measurements)
    decided = governing_agreement("sizing", known, Rules.of(book.run.study))
    assert book.gating("sizing").value == decided.kappa
    assert RunIndex.of(replace(book.run, verdicts=())).status("sizing") == decided.status


def test_a_gate_is_never_named_with_a_kappa_that_does_not_decide():
    book = in_formats(0.66, {"v1": 0.31})
    (gate,) = [row[-1] for row in rows(agreement_table(book)) if row[0] == "Sizing"]
    assert gate == "enough, 0.31 in v1"
    (forest,) = (one for one in agreement_section(book).blocks if getattr(one, "title", "").startswith("How far is"))
    for figure in (forest.wide, forest.narrow):
        assert "0.31 in v1" in figure
        assert "enough (0.31 in v1)</desc>" in figure
    assert "it decides" in forest.caption
    claim = next(v for v in book.run.verdicts if v.claim.dimension == "sizing")
    assert checked(book, claim)[0][0].text == "κ 0.31 in v1; 0.40 needed"


def test_too_little_agreement_names_the_format_that_decides():
    book = in_formats(0.66, {"v1": 0.1966})
    claims = [v for v in runs.verdicts(runs.LEVELS, {"sizing": 0.1}) if v.claim.dimension == "sizing"]
    (group,) = withheld_groups(RunIndex.of(replace(book.run, verdicts=tuple(claims))))
    assert "".join(text for text, _ in group.why) == "Agreement: κ 0.197 in v1; 0.20 needed. "


# --- stability ------------------------------------------------------------------------------------------------------


def test_every_pair_has_its_sign_and_its_p_values_in_every_drop():
    view = stable(runs.realistic())
    assert view.lead == (
        "4 of 7 significant differences on the overall score hold without any one judge family; some turn without "
        "judge family quay."
    )
    scores, pairs, rho = (one for one in view.blocks if isinstance(one, Table))
    assert scores.rows[0] == ("Overall score", "10", "7", "4", "0", "3")
    assert pairs.heads == ("Pair", *(f"without judge family {name}" for name in ("north", "quay", "strand")), "Result")
    found = {row[0]: row[1:] for row in pairs.rows}
    held = "p < .001, adjusted p = .002"
    assert found["Marten and Otter"] == (held, held, held, "holds without any one of three judge families")
    assert found["Badger and Stoat"] == (held, "turns", held, "turns without judge family quay")
    assert "Badger and Otter" not in found
    assert dict(zip(rho.heads, rho.rows[0], strict=True))["without judge family quay"] == "0.30"


def test_orders_that_all_hold_are_said_to():
    run = runs.realistic()
    claims = runs.verdicts(runs.LEVELS, {AGGREGATE: 0.6}, bent="none")
    view = stable(replace(run, verdicts=tuple(claims)))
    assert view.lead == "7 of 7 significant differences on the overall score hold without any one judge family."


def test_stability_that_is_undefined_gives_its_state():
    view = stable(runs.minimal())
    assert view.lead == "Not measurable: one judge family, so none can be left out."
    assert len(view.blocks) == 1 or not any("p of at most" in note for note in notes(view))
    bare = stable(replace(runs.realistic(), measurements=(), verdicts=()))
    assert bare.lead == "No difference on the overall score is significant."


def test_agents_that_are_all_ranked_have_scores_of_their_own():
    run = runs.realistic()
    levels = {"Marten": 4.3, "Otter": 4.0, "Badger": 3.7, "Weasel": 3.4, "Stoat": 3.1}
    found = runs.agents_measured(run.study, levels, AGGREGATE, "none")
    claims = runs.verdicts(levels, {AGGREGATE: 0.6}, bent="none")
    rows = board(RunIndex.of(replace(run, measurements=tuple(found), verdicts=tuple(claims))))
    assert [(row.agents[0][0], row.ranks, row.note) for row in rows] == [
        (agent, str(at), "") for at, agent in enumerate(levels, 1)
    ]
    assert [row.score for row in rows] == ["4.30", "4.00", "3.70", "3.40", "3.10"]
    assert {row.why for row in rows} == {"Ranked by 4 supported orders"}


# --- levels ---------------------------------------------------------------------------------------------------------


def test_the_first_rank_of_the_overall_score_opens_the_page():
    headline = said_levels(RunIndex.of(runs.realistic()))[0]
    assert headline.shown[0].sentence == "Marten ranks first of the 5 agents on the overall score."
    assert headline.shown[1].sentence == "Marten scores above Badger on the overall score."


def test_claims_stand_by_score_and_name_whatever_the_estimates_are():
    run = runs.realistic()
    other = tuple(
        replace(m, value=5 - m.value, low=None, high=None) if m.name == "score.effect" else m for m in run.measurements
    )
    plain, turned = (
        [[claim.sentence for claim in (*view.shown, *view.more)] for view in said_levels(RunIndex.of(version))]
        for version in (run, replace(run, measurements=other))
    )
    assert plain == turned
    aggregate = [quote for quote in plain[0] if "overall" in quote]
    assert plain[0][: len(aggregate)] == aggregate
    pairs = [sorted(quote.split(" on ")[0].split(" scores above ")) for quote in aggregate if "above" in quote]
    assert pairs == sorted(pairs)


def test_groups_cover_every_unsupported_claim_once():
    for run in (runs.realistic(), runs.large(), runs.withheld(), runs.hostile()):
        withheld = [v for v in run.verdicts if v.publication_level == "no-claim"]
        assert sum(group.covers for group in withheld_groups(RunIndex.of(run))) == len(withheld)


def test_a_pair_that_cannot_be_tested_is_said_to_be_so():
    run = runs.realistic()
    claim = runs.verdict(
        runs.above("Otter", "Badger", AGGREGATE), "no-claim", "publish", "not tested", "passed",
        pair_state="cannot-be-tested", p=1.0, p_adjusted=1.0,
    )  # fmt: skip
    labels = {"dimension": AGGREGATE, "high": "Otter", "low": "Badger"}
    state = "cannot be tested (2 common clusters; 3 are needed, 5 or more to have a chance)"
    found = runs.measured("contrast", labels, None, n=0, state=state, detail={"clusters": 2})
    book = RunIndex.of(replace(run, verdicts=(claim,), measurements=(found,)))
    (group,) = withheld_groups(book)
    said = "".join(text for text, _ in group.why)
    assert said == f"The pair {state}. "
    assert book.untestable == "This study cannot order agents: 2 clusters."


@pytest.mark.parametrize(
    ("share", "dimensions", "level"),
    [(0.8, ("risk_fit", "sizing"), ".04"), (0.5, ("risk_fit", "sizing"), ".025"), (0.8, ("risk_fit",), ".05")],
)
def test_a_pair_that_is_not_resolved_gives_its_p_and_the_level_that_it_misses(share, dimensions, level):
    run = runs.realistic()
    more = {"p": 0.02, "p_adjusted": 0.06}
    claims = [
        runs.verdict(runs.above("Otter", "Badger", name), "no-claim", "publish", "tie-class", "passed", **more)
        for name in (AGGREGATE, *dimensions)
    ]
    plan = run.study.model_copy(update={"inference": Inference(aggregate_share=share)})
    groups = withheld_groups(RunIndex.of(replace(run, study=plan, verdicts=tuple(claims))))
    assert (
        "".join(text for text, _ in groups[0].why) == f"The pair is not resolved: adjusted p = .060; {level} needed. "
    )


def test_dimensions_have_all_of_alpha_once_every_pair_of_the_overall_score_passed():
    run = runs.realistic()
    claims = runs.verdicts({"Otter": 4.4, "Badger": 4.0}, dict.fromkeys((AGGREGATE, "risk_fit", "sizing"), 0.6))
    assert RunIndex.of(replace(run, verdicts=tuple(claims))).needed("sizing") == pytest.approx(0.05)
    assert RunIndex.of(run).needed("sizing") == pytest.approx(0.01)


def test_one_judge_family_cannot_be_left_out():
    run = replace(runs.realistic(), study=runs.study((("solo", "only"), ("duo", "only"))))
    alone = StabilityFinding(state="not-measurable")
    pair = runs.verdict(
        runs.above("Otter", "Badger", AGGREGATE), "no-claim", "publish", "judge-dependent", "passed", stability=alone
    )
    book = RunIndex.of(replace(run, verdicts=(pair,), measurements=()))
    check = checked(book, pair)[0][-1]
    assert (check.name, check.text) == ("Without any one judge family", "not measurable: one judge family")
    (group,) = withheld_groups(book)
    assert ("not measurable: one judge family", True) in group.why


def test_the_leader_of_a_score_without_claims_is_not_marked_by_its_checks():
    book = RunIndex.of(runs.withheld())
    firsts = [v for v in book.on(AGGREGATE) if len(v.claim.subjects) == 1]
    assert len({v.stability_status for v in firsts}) == 2
    assert len({checked(book, v) for v in firsts}) == 1


def test_failing_control_texts_are_named():
    run = runs.realistic()
    bad = runs.verdict(
        runs.above("Otter", "Badger", AGGREGATE), "no-claim", "publish", "stable", "contaminated",
        stability=StabilityFinding(state="stable"),
    )  # fmt: skip
    (group,) = withheld_groups(RunIndex.of(replace(run, verdicts=(bad,))))
    assert "".join(text for text, _ in group.why) == "The control texts fail. "


def test_undefined_agreement_stops_in_words():
    book = with_values({AGGREGATE: None})
    ranking, close = withheld_groups(book)
    assert ranking.text == "Any ranking of the agents, or a first rank, on the overall score."
    assert close.text == "That the agents of ten pairs score alike on the overall score."
    for group in (ranking, close):
        assert ("not measurable: one judge family, needs two", True) in group.why


@pytest.mark.parametrize(
    ("fragility", "text"),
    [
        ({"a": "headline"}, "Holds: a"),
        ({"a": "qualified", "b": "headline"}, "Holds: b. Only with its condition: a"),
        ({"a": "no-claim", "b": "no-claim"}, "Not supported: a and b"),
    ],
)
def test_a_card_names_the_rules_under_which_its_claim_holds(fragility, text):
    run = runs.realistic()
    claim = replace(run.verdicts[0], publication_level="headline", fragility=fragility)
    ((_, card),) = cards(RunIndex.of(replace(run, verdicts=(claim,))))
    assert plain(dict(card.facts)["Other rules"]) == text


def test_without_other_rules_there_is_no_table():
    run = runs.realistic()
    bare = tuple(replace(v, fragility={}) for v in run.verdicts)
    book = RunIndex.of(replace(run, verdicts=bare))
    assert rules_section(book) is None


def rules_table(run):
    (table,) = (one for one in rules_section(RunIndex.of(run)).blocks if isinstance(one, Table))
    return table


def test_fragility_counts_what_moves():
    run = runs.realistic()
    assert rules_section(RunIndex.of(run)).lead == (
        "Five verdicts of 105 would change under any one of three other rules, which the plan did not lock."
    )
    table = rules_table(run)
    assert table.heads[2:] == (
        "Kappa cut-offs 0.5 and 0.25", "Lower bound of kappa", "A test with each pair’s own variance",
    )  # fmt: skip
    assert rows(table)[-1][2:] == ("all hold", "5 lower", "all hold")
    assert all(row[1] != "Not supported" for row in rows(table)[:-1])


def test_fragility_can_raise_an_unsupported_claim_without_naming_it():
    run = runs.realistic()
    raised = tuple(
        replace(v, fragility={"softer": "qualified"}) if v.publication_level == "no-claim" else replace(v, fragility={})
        for v in run.verdicts
    )
    (only,) = rows(rules_table(replace(run, verdicts=raised)))
    assert only[2:] == ("79 higher",)


def test_fragility_takes_whatever_rules_a_verdict_was_tried_under():
    run = runs.realistic()
    first, second = [v for v in run.verdicts if v.publication_level == "headline"][:2]
    claims = (
        replace(first, fragility={"source: sign flip": "headline", "half-even rounding": "no-claim"}),
        replace(second, fragility={"a rule of tomorrow": "headline"}),
    )
    table = rules_table(replace(run, verdicts=claims))
    assert table.heads[2:] == ("A rule of tomorrow", "Halves rounded to even", "ValueBlindBench’s sign flip with Holm")
    assert [row[2:] for row in rows(table)] == [
        ("not tried", "Not supported", "holds"),
        ("holds", "not tried", "not tried"),
        ("all hold", "1 lower", "all hold"),
    ]


def test_a_rule_that_cannot_reject_is_not_counted_and_says_why():
    """With five clusters a sign flip has a p of .0625 or more: it would change every verdict and says nothing."""
    run = runs.realistic()

    def flipped(clusters):
        found = tuple(
            replace(m, detail=m.detail | {"p_sign_flip": 2.0 ** (1 - clusters), "clusters": clusters})
            if m.name == "contrast"
            else m
            for m in run.measurements
        )
        return next(iter(notes(rules_section(RunIndex.of(replace(run, measurements=found))))), "")

    assert flipped(5) == (
        "Not counted: ValueBlindBench’s sign flip with Holm. With five clusters this test cannot reject: p = .062 at "
        "least, after correction over ten pairs p = .625; .05 needed."
    )
    claims = tuple(replace(v, fragility=v.fragility | {"source: sign flip": v.publication_level}) for v in run.verdicts)
    assert notes(rules_section(RunIndex.of(replace(run, verdicts=claims)))) == []


# --- board ----------------------------------------------------------------------------------------------------------


def test_a_score_without_interval_says_so():
    run = runs.realistic()
    found = tuple(replace(m, low=None, high=None, level=None) for m in run.measurements)
    first, rest = board(RunIndex.of(replace(run, measurements=found)))
    assert (first.score, first.bounds) == ("4.31", "(no interval)")
    assert rest.score is None, "points without intervals would show the differences"


def test_a_rank_without_a_score_says_so():
    run = runs.realistic()
    found = tuple(m for m in run.measurements if m.name != "score.effect")
    rows = board(RunIndex.of(replace(run, measurements=found)))
    assert [row.score for row in rows] == ["not measured", None]


# --- evidence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(4.25, "percent", "4.25\u00a0%"), (-3.0, "bps", "−3 bps"), (1e20, "none", "1e+20"), (2.0, "<b>", "2 <b>")],
)
def test_numbers_are_shown_as_written(value, unit, text):
    assert written_number(value, unit) == text


def test_the_ledger_is_in_order_of_time_and_knows_its_agents():
    book = RunIndex.of(runs.realistic())
    rows = ledger_rows(book)
    assert [str(row.cells[1]) for row in rows[:3]] == ["rec-00000", "rec-00000", "rec-00001"]
    assert rows[0].cells[0] == "Badger"
    orphan = ledger_rows(RunIndex.of(replace(book.run, decisions=())))
    assert {row.cells[0] for row in orphan} == {"unknown"}


def test_a_row_shows_its_number_in_its_sentence():
    run = runs.realistic()
    text = "Gold rose. Cash is 500, so 20 units fit in it. I wait."
    first = replace(run.decisions[0], rationales=(Rationale(text=text, kind="summary"),))
    item = replace(run.evidence[0], decision=first.record_id, start=text.index("20"), quote="20", state="in_context")
    book = RunIndex.of(replace(run, decisions=(first,), evidence=(item,)))
    (row,) = ledger_rows(book)
    assert row.cells[2] == ("“Cash is 500, so ", "20", " units fit in it.”")
    assert plain(row.cells[5]) == "in the context"
    (page,) = ledger_pages([row])
    assert "Cash is 500, so " in str(page.blocks)
    lead = evidence_section(book).lead
    assert "100\u00a0% are printed there without an established subject" in lead


def test_states_of_older_tables_are_shown_where_they_are():
    run = runs.realistic()
    old = replace(run, evidence=tuple(replace(one, state="not_verifiable") for one in run.evidence))
    before, now = (evidence_section(book) for book in (RunIndex.of(old), RunIndex.of(run)))
    assert "100\u00a0% were not found" in before.lead
    assert "not verifiable" in str(before.blocks)
    assert "not verifiable" not in str(now.blocks)


def test_measured_shares_win_over_counted_rows():
    run = runs.realistic()
    share = runs.measured("evidence.share", {"state": "contradicted"}, 0.33, n=2400)
    book = RunIndex.of(replace(run, measurements=(*run.measurements, share)))
    answer = evidence_section(book).lead
    assert "33\u00a0% contradict it" in answer


def test_undefined_side_measures_are_said_in_words():
    state = "undefined: no numbers"
    names = ("evidence.chance_corrected", "evidence.no_number_share", "forecast.mismatch")
    found = tuple(runs.measured(name, {}, None, n=0, state=state) for name in names)
    book = RunIndex.of(replace(runs.realistic(), measurements=found))
    said = " ".join(notes(evidence_section(book)))
    assert said.count("not defined: no numbers") == 3
    bare = tuple(runs.measured("evidence.chance_corrected", {}, 0.4) for _ in range(1))
    said = notes(evidence_section(RunIndex.of(replace(runs.realistic(), measurements=bare))))
    assert "every number." in said[0]


def test_nothing_wrong_is_said_without_a_percent():
    names = ("evidence.no_number_share", "forecast.mismatch")
    found = tuple(runs.measured(name, {}, 0.0, n=48) for name in names)
    run = runs.realistic()
    kept = tuple(item for item in run.evidence if item.state != "contradicted")
    book = RunIndex.of(replace(run, measurements=found, evidence=kept))
    view = evidence_section(book)
    assert view.lead.endswith("none contradicts it.")
    assert "Each of 48 records holds at least one number." in notes(view)
    assert "None of 48 stated portfolio forecasts differs from the weighted sum of its own parts." in notes(view)


def test_forecasts_that_do_not_add_up_are_many():
    found = (runs.measured("forecast.mismatch", {}, 0.19, n=270),)
    said = notes(evidence_section(RunIndex.of(replace(runs.realistic(), measurements=found))))
    wanted = "19\u00a0% of 270 stated portfolio forecasts differ from the weighted sum of their own parts."
    assert wanted in said


def test_many_facts_are_counted():
    run = runs.realistic()
    item = replace(run.evidence[0], facts=("a", "b", "c", "d"), rule="")
    (row,) = ledger_rows(RunIndex.of(replace(run, evidence=(item,))))
    assert str(row.cells[4]).endswith(": a, b and 2 more")


def test_pages_are_full_but_never_over_their_limit():
    rows = ledger_rows(RunIndex.of(runs.realistic()))[:50]
    limit = 3 * rows[0].size + 40
    parts = paged(rows, limit)
    assert tuple(row for part in parts for row in part) == rows
    assert all(sum(row.size for row in part) <= limit for part in parts)
    assert paged([], 10) == ((),)
