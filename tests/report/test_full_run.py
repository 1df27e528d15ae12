"""A run with every experiment: the claim map, the cards, the new sections, and that nothing withheld is in them."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from functools import cache

import assay_runs as runs
import full_runs
import pytest

from assaymark.claims import certificate_name
from assaymark.records import AGGREGATE, Claim
from assaymark.report import render_pages
from assaymark.report.board import board
from assaymark.report.book import Book
from assaymark.report.cards import cards
from assaymark.report.claim_map import claim_map, licence_words
from assaymark.report.controls import controls_view
from assaymark.report.gaps import gaps_view
from assaymark.report.kinds import cell_of, kind_of
from assaymark.report.levels import claim_view, level_views
from assaymark.report.measured import measured_links, measured_rows
from assaymark.report.outside import outside_view
from assaymark.report.probes import anchor_view, contamination_view
from assaymark.report.ranks import ranks_view
from assaymark.report.single import single_view
from assaymark.report.style import style_view
from assaymark.report.withheld import withheld_groups

VERDICT_PAGES = ("index.html", "claim-map.html", "claims.html", "claims-002.html")


@cache
def pages(name: str) -> dict[str, str]:
    return dict(render_pages(getattr(full_runs, name)()))


def words(page: str) -> str:
    page = re.sub(r"<(style|script)>.*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page))).replace("\u00a0", " ")


def section(name: str, page: str, anchor: str) -> str:
    return pages(name)[page].split(f'id="{anchor}"')[1].split("</section>")[0]


def views(run) -> str:
    """The claim map and what the sections answer."""
    book = Book.of(run)
    made = [claim_map(book, {}).rows]
    for view in (ranks_view, controls_view, single_view, outside_view, anchor_view, contamination_view, style_view):
        found = view(book)
        made.append((found.answer, getattr(found, "table", None) or "", getattr(found, "notes", ())))
    return str(made)


# --- claim map ------------------------------------------------------------------------------------------------------


def rows_of(book):
    return {row.experiment: row for row in claim_map(book, {}).rows}


@pytest.mark.parametrize(
    ("experiment", "result", "conclusion"),
    [
        ("Aggregate κ gate", "κ 0.64 (0.60 to 0.68), t 0.56 to 0.71", "Claims on the aggregate may be published."),
        ("Per-dimension gate", "limits κ 0.23 (0.19 to 0.27)", "No headline on limits."),
        (
            "Bootstrap rank distribution",
            "Marten in place 1 in 100 % of all 126 resamples",
            "Marten may be called first",
        ),
        ("LOFO ranking stability", "without quay ρ 0.30", "5 of 16 order claims on the aggregate are stable"),
        ("Single-judge baseline", "ρ 0.20 to 0.80", "does not authorise (21 in all)"),
        ("Cell A", "Panel mean 1.44 against honest 4.19", "does not simply reward length and confidence"),
        ("Cell B", "Withheld", "No claim about this cell may be made."),
        ("Other cells", "Fact flip: −0.59 (−0.71 to −0.47), 2.3 × MDE, noticed", "A changed number is noticed."),
        ("Halo", "Cell A +0.04 points (family auditor)", "No cell moves by 0.3 or more"),
        ("Anchor probe", "Limits −0.42 (−0.51 to −0.33) points", "Limits: the score depends on how its anchors"),
        ("Out-of-family probe", "3 pairs judged", "3 pairs: judge-dependent, and withheld."),
        ("Repetition stability", "strand-2 0.987", "Averaging trials clears the gate of 0.90."),
        ("Contamination probe", "p = .860", "bounds contamination, it does not exclude it"),
        ("Terse tail", "Stoat 62 %", "Every contrast with Stoat is sensitive to style."),
        (
            "Effective number of judges",
            "2.1 of 3; mean correlation of their errors 0.21",
            "about 2.1 independent judges",
        ),
    ],
)
def test_the_map_says_what_was_found_and_what_that_permits(experiment, result, conclusion):
    row = rows_of(Book.of(full_runs.full()))[experiment]
    assert row.ran
    assert result in row.result.replace("\u00a0", " ")
    assert conclusion in row.conclusion
    assert row.experiment == "Cell B" or re.search(r"\bn = \d|resamples of \d", row.result)


def test_what_was_not_run_says_why_it_matters():
    view = claim_map(Book.of(runs.minimal()), {})
    assert len(view.rows) == 15
    assert {row.result for row in view.rows if not row.ran} >= {"Not run"}
    assert sum(row.ran for row in view.rows) == 1
    assert all(row.conclusion.endswith(".") for row in view.rows)
    assert view.answer == "One of 15 experiments were run. No claim was put to the gates."


def test_every_row_leads_to_a_section_and_where_it_can_to_a_measurement():
    page = pages("full")["claim-map.html"]
    rows = re.findall(r"<tr[^>]*><th scope=\"row\">(.*?)</th>", page.split("</table>")[0], flags=re.S)
    assert len(rows) == 15
    assert all(len(re.findall("<a ", row)) == 2 for row in rows)


def test_the_map_is_in_the_navigation_of_every_page():
    assert all("claim-map.html" in page for page in pages("full").values())


def test_licences_are_counted():
    found = full_runs.full().verdicts
    assert licence_words(()) == "No claim was put to this gate."
    assert licence_words([v for v in found if v.publication_level == "no-claim"][:2]) == "None of 2 claims may be said."
    assert licence_words([v for v in found if v.publication_level == "headline"][:3]) == "Of 3 claims, 3 may be said."


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("verbosity-bias", "sensitive to style"),
        ("terse-favoured", "sensitive to style"),
        ("inconclusive", "Neither substance nor a bias"),
        ("failed", "contaminated"),
        ("another", "came to no outcome"),
    ],
)
def test_each_outcome_of_a_cell_has_its_words(outcome, said):
    run = full_runs.full()
    found = tuple(
        replace(m, detail={**m.detail, "outcome": outcome}) if m.id == "cell.gate[cell=cell_a]" else m
        for m in run.measurements
    )
    assert said in rows_of(Book.of(replace(run, measurements=found)))["Cell A"].conclusion


def test_a_halo_names_the_cell_that_is_scored_without_its_family():
    run = full_runs.full()
    found = tuple(
        replace(m, value=0.4, detail={"family": "north", "triggered": True}) if m.name == "cell.halo" else m
        for m in run.measurements
    )
    book = Book.of(replace(run, measurements=found))
    assert "the score without that family is primary" in rows_of(book)["Halo"].conclusion
    assert "north left out" in words(str(controls_view(book).table))


# --- nothing withheld -----------------------------------------------------------------------------------------------


def mirrored(run):
    """The run with every order turned round; what a page may show of a withheld run is the same."""
    ends = {"Marten": "Stoat", "Stoat": "Marten"}
    names = {}

    def item(m):
        labels = dict(m.labels)
        if "high" in labels:
            labels["high"], labels["low"] = labels["low"], labels["high"]
        if m.name in ("rank.first", "single.level"):
            labels["agent"] = ends.get(labels["agent"], labels["agent"])
        detail = dict(m.detail)
        if m.name == "lofo.rho":
            detail["order"] = detail["order"][::-1]
        new = replace(m, labels=labels, detail=detail)
        if m.name == "score.effect":
            new = replace(new, value=8 - m.value, low=8 - m.high, high=8 - m.low)
        names[m.id] = new.id
        return new

    def claim(v):
        subjects, dimension, kind = v.claim.subjects, v.claim.dimension, kind_of(v.claim)
        rests = tuple(names.get(name, name) for name in v.measurements)
        if kind == "above":
            return replace(v, claim=runs.above(*subjects[::-1], dimension), measurements=rests)
        if kind == "first":
            agent = ends.get(subjects[0], subjects[0])
            other = next(w for w in run.verdicts if w.claim.id == runs.first(agent, dimension, 5).id)
            leads = [name for name in v.measurements if name.startswith("lofo.effect")]
            rests = tuple(names.get(name, name) for name in (*other.measurements, *leads))
            return replace(v, claim=other.claim, measurements=rests)
        if kind == "ranking":
            return replace(v, claim=replace(v.claim, subjects=subjects[::-1]), measurements=rests)
        return replace(v, measurements=rests)

    return replace(run, measurements=tuple(map(item, run.measurements)), verdicts=tuple(map(claim, run.verdicts)))


def test_a_withheld_order_and_its_reverse_make_the_same_page():
    run = full_runs.halted()
    # The leader's own claim rests on more, as the rules have it: its card must not show that.
    led = tuple(
        replace(v, measurements=(*v.measurements, *(m.id for m in run.measurements if m.name == "lofo.effect")))
        if v.claim.subjects == ("Marten",)
        else v
        for v in run.verdicts
    )
    made = render_pages(mirrored(replace(run, verdicts=led)))
    assert {page: made[page] for page in VERDICT_PAGES} == {page: pages("halted")[page] for page in VERDICT_PAGES}


def test_shares_of_withheld_places_are_nowhere():
    text = words(section("full", "index.html", "ranks"))
    assert "100 %" in text
    assert not re.search(r"\b(33|89|11|50) %", text)
    rows = re.findall(r'<th scope="row">(\w+)</th>', section("full", "index.html", "ranks"))
    assert rows == ["Marten", "Badger", "Otter", "Stoat", "Weasel"]
    assert not re.search(r"\d %", words(section("halted", "index.html", "ranks")))


def test_a_withheld_cell_has_no_number_on_a_verdict_page():
    for page in VERDICT_PAGES:
        text = re.sub(r"\d\.\d\d(; \d\.\d\d)+", "", words(pages("full")[page]))  # without the scores of other cells
        for number in ("3.97", "−0.22", "−0.34 to −0.10"):
            assert number not in text
    assert "What Cell B shows is withheld." in words(pages("full")["index.html"])


def test_the_outside_judge_is_quoted_without_a_side():
    text = words(section("full", "index.html", "outside"))
    assert not re.search(r"[+−]\d", text)
    assert "Stoat and Weasel 0.19 points excludes zero" in text
    assert "contains zero for 2 of them" in text


def test_the_outside_judge_on_a_permitted_pair_has_its_side():
    run = full_runs.full()
    labels = {"dimension": AGGREGATE, "high": "Badger", "low": "Marten"}
    item = runs.measured("probe.contrast", labels, -0.2, low=-0.3, high=-0.1, n=240, detail={"mde": 0.26})
    (row,) = outside_view(Book.of(replace(run, measurements=(item,)))).table.rows
    assert row[1:4] == ("Badger and Marten", "+0.20 points (0.10 to 0.30), 0.77 × MDE", "excludes zero")
    assert row[-1] == "Marten above Badger"


def test_only_permitted_gaps_have_a_number():
    view = gaps_view(Book.of(full_runs.full()))
    assert view.answer == "28 gaps of 70 may be named; the others are withheld."
    assert all("Marten" in row[0] for row in view.table.rows)
    assert all(cell.startswith("Marten +") for row in view.table.rows for cell in row[1:])
    assert view.charts[0].svg.count('class="tk ink am"') == 4
    assert 'class="novoid"' in view.charts[0].svg
    halted = gaps_view(Book.of(full_runs.halted()))
    assert halted.table is None
    assert halted.charts == ()
    assert halted.silent.startswith("No order may be named on the aggregate score, risk fit, ")


def test_what_a_judge_alone_finds_is_counted_and_not_named():
    text = words(section("full", "index.html", "single"))
    assert "27 of 60" in text
    assert not any(agent in text for agent in runs.LEVELS)


# --- kinds ----------------------------------------------------------------------------------------------------------


def test_a_class_of_two_is_no_pair_and_a_cell_is_no_agent():
    run = runs.realistic()
    tie = Claim(
        id="tie[agents=Badger+Otter,dimension=aggregate]", scope="aggregate-ranking", subjects=("Badger", "Otter"),
        statement="Badger and Otter form one class.", dimension=AGGREGATE, asserts_order=False,
    )  # fmt: skip
    cell = replace(tie, id="cell[cell=cell_a]", scope="adversarial-cell", subjects=("cell_a",), statement="Cell.")
    claims = [
        runs.verdict(tie, "qualified", "publish", "tie-class", "passed"),
        runs.verdict(cell, "headline", "halt", "stable", "passed"),
    ]
    book = Book.of(replace(run, verdicts=tuple(claims), decisions=()))
    assert "cell_a" not in book.agents
    assert book.status(AGGREGATE) == "publish"
    assert all(row.places is None for row in board(book).rows)
    assert [view.total for view in level_views(book)] == [1, 1, 0]
    withheld = Book.of(replace(run, verdicts=tuple(replace(v, publication_level="no-claim") for v in claims)))
    assert [group.text for group in withheld_groups(withheld)] == [
        "One class of Badger and Otter on the aggregate score.",
        "What the control texts show (Cell A: verbose, confident and wrong).",
    ]


def test_each_kind_is_told_by_its_id():
    claim = full_runs.full().verdicts[0].claim
    assert kind_of(replace(claim, id="odd")) == "other"
    assert kind_of(replace(claim, id="odd", scope="adversarial-cell")) == "cell"
    assert cell_of(replace(claim, id="cell[x=1]", subjects=("ladder",))) == "ladder"
    assert cell_of(replace(claim, id="cell[x=1]", subjects=())) == ""


def test_a_permitted_ranking_places_every_agent():
    run = full_runs.full()
    ranking = next(v for v in run.verdicts if kind_of(v.claim) == "ranking")
    book = Book.of(replace(run, verdicts=(replace(ranking, publication_level="qualified", fragility={}),)))
    rows = board(book).rows
    assert [(row.agents[0][0], row.places) for row in rows] == [(a, str(at)) for at, a in enumerate(runs.LEVELS, 1)]
    assert {row.why for row in rows} == {"Placed by the permitted order of all agents"}


def test_the_class_on_the_board_says_whether_a_verdict_names_it():
    run = full_runs.full()
    claims = [v for v in run.verdicts if kind_of(v.claim) != "ranking" and "Stoat" not in v.claim.subjects]
    kept = tuple(m for m in run.measurements if m.labels.get("agent") != "Stoat")
    book = Book.of(replace(run, verdicts=tuple(claims), measurements=kept, decisions=()))
    assert board(book).rows[1].why == "A tie class of its own verdict. No order inside it may be said."


# --- cards ----------------------------------------------------------------------------------------------------------


def card_of(run, claim_id):
    book = Book.of(run)
    rows = measured_rows(book)
    found = {view.claim.text or view.claim.quote: view for view in cards(book, measured_links({"m.html": rows}))}
    wanted = next(v for v in run.verdicts if v.claim.id == claim_id)
    view = claim_view(book, wanted)
    return found[view.text or view.quote], wanted


def test_a_card_has_the_tuple_the_gap_the_rules_and_the_certificate():
    card, verdict = card_of(full_runs.full(), runs.above("Marten", "Otter", "limits").id)
    assert card.scope == "pairwise contrast"
    assert card.gap == "+0.25 points (0.18 to 0.32), 0.95 × MDE, adjusted p < .001; n = 250 common cycles"
    assert card.claim.amended == "Made under a plan amended after its lock: gates.publish."
    assert card.claim.amended in card.claim.copy
    assert [(level, word) for level, word, _ in card.fragility] == [(None, "Holds"), ("no-claim", "No claim")]
    assert card.certificate == f"certificates/{certificate_name(verdict)}"
    assert {rest.title for rest in card.rests} >= {"Paired contrast", "Agreement, mean pairwise κ"}
    assert all(link.startswith("m.html#m") for rest in card.rests for _, link in rest.links)


def test_a_withheld_card_names_no_order():
    run = full_runs.full()
    pair, _ = card_of(run, runs.above("Otter", "Badger", AGGREGATE).id)
    assert (pair.gap, pair.certificate, pair.claim.reasons) == ("", "", ())
    assert pair.claim.text == "Any order between Badger and Otter on the aggregate score."
    assert "0.14 × MDE" in "".join(text for text, _ in pair.why)
    assert all(
        "Badger and Otter" in words for rest in pair.rests for words, _ in rest.links if "contrast" in rest.title
    )
    ranking, _ = card_of(run, "ranking[dimension=aggregate]")
    assert ranking.claim.text == "One order of all agents on the aggregate score."
    assert ranking.certificate == ""
    assert {rest.title for rest in ranking.rests} <= {"Agreement, mean pairwise κ"}


def test_what_would_tell_who_leads_is_withheld_on_its_card():
    run = runs.realistic()
    firsts = [
        replace(
            runs.verdict(runs.first(agent, "sizing", 5), "no-claim", "publish", standing, "passed"),
            fragility={"softer": level},
        )
        for agent, standing, level in (("Otter", "judge-dependent", "qualified"), ("Badger", "tie-class", "no-claim"))
    ]
    for card in cards(Book.of(replace(run, verdicts=tuple(firsts))), {}):
        assert card.fragility == ()
        assert card.unfragile == "Withheld: it would tell who leads."
        assert "judge-dependent" not in str(card)
        assert "tie" not in "".join(text for text, _ in card.why)


def test_long_lists_of_measurements_are_counted():
    run = full_runs.full()
    every = tuple(m.id for m in run.measurements if m.name == "lofo.effect" or m.name == "single.level")
    claim = next(v for v in run.verdicts if v.publication_level == "headline")
    book = Book.of(replace(run, verdicts=(replace(claim, measurements=every),)))
    (card,) = cards(book, measured_links({"m.html": measured_rows(book)}))
    (rest,) = card.rests
    assert (len(rest.links), rest.more) == (12, f"and {len(every) - 12} more")
    assert card.total == f"{len(every)} in all."


# --- sections on the edges ------------------------------------------------------------------------------------------


def test_nothing_measured_is_said_in_every_section():
    book = Book.of(replace(runs.realistic(), measurements=(), verdicts=()))
    assert ranks_view(book).answer == "Not measured: the clusters were not drawn again for places."
    assert controls_view(book).answer.startswith("No control texts were graded")
    assert single_view(book).answer == "Not measured: no judge was analysed alone."
    assert outside_view(book).answer.startswith("No outside judge was named in the plan")
    assert anchor_view(book).answer.startswith("Not run")
    assert contamination_view(book).answer.startswith("Not run")
    assert "No break by length was looked for" in style_view(book).answer
    assert gaps_view(book).answer == "No contrast between two agents was tested."


def test_undefined_measurements_give_their_state():
    run = full_runs.full()
    state = "undefined: one cluster"
    found = tuple(replace(m, value=None, low=None, high=None, state=state) for m in run.measurements)
    made = render_pages(replace(run, measurements=found))
    assert words(made["claim-map.html"]).count("not defined: one cluster") >= 5
    for page in made.values():
        assert " nan" not in words(page).lower()
        assert "None" not in words(page)


@pytest.mark.parametrize(
    "name", ["cell.", "rank.", "single.", "probe.", "anchor.", "contamination.", "style.", "terse."]
)
def test_each_measurement_may_be_absent(name):
    run = full_runs.full()
    kept = tuple(m for m in run.measurements if not m.name.startswith(name))
    made = views(replace(run, measurements=kept))
    assert "Not run" in made or name == "style."


@pytest.mark.parametrize(
    "name", ["cell.", "rank.", "single.", "probe.", "anchor.", "contamination.", "style.", "terse."]
)
def test_details_may_be_absent(name):
    run = full_runs.full()
    bare = tuple(replace(m, detail={}) if m.name.startswith(name) else m for m in run.measurements)
    assert not re.search(r"\bNone\b(?! of| makes)|\bnan\b", views(replace(run, measurements=bare)))


def test_controls_that_turn_or_cannot_be_told_apart_are_noted():
    run = full_runs.full()
    shown = tuple(v for v in run.verdicts if kind_of(v.claim) != "cell")
    notes = controls_view(Book.of(replace(run, verdicts=shown))).notes
    assert notes[0] == "Cell B has another outcome without quay."
    assert notes[1].startswith("Cell B minus cell A: 2.53 (2.40 to 2.66) points.")


def test_the_outside_judge_that_was_not_needed_says_so():
    run = full_runs.full()
    kept = tuple(m for m in run.measurements if not m.name.startswith("probe."))
    state = runs.measured("probe.state", {}, None, n=0, state="not needed: no drop turns a pair")
    view = outside_view(Book.of(replace(run, measurements=(*kept, state))))
    assert view.answer == "The outside judge, tarn-1 (tarn): not needed: no drop turns a pair."
    assert view.table is None
    assert rows_of(Book.of(replace(run, measurements=(*kept, state))))["Out-of-family probe"].conclusion == (
        "No drop turned a pair."
    )


def test_the_aside_knows_the_outside_judge_and_what_the_panel_is_worth():
    text = words(pages("full")["index.html"].split("<aside")[1].split("</aside>")[0])
    assert "Outside judge tarn-1 (tarn) asked about three pairs" in text
    assert "Worth 2.1 independent judges their errors correlate at 0.21" in text
    assert "0.26 points, 1 MDE" in text


# --- structure ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["full", "halted", "long"])
@pytest.mark.parametrize("page", ["index.html", "claim-map.html"])
def test_every_figure_has_words_and_a_table_in_its_section(name, page):
    for part in re.split(r'(?=<section class="sec")', pages(name)[page])[1:]:
        figures = re.findall(r'<svg [^>]*class="fig [a-z]+".*?</svg>', part, flags=re.S)
        assert all(re.search(r"<title[^>]*>[^<]+</title><desc[^>]*>[^<]+</desc>", figure) for figure in figures)
        assert not figures or "<table" in part or "No order may be said" in part or 'id="stability"' in part


def test_the_numbers_of_a_figure_stand_in_its_table():
    for anchor in ("ranks", "controls"):
        part = section("full", "index.html", anchor)
        table = words(" ".join(re.findall(r"<table.*?</table>", part, flags=re.S)))
        drawn = re.findall(r"<text[^>]*>([+−]?\d\.\d\d) \(", part)
        assert all(number in table for number in drawn)
        assert drawn or "100 %" in table


def test_hostile_names_stay_text_in_every_new_place():
    plain = full_runs.full()
    for path, page in render_pages(full_runs.hostile_full()).items():
        assert len(re.findall("<script", page)) == 1, path
        assert not re.findall(r"<img|onerror=[^&]*>", page)
        page.encode("utf-8")
    assert len(plain.verdicts) == 109
