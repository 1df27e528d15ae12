"""The pages as a whole: what they hold, what they never hold, and their budgets."""

from __future__ import annotations

import gzip
import html
import random
import re
from dataclasses import replace

import assay_runs as runs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markup import made_problems
from outline import html_of
from page_words import every, pages, words

from assaymark.report import render_pages

RUNS = ("realistic", "large", "withheld", "hostile", "minimal", "full", "halted", "long")
KB = 1000


def html_pages(name: str) -> dict[str, str]:
    return html_of(pages(name))


@pytest.mark.parametrize("name", RUNS)
def test_every_page_is_whole_alone_within_its_budget_and_leads_somewhere(name):
    made, problems = pages(name), []
    assert {"index.html", "claim-map.html", "claims.html", "measurements.html", "ledger/page-001.html"} <= set(made)
    for path, page in html_pages(name).items():
        long, data = path.startswith(("measurements", "ledger")), page.encode()
        small = len(data) <= (1000 if long else 200) * KB and (long or len(gzip.compress(data)) <= 45 * KB)
        problems += [] if small else [(path, "its size")]
    assert problems + made_problems(made) == []
    for path, page in html_pages(name).items():
        assert [page.count(part) for part in ('<a class="skip" href="#main">', '<html lang="en">')] == [1, 1], path
        scripts = "".join(re.findall(r"<script>(.*?)</script>", page, flags=re.S))
        benched = "bench.js" if 'id="b-data"' in page else ""
        assert len(scripts.encode()) <= (9 if benched else 3) * KB, path


def test_equal_runs_give_equal_bytes_whatever_the_order_of_the_records():
    run, rng = runs.realistic(), random.Random(3)
    names = ("verdicts", "measurements", "decisions", "evidence")
    other = {name: tuple(rng.sample(getattr(run, name), len(getattr(run, name)))) for name in names}
    assert render_pages(replace(run, **other)) == pages("realistic")


def test_every_verdict_measurement_and_number_has_a_row():
    made = pages("large")

    def rows(start, pattern):
        return sum(len(re.findall(pattern, page)) for path, page in made.items() if path.startswith(start))

    assert rows("ledger/", r'<tr data-k="') == 14_500
    assert "14,500 numbers" in made["fact-check.html"]
    assert rows("claims", r'<li class="lv card') == 430
    assert rows("measurements", r'<tr [^>]*id="m[0-9a-f]') == len(runs.large().measurements)


# --- nothing unsupported is shown ----------------------------------------------------------------------------------


def test_nothing_permitted_shows_no_score_and_no_place():
    run = runs.withheld()
    text = every(pages("withheld"))
    levels = [item.value for item in run.measurements if item.name == "score.effect" and item.value is not None]
    assert not [level for level in levels if f"{level:.2f}" in text or f"{level:.3f}" in text]
    assert "ranks first of" not in text
    assert not re.search(rf"“({'|'.join(runs.LEVELS)}) scores above", text)
    for said in ("No sentence is supported by this study yet", "1 to 5 cannot be ranked",
                 "3.65 to 4.38 the tier from end to end"):  # fmt: skip
        assert said in text
    index = pages("withheld")["index.html"]
    assert '<p class="quote" id="b-said">“' not in index
    assert "disabled>Nothing to copy" in index
    assert "Judges do not agree κ 0.11; 0.20 needed" in words(index)
    assert "3.65" not in index


def test_the_measurements_of_unsupported_pairs_have_neither_number_nor_direction():
    text = words(pages("realistic")["measurements.html"])
    for said in (
        f"dimension Overall score; high Marten; low Otter {4.313 - 4.067:.3f} rubric points",
        "dimension Overall score; agents Badger and Otter not shown: no supported ranking",
        "dimension Overall score; without judge family quay; agents Otter and Stoat not shown: no supported ranking",
        "agent Otter; dimension Overall score not shown: the agent shares its tier",
        "agent Marten; dimension Overall score 4.313",
    ):
        assert said in text
    assert "high Otter; low Stoat" not in text


@pytest.mark.parametrize("name", ["realistic", "large", "withheld"])
def test_an_unsupported_sentence_and_its_reasons_appear_nowhere(name):
    for page in ("index.html", "claims.html", "agents.html", "stability.html"):
        text = words(pages(name)[page]) + html.unescape(pages(name)[page])
        for verdict in getattr(runs, name)().verdicts:
            if verdict.publication_level == "no-claim":
                assert verdict.claim.statement.replace("'", "’") not in text
                assert verdict.claim.statement not in text
                assert verdict.reasons[0] not in text


def test_only_supported_sentences_are_set_as_quotations():
    run = runs.realistic()
    permitted = {v.claim.statement.replace("'", "’") for v in run.verdicts if v.publication_level != "no-claim"}
    for page in ("index.html", "claims.html"):
        quotes = re.findall(r'<p class="quote"[^>]*>“(.*?)”</p>', pages("realistic")[page])
        assert quotes
        assert {html.unescape(quote) for quote in quotes} <= permitted
    cards = "".join(page for path, page in pages("realistic").items() if path.startswith("claims"))
    assert len(re.findall('<p class="quote"', cards)) == len(permitted)


def test_copy_gives_the_sentence_its_condition_and_the_plan():
    copies = [html.unescape(text) for text in re.findall(r'data-copy="([^"]*)"', pages("realistic")["claims.html"])]
    qualified = [text for text in copies if "limits" in text]
    assert qualified
    assert all("The judges agree only weakly on this score." in text and runs.PLAN in text for text in qualified)


def test_what_stand_ins_graded_is_never_copied_without_saying_so():
    """Also in the cards of claims, which can be selected by hand, and for a headline that needs nothing else."""
    page = pages("realistic")["claims.html"]
    copies = [html.unescape(text) for text in re.findall(r'data-copy="([^"]*)"', page)]
    assert copies
    for text in copies:
        assert re.search(
            r"” Graded by rule-based stand-ins\. .*\(assaymark: Allocation round seven, 2 March 2026, ", text
        )
    assert words(page).count("Say also") >= len(copies)
    assert "“Marten" not in words(pages("realistic")["index.html"]).split("Check a sentence")[0]
    run = replace(runs.realistic(), reference_panel=())
    graded = render_pages(run)["index.html"]
    assert "stand-ins" not in graded
    assert "(assaymark: Allocation round seven, 2 March 2026, plan" in graded
    assert "“Marten ranks first of the 5 agents on the overall score.”" in words(graded).split("Check a sentence")[0]


def test_only_judges_and_agents_that_are_built_in_are_called_stand_ins():
    run, (first, *_) = runs.realistic(), runs.realistic().reference_panel
    some = replace(run, reference_panel=(first,), reference_agents=(replace(first, name="Otter"),))
    page, named = words(render_pages(some)["claims.html"]), first.name
    assert f"Graded in part by rule-based stand-ins ({named}). Otter is a rule-based stand-in." in page
    assert f"Graded in part by rule-based stand-ins ({named}). The" in page


# --- hostile records ------------------------------------------------------------------------------------------------


TEXT = st.text(max_size=60)


@settings(max_examples=12, deadline=None)
@given(name=TEXT.filter(str.strip), note=TEXT, quote=TEXT)
def test_no_text_breaks_out_of_its_place(name, note, quote):
    run = runs.realistic()
    levels = {name: 4.3, f"{name}2": 3.9}
    records = runs.decisions(dict.fromkeys(levels, note), 4)
    made = render_pages(replace(
        run, verdicts=tuple(runs.verdicts(levels, {"aggregate": 0.5})), decisions=tuple(records),
        measurements=tuple(runs.agents_measured(run.study, levels, "aggregate", "")),
        evidence=tuple(runs.evidence(records, 4, quote)), import_notes=(note,),
    ))  # fmt: skip
    for path, page in made.items():
        page.encode("utf-8")
        if path.endswith(".html"):
            assert len(re.findall("<script", page)) == (3 if path == "index.html" else 1)
        assert not re.search(r"[\x00-\x08\x0e-\x1f]", page)


# --- sections -------------------------------------------------------------------------------------------------------


SAID = (
    "Built-in judges.", "What was planted", "adds 0.3 to long texts", "70 differences tested",
    "moderated cluster t clusters taken as independent", "0.21 points for a leader, 0.33 for a single pair power 80 %",
    "7,000 calls, 42 invalid (0.6 %)", "at most 192 calls", "3 of 3 judge families also made agents",
    "too few to gate: 18 records in 3 clusters", "not defined: one trial, needs two", "not defined: no replicates",
    "Where the stored context is partial", "12 % of 1,250 records hold no number at all",
    "Support beyond chance is +0.58", "4 % of 600 stated portfolio forecasts",
    "The order book the agents saw is not in the log", "clock-conflict", "gates.publish",
    "Five verdicts of 105 would change under any one of three other rules", "A test with each pair’s own variance",
    "α .04 for the overall score, .01 for dimensions", "On the overall score agreement is enough (κ 0.51 in prose).",
    "enough: 0.51 in prose", "north-1, quay-1 and strand-1, repeated (ddof 1)", "Built-in judges scored these agents",
    "Some agents are too close", "4.31 (4.24 to 4.38)", "2 to 5 cannot be ranked",
    "3.65 to 4.14 the tier from end to end", "0 of 6 rankings inside supported; stopped by significance or stability",
    "On the overall score only Marten can rank first.", "Preregistered yes", "Risk fit 0.97 0.70 to 1.00 p = .400 no",
    "Overall score −0.21 +0.08 +0.02 −0.11 not shown to follow each other (above 0.27 needed)",
    "north-1 0.31 (0.21 to 0.41) p = .030", "All agents",
)  # fmt: skip
NOTHING = (
    "not measurable: one judge family, needs two", "No claim was decided.", "No number was found in the rationales.",
    "No noise floor was measured.", "not locked", "The import reported nothing missing.", "No record was left out.",
    "Could detect not measured",
)  # fmt: skip


def test_the_pages_of_the_questions_say_what_was_found_and_that_nothing_was_measured():
    text, bare = every(pages("realistic")), every(pages("minimal"))
    assert [said for said in SAID if said not in text] == []
    assert runs.PLAN in pages("realistic")["plan.html"]
    assert [said for said in NOTHING if said not in bare] == []
    assert "nan" not in bare.lower().split()
