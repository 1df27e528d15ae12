"""Sections on the edges: other panels, other intervals, other states."""

from __future__ import annotations

from dataclasses import replace

import assay_runs as runs
import pytest

from assaymark.claims import Rules, index
from assaymark.claims.verdicts import governing_agreement
from assaymark.protocol import Inference
from assaymark.records import AGGREGATE
from assaymark.report.agreement import agreement_view
from assaymark.report.board import board
from assaymark.report.book import Book
from assaymark.report.evidence import evidence_view, ledger_rows, written_number
from assaymark.report.fragility import fragility_view
from assaymark.report.levels import claim_view, level_views
from assaymark.report.paging import paged
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
    return Book.of(replace(run, measurements=tuple(found)))


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
    assert Book.of(replace(book.run, verdicts=())).status("sizing") == decided.status


def test_a_gate_is_never_named_with_a_kappa_that_does_not_decide():
    book = in_formats(0.66, {"v1": 0.31})
    view = agreement_view(book)
    (gate,) = [(row.gate, row.by) for row in view.rows if row.title == "Sizing"]
    assert gate == ("publish", "0.31 in v1")
    assert view.forest is not None
    for figure in (view.forest.wide, view.forest.narrow):
        assert "0.31 in v1" in figure
        assert "publish (0.31 in v1)</desc>" in figure
    assert "it decides" in view.forest.caption
    claim = next(v for v in book.run.verdicts if v.claim.dimension == "sizing")
    assert claim_view(book, claim).fields[0].text.endswith("(κ 0.31 in v1)")


def test_a_halt_names_the_format_that_decides():
    book = in_formats(0.66, {"v1": 0.1966})
    claims = [v for v in runs.verdicts(runs.LEVELS, {"sizing": 0.1}) if v.claim.dimension == "sizing"]
    (group,) = withheld_groups(Book.of(replace(book.run, verdicts=tuple(claims))))
    assert "".join(text for text, _ in group.why).startswith("Agreement there is κ 0.197 in v1: halt. ")


# --- stability ------------------------------------------------------------------------------------------------------


def test_stability_counts_the_families_that_matter():
    view = stability_view(Book.of(runs.realistic()))
    assert view.answer.startswith("For one of three families the rank correlation falls below 0.9")
    turned = {drop.family: drop.turned for drop in view.drops}
    assert turned["north"] == ()
    assert turned["quay"] == ()
    assert {drop.family: drop.caption for drop in view.drops} == {
        "north": "Without north: ρ 1.00. No pair turns round.",
        "quay": "Without quay: ρ 0.30 < 0.9. Three of ten pairs turn round.",
        "strand": "Without strand: ρ 1.00. No pair turns round.",
    }
    assert all("Marten 1" in drop.svg for drop in view.drops)
    assert not any(agent in drop.svg + drop.caption for drop in view.drops for agent in list(runs.LEVELS)[1:])


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
    turned = [*levels][::-1]
    other = [replace(m, detail={"order": turned}) if m.name == "lofo.rho" else m for m in found]
    caption = stability_view(Book.of(replace(book.run, measurements=tuple(other)))).drops[0].caption
    assert caption == (
        "Without north: ρ 1.00. Ten of ten pairs turn round: Badger and Marten; Badger and Otter; Badger and Stoat; "
        "Badger and Weasel; and six more pairs."
    )


def test_one_dropped_family_is_no_plural():
    run = runs.realistic()
    only = tuple(m for m in run.measurements if m.name != "lofo.rho" or m.labels["dropped"] == "quay")
    answer = stability_view(Book.of(replace(run, measurements=only))).answer
    assert answer.startswith("Without the one family the rank correlation falls below 0.9")


# --- levels ---------------------------------------------------------------------------------------------------------


def test_the_third_level_starts_on_the_first_screen_whatever_there_is():
    for run in (runs.realistic(), runs.large()):
        headline, qualified, _ = level_views(Book.of(run))
        assert 76 * len(headline.shown) + 102 * len(qualified.shown) <= 440


def test_rank_one_of_the_aggregate_opens_the_page():
    headline = level_views(Book.of(runs.realistic()))[0]
    assert headline.shown[0].quote == "Marten ranks first of the 5 agents on the panel’s aggregate score."
    assert headline.shown[1].quote == "Marten scores above Badger on the panel’s aggregate score."


def test_claims_stand_by_score_and_name_whatever_the_estimates_are():
    run = runs.realistic()
    other = tuple(
        replace(m, value=5 - m.value, low=None, high=None) if m.name == "score.effect" else m for m in run.measurements
    )
    plain, turned = (
        [[claim.quote for claim in (*view.shown, *view.more)] for view in level_views(Book.of(version))]
        for version in (run, replace(run, measurements=other))
    )
    assert plain == turned
    aggregate = [quote for quote in plain[0] if "aggregate" in quote]
    assert plain[0][: len(aggregate)] == aggregate
    pairs = [sorted(quote.split(" on ")[0].split(" scores above ")) for quote in aggregate if "above" in quote]
    assert pairs == sorted(pairs)


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


def test_a_tie_class_gives_its_p_and_the_level_that_it_misses():
    run = runs.realistic()
    pair = runs.verdict(runs.above("Otter", "Badger", AGGREGATE), "no-claim", "publish", "tie-class", "passed")

    def why(p, **inference):
        labels = {"dimension": AGGREGATE, "high": "Otter", "low": "Badger"}
        found = runs.measured("contrast", labels, 0.036, n=250, detail={"p_holm": p})
        plan = run.study.model_copy(update={"inference": Inference(**inference)})
        book = Book.of(replace(run, study=plan, verdicts=(pair,), measurements=(found,)))
        return "".join(text for text, _ in withheld_groups(book)[0].why)

    assert why(0.026) == "The pair forms a tie class: the gap is 0.04 points, adjusted p = .026, not below .025. "
    assert why(0.051, share_alpha=False).endswith("adjusted p = .051, not below .05. ")
    assert why(0.02).endswith("adjusted p = .020. ")


@pytest.mark.parametrize("status", ["judge-dependent", "stable"])
def test_one_judge_family_cannot_be_left_out(status):
    run = replace(runs.realistic(), study=runs.study((("solo", "only"), ("duo", "only"))))
    pair = runs.verdict(runs.above("Otter", "Badger", AGGREGATE), "no-claim", "halt", status, "passed")
    one = runs.verdict(runs.first("Otter", "sizing", 5), "no-claim", "publish", status, "passed")
    book = Book.of(replace(run, verdicts=(pair, one), measurements=()))
    for verdict in (pair, one):
        assert claim_view(book, verdict).fields[1].text == "not measurable: one judge family"
    if status == "judge-dependent":
        for group in withheld_groups(book):
            assert ("not measurable: one judge family", True) in group.why
            assert "judge-dependent" not in "".join(text for text, _ in group.why)


def test_the_leader_of_a_withheld_score_is_not_marked_by_its_stability():
    run = runs.withheld()
    book = Book.of(run)
    firsts = [v for v in book.on(AGGREGATE) if len(v.claim.subjects) == 1]
    assert len({v.stability_status for v in firsts}) == 2
    assert len({claim_view(book, v).fields for v in firsts}) == 1
    assert claim_view(book, firsts[0]).fields[1].text == "withheld"


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
    assert view.answer == (
        "Five verdicts of 105 would change under any one of three other rules, which the plan did not lock."
    )
    assert view.rules == ("t test over clusters", "Kappa cut-offs 0.5 and 0.25", "Lower bound of kappa")
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


def test_fragility_takes_whatever_rules_a_verdict_was_tried_under():
    run = runs.realistic()
    first, second = [v for v in run.verdicts if v.publication_level == "headline"][:2]
    claims = (
        replace(first, fragility={"cluster t": "headline", "half-even rounding": "no-claim"}),
        replace(second, fragility={"a rule of tomorrow": "headline"}),
    )
    view = fragility_view(Book.of(replace(run, verdicts=claims)))
    assert view.rules == ("A rule of tomorrow", "t test over clusters", "Halves rounded to even")
    assert [[cell.word for cell in row.cells] for row in view.rows] == [
        ["not tried", "holds", "No claim"],
        ["holds", "not tried", "not tried"],
    ]
    assert [row.holds for row in view.rows] == ["1 of 2 other rules", "1 of 1 other rule"]
    assert view.counts == ("all hold", "all hold", "1 lower")


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


def test_forecasts_that_do_not_add_up_are_many():
    found = (runs.measured("forecast.mismatch", {}, 0.19, n=270),)
    notes = evidence_view(Book.of(replace(runs.realistic(), measurements=found)), ()).notes
    wanted = "19\u00a0% of 270 stated portfolio forecasts differ from the weighted sum of their own parts."
    assert wanted in notes


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
