"""Sections on the edges: other panels, other intervals, other states."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import assay_runs as runs
import pytest
from read_blocks import blocks_of, notes, rows, tables, words

from assaymark.claims import Rules, governing_agreement, index
from assaymark.protocol import Inference
from assaymark.records import AGGREGATE, Rationale, StabilityFinding
from assaymark.report import (
    ClaimQuote,
    RunIndex,
    Table,
    evidence_section,
    fact_check_pages,
    fact_check_rows,
    interval,
    paginate,
    plain,
    stated_number,
    study_levels,
    withheld_groups,
)  # fmt: skip
from assaymark.report import study as pages_of

realistic = cache(runs.realistic)
STABLE = StabilityFinding(state="stable")


def book(run=None, **more) -> RunIndex:
    """The index of a run, of the realistic one by default, with other fields."""
    return RunIndex.of(replace(run or realistic(), **more))


def also(*measured, **more) -> RunIndex:
    """The realistic run with more measurements."""
    return book(measurements=(*realistic().measurements, *measured), **more)


def unsupported(*subjects, dimension=AGGREGATE, standing="stable", controls="passed", **more):
    """A verdict on two agents that is not supported."""
    claim = runs.above(*subjects, dimension)
    return runs.verdict(claim, "no-claim", "publish", standing, controls, **more)


def whys(index) -> list[str]:
    """The reason why each group of claims is not supported."""
    return ["".join(text for text, _ in group.why) for group in withheld_groups(index)]


def stable(index):
    return pages_of.stability_section(index, pages_of.holdout_group(index))


def without_agreement():
    return [m for m in realistic().measurements if not m.name.startswith(("kappa", "redundancy"))]


def with_values(values):
    found = (*without_agreement(), *runs.kappas(realistic().study, values))
    return book(measurements=found, verdicts=tuple(runs.verdicts(runs.LEVELS, values)))


# --- agreement ------------------------------------------------------------------------------------------------------


def test_agreement_answers_with_every_gate():
    values = {AGGREGATE: 0.5, "risk_fit": 0.6, "sizing": 0.3, "limits": 0.1}
    assert pages_of.agreement_words(with_values(values)) == (
        "On the overall score agreement is enough. One of three dimensions: enough agreement. "
        "Sizing: weak agreement, no headline. Limits: too little agreement, no claim."
    )


def test_agreement_that_was_not_measured_says_so_and_without_verdicts_the_plan_gates_the_point_estimate():
    bare = book(measurements=(), verdicts=())
    view = pages_of.agreement_section(bare)
    assert (view.lead, view.blocks) == ("Agreement was not measured.", ())
    assert "No score was measured." in words(pages_of.leaderboard_section(bare))
    gates = {row[0]: row[-1] for row in rows(pages_of.agreement_table(book(verdicts=())))}
    assert gates["Overall score"].startswith("enough")
    assert gates["Limits"] == "weak"


def test_pairs_and_marks_come_from_the_contingency_tables():
    bare = tuple(
        replace(m, detail={"clusters": 30, "pairs": {"north-1|quay-1": None}}) for m in realistic().measurements
    )
    views = [pages_of.agreement_section(one) for one in (book(), book(measurements=bare))]
    whole, other = (
        next(one for one in blocks_of(view) if getattr(one, "summary", "") == "κ of each pair of judges")
        for view in views
    )
    assert whole.columns[1:] == ("north-1 and quay-1", "north-1 and strand-1", "strand-1 and quay-1")
    assert rows(whole)[0] == ("Overall score", "0.66", "0.64", "0.68")
    assert ("Limits", "not defined") in rows(other)
    titles = [{getattr(one, "title", "") for one in blocks_of(view)} for view in views]
    assert ["Which marks did each judge give?" in found for found in titles] == [True, False]
    assert not any("clusters a percentile" in note for note in notes(views[1]))


@pytest.mark.parametrize(("pulls", "said"), [
    ({"north-1": 0.35, "quay-1": 0.71}, "quay-1 (0.71 without it) pulls it down."),
    ({"north-1": 0.35}, "No judge pulls it down beyond chance."), ({}, "It takes three judges to leave one out."),
])  # fmt: skip
def test_alpha_stands_beside_kappa_with_the_judges_that_pull_it_down(pulls, said):
    without = {name: {"alpha": value, "pulls_down": value > 0.5} for name, value in pulls.items()}
    alpha = runs.measured("panel.alpha", {"dimension": AGGREGATE}, 0.46, low=0.3, high=0.6, detail={"without": without})
    wanted = f"Krippendorff’s α on the overall score is {interval(0.46, 0.3, 0.6)}. {said}"
    assert wanted in notes(pages_of.agreement_section(also(alpha)))


def test_generalizability_and_the_matrix_of_judges_and_dimensions_are_shown_beside_kappa():
    view = pages_of.agreement_section(also(
        runs.measured("panel.generalizability", {"dimension": AGGREGATE}, 0.873),
        runs.measured("panel.variance", {"dimension": AGGREGATE, "part": "judge x agent"}, 0.0225),
        runs.measured("dimension.mtmm", {"dimension": "sizing"}, 0.61, detail={"other_judges": 0.2, "same_judge": 0.5}),
        runs.measured("dimension.mtmm", {"dimension": "limits"}, None, state="undefined: flat"),
    ))  # fmt: skip
    (note,) = (note for note in notes(view) if "eneralizability" in note)
    assert re.search(
        r"on the overall score is 0\.87:.* 0\.022 squared points.*standard deviation of 0\.15 points\.$", note
    )
    assert rows(tables(view)["Dimension"]) == [("Sizing", "0.61", "0.20", "0.50")]
    bare = pages_of.agreement_section(book())
    assert "Dimension" not in tables(bare)
    assert not any("eneralizability" in note for note in notes(bare))


def in_formats(pooled, values):
    """One dimension with formats: the index of a run in which each of them has a kappa, or none."""
    found = [*without_agreement(), *runs.kappas(realistic().study, {"sizing": pooled})]
    for name, value in values.items():
        state = "too few to gate: 4 records in 1 cluster" if name == "option" else "undefined: no variance"
        more = {"detail": {"clusters": 5}} | ({"state": state} if value is None else {})
        labels = {"dimension": "sizing", "format": name}
        found.append(runs.measured("kappa.mean_pairwise", labels, value, **more))
    return book(measurements=tuple(found))


@pytest.mark.parametrize(("pooled", "formats", "note", "words"), [
    (0.66, {"v1": 0.51, "v2": 0.31, "option": None}, "0.31 in v2", "κ 0.31 in v2"), (0.25, {"v1": 0.51}, "", "κ 0.25"),
    (0.66, {"v1": 0.1966}, "0.197 in v1", "κ 0.197 in v1"),
    (0.66, {"v1": 0.3962, "option": None}, "0.396 in v1", "κ 0.396 in v1"),
    (0.66, {"v1": 0.51, "v2": None}, "not defined: no variance in v2", "not defined: no variance in v2"),
    (None, {"v1": 0.51}, "", "not measurable: one judge family, needs two"),
])  # fmt: skip
def test_the_lowest_gated_kappa_decides_as_for_the_verdicts(pooled, formats, note, words):
    found = in_formats(pooled, formats)
    assert (found.gating_note("sizing"), found.gating_words("sizing")) == (note, words)
    decided = governing_agreement("sizing", index(found.run.measurements), Rules.of(found.run.study))
    assert found.gating("sizing").id in decided.measurements
    assert book(found.run, verdicts=()).status("sizing") == decided.state


def test_a_gate_is_never_named_with_a_kappa_that_does_not_decide():
    found = in_formats(0.66, {"v1": 0.31})
    assert [row[-1] for row in rows(pages_of.agreement_table(found)) if row[0] == "Sizing"] == ["enough, 0.31 in v1"]
    blocks = pages_of.agreement_section(found).blocks
    (forest,) = (one for one in blocks if getattr(one, "title", "").startswith("How far is"))
    assert all("enough (0.31 in v1)</desc>" in figure for figure in (forest.wide, forest.narrow))
    assert all("0.31 in v1" in figure.partition("</desc>")[2] for figure in (forest.wide, forest.narrow))
    assert "it decides" in forest.caption
    claim = next(v for v in found.run.verdicts if v.claim.dimension == "sizing")
    assert pages_of.checks_of(found, claim)[0][0].text == "κ 0.31 in v1; 0.40 needed"
    claims = [v for v in runs.verdicts(runs.LEVELS, {"sizing": 0.1}) if v.claim.dimension == "sizing"]
    little = book(in_formats(0.66, {"v1": 0.1966}).run, verdicts=tuple(claims))
    assert whys(little) == ["Agreement: κ 0.197 in v1; 0.20 needed. "]


# --- stability ------------------------------------------------------------------------------------------------------


def test_every_pair_has_its_sign_and_its_p_values_in_every_drop():
    view = stable(book())
    of = "significant differences on the overall score hold without any one judge family"
    assert view.lead == f"4 of 7 {of}; some reverse without judge family quay."
    scores, pair, rho = (one for one in view.blocks if isinstance(one, Table))
    assert scores.rows[0] == ("Overall score", "10", "7", "4", "0", "3")
    assert pair.columns == ("Pair", *(f"without judge family {name}" for name in ("north", "quay", "strand")), "Result")
    found = {row[0]: row[1:] for row in pair.rows}
    held = "p < .001, adjusted p = .002"
    assert found["Marten and Otter"] == (held, held, held, "holds without any one of three judge families")
    assert found["Badger and Stoat"] == (held, "reverses", held, "reverses without judge family quay")
    assert any("p of at most .033 and, after correction over all pairs, .1." in note for note in notes(view))
    assert "Badger and Otter" not in found
    assert dict(zip(rho.columns, rho.rows[0], strict=True))["without judge family quay"] == "0.30"
    all_hold = book(verdicts=tuple(runs.verdicts(runs.LEVELS, {AGGREGATE: 0.6}, bent="none")))
    assert stable(all_hold).lead == f"7 of 7 {of}."


def test_stability_that_is_undefined_gives_its_state():
    view = stable(book(runs.minimal()))
    assert view.lead == "Not measurable: one judge family, so none can be left out."
    assert len(view.blocks) == 1 or not any("p of at most" in note for note in notes(view))
    bare = stable(book(measurements=(), verdicts=()))
    assert bare.lead == "No difference on the overall score is significant."


# --- levels ---------------------------------------------------------------------------------------------------------


def test_claims_stand_by_score_and_name_whatever_the_estimates_are():
    other = tuple(
        replace(m, value=5 - m.value, low=None, high=None) if m.name == "score.effect" else m
        for m in realistic().measurements
    )
    plain, turned = (
        [
            [claim.sentence for claim in (*view.claims, *view.more) if isinstance(claim, ClaimQuote)]
            for view in study_levels(version)
        ]
        for version in (book(), book(measurements=other))
    )
    assert plain == turned
    assert plain[0][:2] == [
        "Marten ranks first of the 5 agents on the overall score.",
        "Marten scores above Badger on the overall score.",
    ]
    aggregate = [quote for quote in plain[0] if "overall" in quote]
    assert plain[0][: len(aggregate)] == aggregate
    pairs = [sorted(quote.split(" on ")[0].split(" scores above ")) for quote in aggregate if "above" in quote]
    assert pairs == sorted(pairs)


def test_groups_cover_every_unsupported_claim_once():
    for run in (realistic(), runs.large(), runs.withheld(), runs.hostile()):
        withheld = [v for v in run.verdicts if v.publication_level == "no-claim"]
        assert sum(group.covers for group in withheld_groups(book(run))) == len(withheld)


@pytest.mark.parametrize(
    ("share", "dimensions", "level"),
    [(0.8, ("risk_fit", "sizing"), ".04"), (0.5, ("risk_fit", "sizing"), ".025"), (0.8, ("risk_fit",), ".04")],
)
def test_a_pair_that_is_not_resolved_gives_its_p_and_the_level_that_it_misses(share, dimensions, level):
    more = {"standing": "tie-class", "p": 0.02, "p_adjusted": 0.06}
    claims = tuple(unsupported("Otter", "Badger", dimension=name, **more) for name in (AGGREGATE, *dimensions))
    plan = realistic().study.model_copy(update={"inference": Inference(aggregate_share=share)})
    wanted = f"The pair is not resolved: adjusted p = .060; {level} needed. "
    assert whys(book(study=plan, verdicts=claims))[0] == wanted


def test_dimensions_have_all_of_alpha_once_every_pair_of_the_overall_score_passed():
    claims = runs.verdicts({"Otter": 4.4, "Badger": 4.0}, dict.fromkeys((AGGREGATE, "risk_fit", "sizing"), 0.6))
    assert book(verdicts=tuple(claims)).alpha("sizing") == pytest.approx(0.05)
    assert book().alpha("sizing") == pytest.approx(0.01)


def test_one_judge_family_cannot_be_left_out():
    alone = StabilityFinding(state="not-measurable")
    pair = unsupported("Otter", "Badger", standing="judge-dependent", stability=alone)
    index = book(study=runs.study((("solo", "only"), ("duo", "only"))), verdicts=(pair,), measurements=())
    check = pages_of.checks_of(index, pair)[0][-1]
    assert (check.name, check.text) == ("Without any one judge family", "not measurable: one judge family")
    (group,) = withheld_groups(index)
    assert ("not measurable: one judge family", True) in group.why


def test_the_leader_of_a_score_without_claims_is_not_marked_by_its_checks():
    index = book(runs.withheld())
    firsts = [v for v in index.on(AGGREGATE) if len(v.claim.subjects) == 1]
    assert len({v.stability_status for v in firsts}) == 2
    assert len({pages_of.checks_of(index, v) for v in firsts}) == 1


def test_failing_control_texts_and_undefined_agreement_stop_in_words():
    bad = unsupported("Otter", "Badger", controls="contaminated", stability=STABLE)
    assert whys(book(verdicts=(bad,))) == ["The control texts fail. "]
    groups = withheld_groups(with_values({AGGREGATE: None}))
    assert [group.text for group in groups] == [
        "Any ranking of the agents, or a first rank, on the overall score.",
        "That the agents of ten pairs score alike on the overall score.",
    ]
    assert all(("not measurable: one judge family, needs two", True) in group.why for group in groups)


# --- other rules ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fragility", "text"), [
    ({"a": "headline"}, "Holds: a"), ({"a": "qualified", "b": "headline"}, "Holds: b. Only with its condition: a"),
    ({"a": "no-claim", "b": "no-claim"}, "Not supported: a and b"),
])  # fmt: skip
def test_a_card_names_the_rules_under_which_its_claim_holds(fragility, text):
    claim = replace(realistic().verdicts[0], publication_level="headline", fragility=fragility)
    ((_, card),) = pages_of.cards(book(verdicts=(claim,)))
    assert plain(dict(card.facts)["Other rules"]) == text


def rules_table(*verdicts):
    (table,) = (one for one in pages_of.rules_section(book(verdicts=verdicts)).blocks if isinstance(one, Table))
    return table


def test_fragility_counts_what_moves():
    verdicts = realistic().verdicts
    assert pages_of.rules_section(book(verdicts=tuple(replace(v, fragility={}) for v in verdicts))) is None
    assert pages_of.rules_section(book()).lead == (
        "Five verdicts of 105 would change under any one of three other rules, which the plan did not lock."
    )
    table = rules_table(*verdicts)
    assert table.columns[2:] == (
        "Kappa cut-offs 0.5 and 0.25", "Lower bound of kappa", "A test with each pair’s own variance",
    )  # fmt: skip
    assert rows(table)[-1][2:] == ("all hold", "5 lower", "all hold")
    assert all(row[1] != "Not supported" for row in rows(table)[:-1])
    raised = [replace(v, fragility={"softer": "qualified"} if v.publication_level == "no-claim" else {})
              for v in verdicts]  # fmt: skip
    (only,) = rows(rules_table(*raised))
    assert only[2:] == ("79 higher",), "an unsupported claim is not named"


def test_fragility_takes_whatever_rules_a_verdict_was_tried_under():
    first, second = [v for v in realistic().verdicts if v.publication_level == "headline"][:2]
    grid = rules_table(
        replace(first, fragility={"source: sign flip": "headline", "half-even rounding": "no-claim"}),
        replace(second, fragility={"a rule of tomorrow": "headline"}),
    )
    assert grid.columns[2:] == ("A rule of tomorrow", "Halves rounded to even", "ValueBlindBench’s sign flip with Holm")
    assert [row[2:] for row in rows(grid)] == [
        ("not tried", "Not supported", "holds"),
        ("holds", "not tried", "not tried"),
        ("all hold", "1 lower", "all hold"),
    ]


def test_a_rule_that_cannot_reject_is_not_counted_and_says_why():
    """With five clusters a sign flip has a p of .0625 or more: it would change every verdict and says nothing."""
    found = tuple(
        replace(m, detail=m.detail | {"p_sign_flip": 2.0**-4, "clusters": 5}) if m.name == "contrast" else m
        for m in realistic().measurements
    )
    assert notes(pages_of.rules_section(book(measurements=found)))[0] == (
        "Not counted: ValueBlindBench’s sign flip with Holm. With five clusters this test cannot reject: p = .062 at "
        "least, after correction over ten pairs p = .625; .05 needed."
    )
    flipped = tuple(
        replace(v, fragility=v.fragility | {"source: sign flip": v.publication_level}) for v in realistic().verdicts
    )
    assert notes(pages_of.rules_section(book(verdicts=flipped))) == []


# --- board ----------------------------------------------------------------------------------------------------------


def test_agents_that_are_all_ranked_have_scores_of_their_own():
    levels = {"Marten": 4.3, "Otter": 4.0, "Badger": 3.7, "Weasel": 3.4, "Stoat": 3.1}
    found = runs.agents_measured(realistic().study, levels, AGGREGATE, "none")
    claims = runs.verdicts(levels, {AGGREGATE: 0.6}, bent="none")
    made = pages_of.board_rows(book(measurements=tuple(found), verdicts=tuple(claims)))
    assert [(names[0][0], tier.rank, tier.ranked, score) for tier, names, score, *_ in made] == [
        (agent, str(at), True, f"{level:.2f}") for at, (agent, level) in enumerate(levels.items(), 1)
    ]
    assert {why for *_, why in made} == {"Ranked by 4 supported rankings"}


def test_a_score_without_interval_and_a_rank_without_a_score_say_so():
    bare = tuple(replace(m, low=None, high=None, level=None) for m in realistic().measurements)
    (_, _, *first, _), (_, _, *rest, _) = pages_of.board_rows(book(measurements=bare))
    assert first == ["4.31", "(no interval)"]
    assert rest[0] is None, "points without intervals would show the differences"
    found = tuple(m for m in realistic().measurements if m.name != "score.effect")
    assert [score for _, _, score, *_ in pages_of.board_rows(book(measurements=found))] == ["not measured", None]


# --- evidence -------------------------------------------------------------------------------------------------------


def test_numbers_are_shown_as_written():
    for value, unit, text in (
        (4.25, "percent", "4.25\u00a0%"), (-3.0, "bps", "−3 bps"), (1e20, "none", "1e+20"), (2.0, "<b>", "2 <b>"),
        (-41200.0, "usd", "−41,200 USD"), (18.4, "price", "18.4"),
    ):  # fmt: skip
        assert stated_number(value, unit) == text


def test_the_ledger_is_in_order_of_time_and_knows_its_agents():
    found = fact_check_rows(book())
    assert [str(row.cells[1]) for row in found[:3]] == ["rec-00000", "rec-00000", "rec-00001"]
    assert found[0].cells[0] == "Badger"
    assert {row.cells[0] for row in fact_check_rows(book(decisions=()))} == {"unknown"}
    item = replace(realistic().evidence[0], facts=("a", "b", "c", "d"), rule="")
    (row,) = fact_check_rows(book(evidence=(item,)))
    assert str(row.cells[4]).endswith(": a, b and 2 more")


def test_a_row_shows_its_number_in_its_sentence():
    text = "Gold rose. Cash is 500, so 20 units fit in it. I wait."
    first = replace(realistic().decisions[0], rationales=(Rationale(text=text, kind="summary"),))
    more = {"decision": first.record_id, "start": text.index("20"), "quote": "20", "state": "in_context"}
    index = book(decisions=(first,), evidence=(replace(realistic().evidence[0], **more),))
    (row,) = fact_check_rows(index)
    assert row.cells[2] == ("“Cash is 500, so ", "20", " units fit in it.”")
    assert plain(row.cells[5]) == "in the context"
    (page,) = fact_check_pages([row])
    assert "Cash is 500, so " in str(page.blocks)
    assert "100\u00a0% are printed there without an established subject" in evidence_section(index).lead


def test_states_of_older_tables_are_shown_where_they_are_and_measured_shares_win_over_counted_rows():
    old = book(evidence=tuple(replace(one, state="not_verifiable") for one in realistic().evidence))
    before, now = evidence_section(old), evidence_section(book())
    assert "100\u00a0% were not found" in before.lead
    assert "not verifiable" in str(before.blocks)
    assert "not verifiable" not in str(now.blocks)
    share = runs.measured("evidence.share", {"state": "contradicted"}, 0.33, n=2400)
    assert "33\u00a0% contradict it" in evidence_section(also(share)).lead


def test_side_measures_are_said_in_words():
    names = ("evidence.chance_corrected", "evidence.no_number_share", "forecast.mismatch")

    def said(value, n=48, only=names, **more):
        found = tuple(runs.measured(name, {}, value, n=n, **more) for name in only)
        kept = tuple(item for item in realistic().evidence if item.state != "contradicted")
        return evidence_section(book(measurements=found, evidence=kept))

    undefined = said(None, 0, state="undefined: no numbers")
    assert " ".join(notes(undefined)).count("not defined: no numbers") == 3
    assert "every number." in notes(said(0.4, only=names[:1]))[0]
    none = said(0.0, only=names[1:])
    assert none.lead.endswith("none contradicts it.")
    assert "Each of 48 records holds at least one number." in notes(none)
    assert "None of 48 stated portfolio forecasts differs from the weighted sum of its own parts." in notes(none)
    wanted = "19\u00a0% of 270 stated portfolio forecasts differ from the weighted sum of their own parts."
    assert wanted in notes(said(0.19, 270, names[2:]))


def test_pages_are_full_but_never_over_their_limit():
    found = fact_check_rows(book())[:50]
    limit = 3 * found[0].size + 40
    parts = paginate(found, limit)
    assert tuple(row for part in parts for row in part) == found
    assert all(sum(row.size for row in part) <= limit for part in parts)
    assert paginate([], 10) == ((),)
