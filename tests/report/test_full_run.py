"""A run with every experiment: the claim map, the cards, the sections, and that nothing unsupported is in them."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import assay_runs as runs
import full_runs
import page_words
import pytest
from page_words import every, pages, words
from read_blocks import blocks_of, facts, notes, rows, tables
from read_blocks import words as said_by

from assaymark.claims import certificate_name, kind_of
from assaymark.records import AGGREGATE, StabilityFinding
from assaymark.report import (
    ClaimQuote,
    Figure,
    Items,
    Linked,
    RunIndex,
    Table,
    measurement_links,
    plain,
    render_pages,
    study_levels,
    study_measurements,
    withheld_groups,
)  # fmt: skip
from assaymark.report import study as pages_of

full = cache(full_runs.full)
PARTS = ("cell.", "rank.", "single.", "probe.", "anchor.", "contamination.", "style.", "terse.")


def book(run=None, **more) -> RunIndex:
    """The index of a run, of the full one by default, with other fields."""
    return RunIndex.of(replace(run or full(), **more))


def changed(change, run=None) -> RunIndex:
    """The index of a run with every measurement as ``change`` makes it; without those that it makes None."""
    run = run or full()
    return book(run, measurements=tuple(filter(None, map(change, run.measurements))))


def section(name: str, page: str, anchor: str) -> str:
    return page_words.section(pages(name)[page], anchor)


def stability(index):
    return pages_of.stability_section(index, pages_of.holdout_group(index))


def views(index) -> str:
    """The claim map and what the sections answer."""
    names = ("ranks", "controls", "single", "anchor", "contamination", "style")
    sections = [stability, *(getattr(pages_of, f"{name}_section") for name in names)]
    return " ".join([said_by(pages_of.map_page(index, {})), *(said_by(make(index)) for make in sections)])


# --- claim map ------------------------------------------------------------------------------------------------------


def rows_of(index):
    """The test, the result and the conclusion of each experiment, by the name of its row."""
    (table,) = (one for one in pages_of.map_page(index, {}).blocks if isinstance(one, Table))
    return {plain(line.cells[0][0]): (line, *map(plain, line.cells[1:])) for line in table.lines}


FOUND = (
    ("Overall κ gate", "κ 0.64 (0.56 to 0.71), bootstrap 0.60 to 0.68", "Enough for claims on the overall score."),
    ("Per-dimension gate", "limits κ 0.23 (0.15 to 0.30), bootstrap 0.19 to 0.27", "No headline on limits."),
    ("Ranking procedure", "7 of 10 pairs significant at .04", "Pairs: 4 ordered and 6 not resolved."),
    ("Leave-one-family-out", "judge family quay ρ 0.30", "4 of 7 significant pairs hold and 3 reverse without one."),
    ("Own-family judges", "north-1 0.31 (0.21 to 0.41)", "0 of 7 significant pairs rest on it."),
    ("Equal length", "0.04 points a doubling", "7 of 7 significant pairs remain at equal length."),
    ("Dimensions told apart", "risk fit 0.97, sizing 0.77", "1 of 2 dimensions told apart."),
    ("Other judges", "0 of 7 significant pairs hold", "names these judges."),
    ("Clusters in time", "lag 1 −0.21, lag 2 0.08, lag 3 0.02, lag 4 −0.11", "taken as independent."),
    ("Rank intervals and bootstrap ranks", "Marten rank 1 in 100 % of all 126 resamples", "Marten ranks first"),
    ("Single-judge baseline", "ρ 0.20 to 0.80", "the panel does not find (21 in all)"),
    ("Cell A", "Panel mean 1.44 against honest 4.19", "does not simply reward length and confidence"),
    ("Cell B", "Panel mean 3.97", "No claim about this cell is supported."),
    ("Other cells", "Fact flip: −0.59 (−0.71 to −0.47), noticed", "A changed number is noticed."),
    ("Self-preference on control texts", "A +0.04 points (judge family auditor)", "No cell moves by 0.3 or more"),
    ("Rubric wording", "Limits −0.42 (−0.51 to −0.33) points", "Limits: the score depends on how its anchors"),
    ("Held-out judge", "3 pairs judged", "None of 3 claims is supported."),
    ("Repetition stability", "strand-2 0.987", "Averaging trials clears the gate of 0.90."),
    ("Contamination probe", "p = .860", "bounds contamination, it does not exclude it"),
    ("Terse tail", "Stoat 62 %", "Every contrast with Stoat is sensitive to style."),
    ("Effective number of judges", "2.1 of 3; mean correlation of their errors 0.21", "about 2.1 independent judges"),
)


def test_the_map_says_what_was_found_and_what_that_supports():
    found = rows_of(book())
    assert list(found) == [name for name, _, _ in FOUND]
    for name, result, conclusion in FOUND:
        line, _, said, follows = found[name]
        assert (line.style, result in said.replace("\u00a0", " "), conclusion in follows) == ("", True, True), name
        assert name == "Ranking procedure" or re.search(r"\bn = \d|resamples of \d", said)
    page = pages("full")["claim-map.html"]
    leads = re.findall(r"<tr[^>]*><th scope=\"row\">(.*?)</th>", page.split("</table>")[0], flags=re.S)
    assert [len(re.findall("<a ", row)) for row in leads] == [2] * 21, "to a section and to a measurement"
    assert all("claim-map.html" in page for path, page in pages("full").items() if path.endswith(".html"))


def test_what_was_not_run_says_why_it_matters():
    index = book(runs.minimal())
    found = list(rows_of(index).values())
    assert {result for line, _, result, _ in found if line.style} >= {"Not run"}
    assert [sum(not line.style for line, *_ in found), len(found)] == [1, 21]
    assert all(follows.endswith(".") for *_, follows in found)
    assert pages_of.map_page(index, {}).lead == "One of 21 experiments were run. No claim was decided."


def test_supported_claims_are_counted():
    none, some = ([v for v in full().verdicts if v.publication_level == level] for level in ("no-claim", "headline"))
    assert [pages_of.supported_words(found) for found in ((), none[:2], some[:3])] == [
        "No claim was decided.", "None of 2 claims is supported.", "Of 3 claims, 3 supported.",
    ]  # fmt: skip


@pytest.mark.parametrize(("outcome", "said"), [
    ("verbosity-bias", "sensitive to style"), ("terse-favoured", "sensitive to style"),
    ("inconclusive", "Neither substance nor a bias"), ("failed", "contaminated"), ("another", "came to no outcome"),
])  # fmt: skip
def test_each_outcome_of_a_cell_has_its_words(outcome, said):
    index = changed(
        lambda m: replace(m, detail={**m.detail, "outcome": outcome}) if m.id == "cell.gate[cell=cell_a]" else m
    )
    assert said in rows_of(index)["Cell A"][-1]


def test_a_halo_names_the_cell_that_is_scored_without_its_family():
    detail = {"family": "north", "triggered": True}
    index = changed(lambda m: replace(m, value=0.4, detail=detail) if m.name == "cell.halo" else m)
    assert "the score without that family is primary" in rows_of(index)["Self-preference on control texts"][-1]
    assert "from judge family north, left out" in said_by(pages_of.controls_section(index))


# --- nothing unsupported --------------------------------------------------------------------------------------------


def test_shares_of_agents_that_share_a_tier_are_nowhere():
    part = section("full", "agents.html", "ranks")
    assert "100 %" in words(part)
    assert not re.search(r"\b(33|89|11|50) %", words(part))
    named = re.findall(r'<th scope="row">(\w+)</th>', part)
    assert named == [*sorted(runs.LEVELS), "Marten", "Badger", "Otter", "Stoat", "Weasel"]
    assert not re.search(r"\d %", words(section("halted", "agents.html", "ranks")))


def test_what_a_control_shows_is_never_withheld():
    """It is about the judges: number and outcome stand also where no claim about the cell is supported."""
    text = words(section("full", "controls.html", "controls"))
    outcome = "inconclusive without judge family quay; with all judges substance"
    assert f"−0.22 (−0.34 to −0.10) adjusted p = .160 {outcome} 0.55" in text
    assert f"Cell B depends on the judges: {outcome}. No claim about Cell B is supported." in text
    drops = text.split("Number of the rule and outcome without each judge family")[1]
    without = " ".join(f"without judge family {name}" for name in ("north", "quay", "strand"))
    assert f"Control All judges {without}" in drops
    assert re.search(r"Cell B: terse and correct −0\.22 \(−0\.34 to −0\.10\), substance .* inconclusive ", drops)
    assert "Cell B minus cell A: 2.53 (2.40 to 2.66) points." in text


@pytest.mark.parametrize(("with_all", "without", "said"), [
    ("passed", "passed", "Cell A and "),
    ("passed", "failed", "Cell A depends on the judges: failed without judge family quay; with all judges passed."),
    ("failed", "passed", "Cell A depends on the judges: failed; passed without judge family quay."),
])  # fmt: skip
def test_nothing_reads_passed_where_one_judge_family_makes_it_pass(with_all, without, said):
    def other(m):
        outcome = with_all if m.name == "cell.gate" else without if m.labels.get("dropped") == "quay" else with_all
        mine = m.name in ("cell.gate", "cell.drop") and m.labels["cell"] == "cell_a"
        kept = m.name not in ("cell.gate", "cell.drop", "cell.score") or m.labels["cell"] in ("cell_a", "fact_flip")
        return (replace(m, detail={**m.detail, "outcome": outcome}) if mine else m) if kept else None

    index = changed(other)
    assert said in pages_of.controls_section(index).lead
    claim = next(v for v in full().verdicts if v.publication_level == "headline" and len(v.claim.subjects) == 2)
    text = next(one.text for one in pages_of.checks_of(index, claim)[0] if one.name == "Control texts")
    assert claim.adversarial_status == "passed"
    assert text.startswith("passed; ") == (with_all == without)
    number = next(m for m in index.run.measurements if m.id == "cell.gate[cell=cell_a]").value
    assert f"Cell A {number:+.2f}".replace("-", "−") in text, "the number stands with the status"


def test_the_held_out_judge_is_quoted_without_a_side_or_a_size_unless_the_order_is_supported():
    text = words(section("full", "stability.html", "outside"))
    assert not re.search(r"[+−]\d|0\.19", text)
    assert "Stoat and Weasel not supported a difference, p = .300" in text
    assert "finds no difference in 2 of them (.05 needed)" in text
    assert "excludes" not in text, "that needs the interval, which is not shown"
    labels = {"dimension": AGGREGATE, "high": "Badger", "low": "Marten"}
    item = runs.measured("probe.contrast", labels, -0.2, low=-0.3, high=-0.1, n=240)
    (row,) = rows(tables(pages_of.holdout_group(book(measurements=(item,))))["Score"])
    assert row[1:4] == ("Badger and Marten", "+0.20 points (0.10 to 0.30)", "a difference")
    assert row[-1] == "Marten above Badger"


def test_only_supported_orders_have_a_mark():
    view = pages_of.order_grid_section(book())
    assert view.lead == "28 rankings of 70 supported."
    table = tables(view)["Pair"]
    assert all("Marten" in row[0] for row in rows(table))
    limits = dict(zip(table.columns, rows(table)[0], strict=True))["Limits"]
    assert limits == "Marten above Badger (only with its condition)"
    drawn = [one.wide for one in blocks_of(view) if isinstance(one, Figure)]
    assert drawn[0].count(">S</text>") == 4
    assert 'class="novoid"' in drawn[0]
    assert not any(char.isdigit() for row in rows(table) for cell in row for char in cell)
    halted = pages_of.order_grid_section(book(full_runs.halted()))
    assert not [one for one in blocks_of(halted) if isinstance(one, Table | Figure)]
    assert notes(halted)[0].startswith("No ranking is supported on the overall score, risk fit, ")


def test_what_a_judge_alone_finds_is_counted_and_not_named():
    text = words(section("full", "agreement.html", "single"))
    assert ("27 of 60" in text, [agent for agent in runs.LEVELS if agent in text]) == (True, [])


# --- kinds ----------------------------------------------------------------------------------------------------------


def test_two_agents_within_the_margin_are_no_order_and_a_cell_is_no_agent():
    close = runs.within("Otter", "Badger")
    cell = replace(close, id="cell[cell=cell_a]", scope="adversarial-cell", subjects=("cell_a",), statement="Cell.")
    claims = (
        runs.verdict(close, "qualified", "publish", "stable", "passed", p=0.01, p_adjusted=0.02),
        runs.verdict(cell, "headline", "publish", "stable", "passed"),
    )
    index = book(runs.realistic(), verdicts=claims, decisions=())
    assert "cell_a" not in index.agents
    assert index.status(AGGREGATE) == "publish"
    assert [(tier.rank, tier.ranked) for tier, *_ in pages_of.board_rows(index)] == [("1 to 5", False)]
    assert [sum(isinstance(one, ClaimQuote) for one in view.claims) for view in study_levels(index)] == [1, 1, 0]
    kept = book(runs.realistic(), verdicts=tuple(replace(v, publication_level="no-claim") for v in claims))
    assert [group.text for group in withheld_groups(kept)] == [
        "That Badger and Otter score alike on the overall score.",
        "How the panel scores confident but wrong rationales.",
    ]


# --- cards ----------------------------------------------------------------------------------------------------------

EFFECTS = {"Stops here.": "stops", "Condition.": "condition"}


@cache
def all_cards():
    index = book()
    return dict(pages_of.cards(replace(index, links=measurement_links({"m.html": study_measurements(index)}))))


def only_card(verdict, run=None):
    """The card of a run with one verdict."""
    ((_, card),) = pages_of.cards(book(run, verdicts=(verdict,)))
    return card


def checks_of(card):
    """The checks of a card by name, each with its effect."""
    found = {}
    for line in card.blocks[-1 if isinstance(card.blocks[-1], Items) else -2].items:
        if isinstance(line, tuple):
            found[line[0].removesuffix(": ")] = (str(line[1]), EFFECTS[line[3]] if len(line) > 2 else "")
    return found


def linked_in(value):
    """Every link in a line."""
    if isinstance(value, tuple):
        return [found for one in value for found in linked_in(one)]
    return [value] if isinstance(value, Linked) else []


def verdict_of(claim):
    return next(v for v in full().verdicts if v.claim.id == claim.id)


def test_a_card_has_the_checks_the_rules_and_the_certificate():
    claim = runs.above("Marten", "Otter", "limits")
    card = all_cards()[claim.id]
    assert card.about == "ranking of two agents, Limits"
    assert checks_of(card) == {
        "Agreement": ("κ 0.23; 0.40 needed", "condition"),
        "Difference": (
            "+0.25 points (0.18 to 0.32) over 250 common cycles in 5 clusters, adjusted p < .001; .01 needed", "",
        ),
        "Without any one judge family": ("holds without any one of three judge families", ""),
        "Own family": (
            "also with judges standing aside for agents of their own makers: +0.24 points (0.18 to 0.32)", "",
        ),
        "Length": (
            ("also at equal length: Marten writes 1.4 times as much as Otter, +0.04 points a doubling; at equal length"
            " adjusted p = .012, .01 needed"),
            "",
        ),
        "Dimension": ("told apart from the overall impression", ""),
        "Clusters": ("5, taken as independent", ""),
        "Control texts": (
            ("depends on the judges: Cell B inconclusive without judge family quay; Cell A −2.61 (−2.73 to −2.49),"
            " passed; Cell B −0.22 (−0.34 to −0.10), substance; Paraphrase −0.04 (−0.16 to 0.08), invariant; Fact flip"
            " −0.59 (−0.71 to −0.47), noticed"),
            "",
        ),
        "Judges’ own tests": ("no limit missed", ""),
        "People": ("not graded by people", ""),
        "Preregistered": ("yes", ""),
        "Other judges": ("not shown for other judges: p = .210; .05 needed", ""),
    }  # fmt: skip
    conditions = next(one for one in card.blocks if isinstance(one, Items))
    assert conditions.items == ("Graded by rule-based stand-ins.", runs.WEAK)
    amended = "Made under a plan amended after its lock: gates.publish."
    assert amended in card.blocks[0].copy
    assert amended in said_by(card.blocks)
    about = {term: plain(value) for term, value in card.facts}
    assert re.match(r"Holds: .*\. Not supported: lower bound of kappa$", about["Other rules"])
    assert about["Certificate"] == f"certificates/{certificate_name(verdict_of(claim))}"
    assert "Paired difference: " in about["Rests on"]
    assert "Agreement, mean pairwise κ: " in about["Rests on"]
    assert all(one.href.startswith("m.html#m") for one in linked_in(dict(card.facts)["Rests on"]))


def test_an_unsupported_card_stops_at_its_check_and_names_no_order():
    pair = all_cards()[runs.above("Otter", "Badger", AGGREGATE).id]
    assert "certificates/above" not in plain(dict(pair.facts)["Certificate"])
    assert not any(isinstance(one, ClaimQuote) for one in pair.blocks)
    assert said_by(pair.blocks).startswith("Any ranking of Badger and Otter on the overall score.")
    assert checks_of(pair) == {
        "Agreement": ("κ 0.51 in prose; 0.40 needed", ""),
        "Difference": ("adjusted p = .410; .04 needed", "stops"),
    }
    assert "Not reached: without any one judge family, own family, length" in said_by(pair.blocks)
    assert "Otter and Badger" not in plain(dict(pair.facts)["Rests on"])
    turning = checks_of(all_cards()[runs.above("Otter", "Stoat", AGGREGATE).id])
    assert turning["Without any one judge family"] == ("reverses without judge family quay", "stops")
    assert "points" not in str(turning)


def test_the_name_of_a_certificate_within_the_margin_is_not_shown():
    """It has the higher of the two first."""
    claim = runs.within("Otter", "Badger")
    card, verdict = all_cards()[claim.id], verdict_of(claim)
    assert verdict.publication_level == "headline"
    assert dict(card.facts)["Certificate"][2].startswith("; its name has the direction in it")
    assert "Otter" not in card.id
    assert only_card(replace(verdict, claim=runs.within("Badger", "Otter"))).id == card.id


@pytest.mark.parametrize(
    ("fields", "name", "text"),
    [
        ({"own_family": "rests-on-own-family"}, "Own family",
         "rests on judges from the agents’ own makers; without them: adjusted p = .210; .05 needed"),
        ({"own_family": "turns-without-own-family"}, "Own family",
         "reverses without the judges from the agents’ own makers"),
        ({"stability": StabilityFinding(state="rests-on", families=("quay",))}, "Without any one judge family",
         "needs judge family quay to be seen"),
    ],
)  # fmt: skip
def test_each_check_that_stops_has_its_words(fields, name, text):
    cap = runs.Cap(field={"Own family": "own_family"}.get(name, "stability"), level="no-claim")
    more = {"stability": StabilityFinding(state="stable"), "p": 0.0001, "p_adjusted": 0.21, **fields}
    made = runs.verdict(runs.above("Otter", "Stoat", AGGREGATE), "no-claim", "publish", "stable", "passed", **more)
    found = checks_of(only_card(replace(made, caps=(cap,))))
    assert found[name] == (text, "stops")
    assert list(found)[-1] == name


def test_a_pair_that_cannot_be_tested_says_why_and_a_study_of_such_pairs_says_so_once():
    run = runs.realistic()
    state = "cannot be tested (2 common clusters; 3 are needed, 5 or more to have a chance)"
    bare = {"value": None, "low": None, "high": None, "level": None, "state": state, "detail": {"clusters": 2}}
    claims = [
        runs.verdict(runs.above(*v.claim.subjects, AGGREGATE), "no-claim", "publish", "not tested", "passed",
                     p=1.0, p_adjusted=1.0, pair_state="cannot-be-tested", rules=runs.RULES)
        for v in run.verdicts if kind_of(v.claim) == "pair" and v.claim.dimension == AGGREGATE
    ]  # fmt: skip
    found = tuple(replace(m, **bare) if m.name == "contrast" else m for m in run.measurements)
    few = replace(run, measurements=found, verdicts=tuple(claims))
    assert checks_of(only_card(claims[0], few))["Difference"] == (state, "stops")
    made = render_pages(few)
    assert words(made["index.html"]).count("This study cannot rank agents: 2 clusters.") == 1
    assert "What would change under another rule?" not in every(made)
    (group,) = withheld_groups(RunIndex.of(few))
    assert ("".join(text for text, _ in group.why), group.covers) == (f"Ten pairs {state}. ", 10)


@pytest.mark.parametrize(
    ("order", "flagged", "check", "part", "conclusion"),
    [
        ("exchangeable", False, "5, taken as independent", "not shown to follow each other", "taken as independent."),
        ("exchangeable", True, "5, taken as independent, but they follow each other in time", "follow each other",
         "declared independent, so rankings are qualified at most."),
        ("consecutive", True, "5 that follow each other in time, worth about 3", "follow each other",
         "counts them as fewer clusters."),
    ],
)  # fmt: skip
def test_clusters_in_time_are_said_with_their_lags(order, flagged, check, part, conclusion):
    def item(m):
        if m.name == "order.autocorrelation":
            return replace(m, detail={**m.detail, "order": order, "flagged": flagged})
        return replace(m, detail={**m.detail, "effective": 3.2}) if m.name == "contrast" else m

    index = changed(item)
    claim = verdict_of(runs.above("Marten", "Otter", AGGREGATE))
    assert checks_of(only_card(claim, index.run))["Clusters"][0] == check
    explained = blocks_of(pages_of.explanations_section(index))
    (clusters,) = (one for one in explained if "Lag 1" in getattr(one, "columns", ()))
    lags = ("Overall score", "−0.21", "+0.08", "+0.02", "−0.11", f"{part} (above 0.27 needed)")
    assert rows(clusters)[0] == lags
    assert conclusion in rows_of(index)["Clusters in time"][-1]


def test_a_limit_of_another_kind_has_a_check_of_its_own_and_a_lifted_one_has_no_effect():
    more, lifted = (
        runs.Cap(field="missing", level="qualified"), runs.Cap(field="length", level="qualified", lifted=True),
    )  # fmt: skip
    claim = replace(verdict_of(runs.above("Marten", "Otter", AGGREGATE)), caps=(more, lifted),
                    publication_level="qualified", human_anchor="confirms", length="may-be-length")  # fmt: skip
    found = checks_of(only_card(claim))
    assert found["Missing"] == ("limits this claim", "condition")
    assert found["Length"][1] == ""
    assert found["People"] == ("people’s grades confirm it", "")


def test_an_unsupported_first_rank_does_not_show_who_leads():
    firsts = [
        replace(
            runs.verdict(runs.first(agent, "sizing", 5), "no-claim", "publish", standing, "passed", p=p, p_adjusted=p),
            fragility={"softer": level}, stability=stability,
        )
        for agent, standing, level, p, stability in (
            ("Otter", "judge-dependent", "qualified", 0.001, StabilityFinding(state="rests-on", families=("quay",))),
            ("Badger", "tie-class", "no-claim", 1.0, None),
        )
    ]  # fmt: skip
    made = [card for _, card in pages_of.cards(book(runs.realistic(), verdicts=tuple(firsts)))]
    assert len({str(checks_of(card)) for card in made}) == 1
    for card in made:
        assert checks_of(card)["Difference"] == ("no supported lead over every other agent", "stops")
        assert dict(card.facts)["Other rules"] == "Not shown: it would show who leads."


def test_a_study_that_was_not_preregistered_says_so_first():
    run = runs.realistic()
    seen = replace(run, verdicts=tuple(replace(v, preregistered=False) for v in run.verdicts))
    said = "Not preregistered. The scores had been seen when the plan was locked"
    assert said in words(render_pages(seen)["index.html"])
    assert "Not preregistered" not in words(pages("realistic")["index.html"])


def test_long_lists_of_measurements_are_counted():
    ids = tuple(m.id for m in full().measurements if m.name in ("lofo.effect", "single.level"))
    claim = next(v for v in full().verdicts if v.publication_level == "headline")
    index = book(verdicts=(replace(claim, measurements=ids),))
    ((_, card),) = pages_of.cards(replace(index, links=measurement_links({"m.html": study_measurements(index)})))
    rests = dict(card.facts)["Rests on"]
    assert len(linked_in(rests)) == 12
    assert f" and {len(ids) - 12} more" in plain(rests)
    assert plain(rests).endswith(f" {len(ids)} in all.")


# --- sections on the edges ------------------------------------------------------------------------------------------


def test_nothing_measured_is_said_in_every_section():
    index = book(runs.realistic(), measurements=(), verdicts=())
    for name, said in (
        ("ranks", "No ranks follow: no ranking was tested."), ("controls", "No control texts were graded"),
        ("single", "Not measured: no judge was analysed alone."), ("anchor", "Not run"), ("contamination", "Not run"),
        ("style", "No break by length was looked for"), ("order_grid", "No difference between two agents was tested."),
        ("explanations", "No difference on the overall score is significant, so there is none to explain."),
    ):  # fmt: skip
        assert getattr(pages_of, f"{name}_section")(index).lead.startswith(said)
    assert notes(pages_of.holdout_group(index))[0].startswith("No held-out judge was named in the plan")
    view = pages_of.explanations_section(index)
    assert (tables(view), notes(view)) == ({}, ["Smallest detectable difference: not measured."])


def test_undefined_measurements_give_their_state():
    index = changed(lambda m: replace(m, value=None, low=None, high=None, state="undefined: one cluster"))
    made = render_pages(index.run)
    assert words(made["claim-map.html"]).count("not defined: one cluster") >= 5
    for page in made.values():
        assert " nan" not in words(page).lower()
        assert "None" not in words(page)


@pytest.mark.parametrize("name", PARTS)
def test_each_measurement_and_its_details_may_be_absent(name):
    assert "Not run" in views(changed(lambda m: None if m.name.startswith(name) else m)) or name == "style."
    bare = changed(lambda m: replace(m, detail={}) if m.name.startswith(name) else m)
    assert not re.search(r"\bNone\b(?! of| finds)|\bnan\b", views(bare))


def test_the_held_out_judge_that_was_not_needed_says_so():
    kept = tuple(m for m in full().measurements if not m.name.startswith("probe."))
    state = runs.measured("probe.state", {}, None, n=0, state="not needed: no drop turns a pair")
    index = book(measurements=(*kept, state))
    view = pages_of.holdout_group(index)
    assert notes(view) == ["The held-out judge, tarn-1 (judge family tarn): not needed: no drop turns a pair."]
    assert tables(view) == {}
    assert rows_of(index)["Held-out judge"][-1] == "Why it matters: No drop turned a pair."


def test_the_plan_knows_the_held_out_judge_and_what_the_panel_is_worth():
    found = facts(pages_of.plan_section(book()))
    assert (found["Held-out judge"], found["Worth"]) == (
        "tarn-1 (judge family tarn) asked about three pairs", "2.1 independent judges their errors correlate at 0.21",
    )  # fmt: skip
    assert "0.21 points for a leader, 0.33 for a single pair" in found["Could detect"]


# --- structure ------------------------------------------------------------------------------------------------------


def test_the_numbers_of_a_figure_stand_in_its_table():
    for page, anchor in (("agents.html", "ranks"), ("controls.html", "controls")):
        part = section("full", page, anchor)
        table = words(" ".join(re.findall(r"<table.*?</table>", part, flags=re.S)))
        drawn = re.findall(r"<text[^>]*>([+−]?\d\.\d\d) \(", part)
        assert all(number in table for number in drawn)
        assert drawn or "100 %" in table
