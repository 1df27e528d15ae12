"""Numbers on the first pages lead to their measurements: to the right row, and never where none may be shown."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import assay_runs as runs
import full_runs
import page_words
import pytest
from outline import first_number
from page_words import pages

from assaymark.records import AGGREGATE
from assaymark.report import Linked, RunIndex, render_pages

LINK = re.compile(r'<a href="((?:\.\./)?(measurements[^"#]*)#(m[0-9a-f-]+))">([^<]+)</a>')
FIRST = ("index", "agents", "agreement", "stability", "controls", "plan", "claim-map")


def section(name: str, page: str, anchor: str) -> str:
    return page_words.section(pages(name)[f"{page}.html"], anchor)


def row(name: str, page: str, anchor: str) -> tuple[str, str]:
    """The title and the value of a measurement, from its row on a page."""
    [found] = re.findall(
        rf'<tr [^>]*id="{anchor}"[^>]*><th scope="row">(.*?)</th>.*?data-l="Value">(.*?)</td>', pages(name)[page]
    )
    return html.unescape(found[0]), html.unescape(found[1])


@pytest.mark.parametrize("page", FIRST)
def test_a_number_leads_to_the_row_that_has_it(page):
    found = [one for one in LINK.findall(pages("full")[f"{page}.html"]) if re.search(r"\d", one[-1])]
    assert len(found) > (2 if page in ("index", "plan") else 5)
    for _, where, anchor, text in found:
        _, value = row("full", where, anchor)
        if page == "claim-map" and " points" in text:
            text = text[text.index("+") if "+" in text else 0 :]  # a name may have a digit in it
        shown, digits = first_number(text.partition(" of ")[0] if "(" in text and " of " in text else text)
        measured, _ = first_number(value)
        scale = 100 if "%" in text and "(" not in text else 1
        if "%)" in text:  # a count, and the share that was measured
            shown, digits = first_number(text.partition("(")[2])
            scale = 100
        assert abs(shown - scale * measured) <= 0.51 * 10**-digits + scale * 0.00051, (text, value)


@pytest.mark.parametrize(("page", "part", "kinds"), [
    ("agents", "board", {"Level of an agent"}),
    ("agreement", "agreement", {"Agreement, mean pairwise κ", "Agreement, Fleiss κ", "Redundancy of judges"}),
    ("stability", "stability", {"Left-out family, rank correlation"}),
    ("controls", "controls", {"Control cell, the number of its rule", "Control cell, κ with the honest records"}),
    ("agreement", "single", {"Two judges alone, rank correlation", "One judge alone, significant differences"}),
    ("plan", "panel", {"Invalid replies"}),
    ("stability", "explanations", {
        "Extra points for agents of a judge’s own family", "Autocorrelation of neighbouring clusters in time",
        "Correlation of a dimension with the overall impression",
    }),
    ("agents", "ranks", {"Resampled ranks of an agent"}),
    ("plan", "plan", {"Smallest detectable difference, for a leader"}),
])  # fmt: skip
def test_each_section_leads_to_its_measurements(page, part, kinds):
    found = LINK.findall(section("full", page, part))
    assert kinds <= {row("full", where, anchor)[0] for _, where, anchor, _ in found}


def test_a_supported_sentence_leads_to_its_card():
    found = pages("full")
    rules = re.findall(r'<th scope="row">([^<]*) <a href="(claims[^"#]*)#(k[0-9a-f]+)">', found["stability.html"])
    assert len(rules) > 2
    for quote, page, anchor in rules:
        card = rf'<li class="lv card (\S+)"[^>]* id="{anchor}">(.*?)</dl></li>'
        level, text = re.findall(card, found[page], re.DOTALL)[0]
        assert quote.rstrip(".") in text
        assert level in ("headline", "qualified")


def test_the_place_of_a_card_has_no_direction_in_it():
    run = full_runs.full()
    pair = next(v for v in run.verdicts if v.publication_level == "no-claim" and len(v.claim.subjects) == 2)
    turned = runs.above(*pair.claim.subjects[::-1], pair.claim.dimension)
    places = []
    for claim in (runs.above(*pair.claim.subjects, pair.claim.dimension), turned):
        made = render_pages(replace(run, verdicts=(replace(pair, claim=claim),)))
        places.append(re.findall(r'class="lv card no-claim"[^>]* id="([^"]+)"', made["claims.html"]))
    assert places[0] == places[1]
    assert len(places[0]) == 1


@pytest.mark.parametrize("name", ["withheld", "halted"])
def test_a_number_that_is_withheld_has_no_link(name):
    assert not [text for *_, text in LINK.findall(section(name, "agents", "board")) if " to " not in text]
    assert not LINK.findall(section(name, "claim-map", "gaps"))


def test_on_the_board_an_agent_of_a_shared_tier_leads_to_its_range():
    found = [
        (text, page, anchor)
        for line in re.findall(r"<tr>.*?</tr>", section("full", "agents", "board"), flags=re.S)
        if "cannot be ranked" in line
        for _, page, anchor, text in LINK.findall(line)
    ]
    assert found
    for text, page, anchor in found:
        row = re.search(rf'<tr[^>]* id="{anchor}"[^>]*>.*?</tr>', pages("full")[page], flags=re.S)
        assert f"{text}, range of the judges; the agent shares its tier" in row[0]


def test_a_state_in_words_leads_nowhere_and_a_linked_text_is_the_text():
    book = RunIndex.of(full_runs.full())
    undefined = runs.measured("noise.agent_floor", {"agent": "x"}, None, state="undefined: no replicates")
    assert type(book.link(undefined, "not defined")) is str
    assert type(book.link(None, "not measured")) is str
    assert type(book.linked_value("kappa.fleiss", AGGREGATE)) is str  # rows are not placed yet
    said = Linked("0.64", "x.html#m1")
    assert {said: 1} == {"0.64": 1}
    assert f"κ {said}" == "κ 0.64"
