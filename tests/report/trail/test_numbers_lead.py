"""Numbers on the first pages lead to their measurements: to the right row, and never where none may be shown."""

from __future__ import annotations

import html
import re
from functools import cache

import assay_runs as runs
import full_runs
import pytest
from numbers_of_pages import first_number

from assaymark.records import AGGREGATE
from assaymark.report import render_pages
from assaymark.report.blocks import Linked
from assaymark.report.lookup import Book

LINK = re.compile(r'<a href="((?:\.\./)?(measurements[^"#]*)#(m[0-9a-f-]+))">([^<]+)</a>')
FIRST = ("index.html", "claim-map.html")


@cache
def pages(name: str) -> dict[str, str]:
    return dict(render_pages(getattr(runs if hasattr(runs, name) else full_runs, name)()))


def row(name: str, page: str, anchor: str) -> tuple[str, str]:
    """What a measurement is called, and its value."""
    [found] = re.findall(
        rf'<tr [^>]*id="{anchor}"><th scope="row">(.*?)</th>.*?data-l="Value">(.*?)</td>', pages(name)[page]
    )
    return html.unescape(found[0]), html.unescape(found[1])


@pytest.mark.parametrize("page", FIRST)
def test_a_number_leads_to_the_row_that_has_it(page):
    found = LINK.findall(pages("full")[page])
    assert len(found) > (5 if page == "claim-map.html" else 30)
    for _, where, anchor, text in found:
        _, value = row("full", where, anchor)
        if page == "claim-map.html" and " points" in text:
            text = text[text.index("+") if "+" in text else 0 :]  # a name may have a digit in it
        shown, digits = first_number(text.partition(" of ")[0] if "(" in text and " of " in text else text)
        measured, _ = first_number(value)
        scale = 100 if "%" in text and "(" not in text else 1
        if "%)" in text:  # a count, and the share that was measured
            shown, digits = first_number(text.partition("(")[2])
            scale = 100
        assert abs(shown - scale * measured) <= 0.51 * 10**-digits + scale * 0.00051, (text, value)


@pytest.mark.parametrize(
    ("section", "kinds"),
    [
        ("board", {"Level of an agent"}),
        ("agreement", {"Agreement, mean pairwise κ", "Agreement, Fleiss κ", "Redundancy of judges"}),
        ("stability", {"Left-out family, rank correlation"}),
        ("controls", {"Control cell, the number of its rule", "Control cell, κ with the honest records"}),
        ("single", {"Two judges alone, rank correlation", "One judge alone, significant differences"}),
        ("panel", {"Invalid replies"}),
        (
            "explanations",
            {
                "Extra points for agents of a judge’s own family",
                "Autocorrelation of clusters in time, lag 1",
                "Correlation of a dimension with the overall impression",
            },
        ),
        ("ranks", {"Resampled ranks of an agent"}),
    ],
)
def test_each_section_leads_to_its_measurements(section, kinds):
    page = pages("full")["index.html"]
    part = re.search(rf'<section class="sec" id="{section}".*?</section>', page, flags=re.S)[0]
    assert kinds <= {row("full", where, anchor)[0] for _, where, anchor, _ in LINK.findall(part)}


def test_the_aside_leads_to_what_was_measured():
    aside = re.search(r"<aside.*?</aside>", pages("full")["index.html"], flags=re.S)[0]
    assert {row("full", where, anchor)[0] for _, where, anchor, _ in LINK.findall(aside)} >= {
        "Smallest detectable difference, for a leader"
    }


def test_a_claim_that_may_be_said_leads_to_its_card_and_a_withheld_one_has_no_place():
    found = pages("full")
    cards = "".join(text for path, text in found.items() if path.startswith("claims"))
    said = re.findall(
        r'<p class="quote" id="[^"]+">(.*?)</p>.*?<a href="(claims[^"#]*)#(k[0-9a-f]+)">',
        found["index.html"],
        re.DOTALL,
    )
    rules = re.findall(
        r'<th scope="row">([^<]*) <span class="sub"><a href="(claims[^"#]*)#(k[0-9a-f]+)">', found["index.html"]
    )
    assert len(said) > 2
    assert len(rules) > 2
    for quote, page, anchor in [*said, *rules]:
        level, text = re.findall(
            rf'<li class="lv card (\S+)"[^>]* id="{anchor}">(.*?)</dl></li>', found[page], re.DOTALL
        )[0]
        assert quote.rstrip(".") in text
        assert level in ("headline", "qualified")
    assert not re.findall(r'class="lv card no-claim"[^>]* id=', cards)
    assert 'class="lv card no-claim"' in cards


@pytest.mark.parametrize("name", ["withheld", "halted"])
def test_a_number_that_is_withheld_has_no_link(name):
    board = re.search(r'<section class="sec" id="board".*?</section>', pages(name)["index.html"], flags=re.S)[0]
    gaps = re.search(r'<section class="sec" id="gaps".*?</section>', pages(name)["claim-map.html"], flags=re.S)[0]
    assert not [text for *_, text in LINK.findall(board) if " to " not in text]
    assert not LINK.findall(gaps)


def test_on_the_board_an_agent_of_a_shared_tier_leads_to_its_range():
    board = re.search(r'<section class="sec" id="board".*?</section>', pages("full")["index.html"], flags=re.S)[0]
    found = [
        (text, page, anchor)
        for line in re.findall(r"<tr>.*?</tr>", board, flags=re.S)
        if "cannot be ranked" in line
        for _, page, anchor, text in LINK.findall(line)
    ]
    assert found
    for text, page, anchor in found:
        row = re.search(rf'<tr[^>]* id="{anchor}">.*?</tr>', pages("full")[page], flags=re.S)
        assert f"{text}, range of the judges; the agent shares its tier" in row[0]


def test_a_state_in_words_leads_nowhere():
    book = Book.of(full_runs.full())
    undefined = runs.measured("noise.agent_floor", {"agent": "x"}, None, state="undefined: no replicates")
    assert type(book.to(undefined, "not defined")) is str
    assert type(book.to(None, "not measured")) is str
    assert type(book.shown("kappa.fleiss", dimension=AGGREGATE)) is str  # rows are not placed yet


def test_a_linked_text_is_the_text():
    said = Linked("0.64", "x.html#m1")
    assert {said: 1} == {"0.64": 1}
    assert f"κ {said}" == "κ 0.64"
