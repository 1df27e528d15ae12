"""Rows of the claim ledger: what each layer says, who says it, and where they differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st
from made_season import made_catalogue, made_season

from assaymark.claims import languages
from assaymark.records import EvidenceState
from assaymark.report import inline, plain
from assaymark.report.season import SeasonClaimLine, SeasonRun
from assaymark.report.season.decisions import (
    DIFFER,
    NO_NUMBER,
    ledger_counts,
    ledger_filters,
    ledger_notes,
    ledger_parts,
    ledger_row,
)
from assaymark.report.season.index import AgentIndex, SeasonIndex, Words

PANEL = ("North-J", "Strand-J", "Quay-J")
STATES = (*get_args(EvidenceState), None)
LINES = st.builds(
    SeasonClaimLine,
    number=st.integers(1, 9),
    day=st.just("2026-01-05"),
    quote=st.text(max_size=30),
    saw=st.text(max_size=9),
    numbers=st.sampled_from(STATES),
    rule=st.sampled_from(["", "row-labelled", "unheard of"]),
    judges=st.dictionaries(
        st.sampled_from(PANEL), st.sampled_from(["supported", "contradicted", "not_verifiable", "derivable"])
    ),
)


def book_of(lines: tuple[SeasonClaimLine, ...], language: str = "en") -> AgentIndex:
    run = replace(made_season(1, 2), ledger={"Alder": lines})
    return AgentIndex(SeasonIndex.of(run, Words(made_catalogue(language))), run.plan.agents[0])


def row_of(**values):
    line = SeasonClaimLine(**{"number": 1, "day": "d", "quote": "q", "saw": "s", "numbers": "supported"} | values)
    return ledger_row(book_of((line,)), line, {1: "agents/Alder/decisions.html#d1"})


def one(**values) -> str:
    return inline(row_of(**values).cells)


@given(st.lists(LINES, min_size=1, max_size=12))
def test_buttons_count_the_rows_that_they_show(lines):
    book = book_of(tuple(lines))
    rows = [ledger_row(book, line, {}) for line in lines]
    shown = Counter(key for row in rows for key in (row.key, row.also) if key)
    buttons = {one.key: int(one.count) for one in ledger_filters(book.words, lines)}
    assert buttons.pop("") == len(lines)
    assert buttons == shown
    assert buttons.get(DIFFER, 0) == sum(line.disagree for line in lines)
    assert [list(part) for part in ledger_parts("agents/Alder.html", lines).values()] == [lines[::-1]]


@given(st.lists(LINES, min_size=1, max_size=12))
def test_the_table_of_counts_is_that_of_the_rows(lines):
    table = ledger_counts(book_of(tuple(lines)))
    assert sum(int(row[1]) for row in table.rows) == len(lines)
    for at, judge in enumerate(table.heads[2:], 2):
        assert sum(int(row[at]) for row in table.rows) == sum(judge in line.judges for line in lines)


def test_a_disagreement_is_underlined_and_nothing_else():
    assert row_of(judges={"North-J": "contradicted"}).style == "diff"
    assert row_of(judges={"North-J": "supported", "Quay-J": "not_verifiable"}).style == "diff"
    assert not row_of(judges=dict.fromkeys(PANEL, "supported")).style
    assert not row_of(numbers="derivable", judges={"North-J": "supported"}).style
    assert not row_of(numbers="in_context", judges={"North-J": "not_verifiable"}).style
    assert row_of(numbers="not_found", judges={"North-J": "supported"}).style == "diff"


def test_the_number_that_a_row_is_about_is_marked():
    said = row_of(quote="Cash is 500, so 20 units fit.", which="20", start=16).cells[1]
    assert [str(part) for part in said] == ["“Cash is 500, so ", "20", " units fit.”"]
    assert "<b>20</b>" in inline(said)


def test_who_says_so_is_named_where_the_panel_is_not_of_one_mind():
    assert "North-J" not in one(judges=dict.fromkeys(PANEL, "supported"))
    assert "North-J" in one(judges={"North-J": "supported"})
    split = one(judges={"North-J": "supported", "Strand-J": "contradicted", "Quay-J": "supported"})
    assert "North-J, Quay-J" in split
    assert split.count("#g-contradicted") == 1


def test_what_nobody_looked_at_and_what_holds_no_number_is_said():
    assert "not looked at" in one()
    assert "no field seen" in one(saw="")
    bare = one(numbers=None, rule="misquoted")
    assert row_of(numbers=None).key == NO_NUMBER
    assert "no number" in bare
    assert "quotation not found in the reasons" in bare


def test_rules_and_own_figures_are_said_in_words():
    html = one(rule="own-labelled, return-1w, one-cell-differs", saw="own:quantity; NVX close 18.4; own:<b>")
    assert "its own order, return over 1 week, one cell differs" in html
    assert "its own figure: quantity; NVX close 18.4; its own figure: &lt;b&gt;" in html


def test_a_row_leads_to_its_decision_where_there_is_one():
    assert 'href="agents/Alder/decisions.html#d1"' in one(number=1)
    assert "<a " not in one(number=7)


def test_every_state_has_a_word_in_every_language():
    for language in languages():
        words = Words(made_catalogue(language))
        assert all(words.has(f"model.claim_state.{state or NO_NUMBER}") for state in STATES)


def test_the_notes_say_what_was_measured():
    run: SeasonRun = made_season(2, 20)
    book = AgentIndex(SeasonIndex.of(run), run.plan.agents[0])
    notes = " ".join(map(plain, ledger_notes(book))).replace("\xa0", " ")
    assert "The material bears out 93.0 % of 110 numbers. By chance alone 8.0 % would match" in notes
    differ = sum(line.disagree for line in run.ledger["Alder"])
    assert f"The layers disagree on {differ} of {len(run.ledger['Alder'])} claims" in notes
