"""The pages of judges: what they hold, that nothing breaks out of its place, and their budgets."""

from __future__ import annotations

import gzip
import random
import re
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import judged_sheets as sheets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_sheets import prose, words
from markup import made_problems
from outline import cells, first_number, links_to

from assaymark.errors import InputError
from assaymark.metrology import datasheet
from assaymark.records import PairCall
from assaymark.report import datasheet as sheet_pages
from assaymark.report import datasheet_summary, render_comparison, render_datasheet

ALL = ("quay", "north", "strand", "clean", "log", "one_order_log", "empty", "hostile")
KB = 1000


@cache
def made(name: str) -> dict[str, str]:
    """One judge's page and figure; runs have the other runs as peers."""
    peers = (sheets.quay(), sheets.north(), sheets.strand())
    return dict(
        render_datasheet(getattr(sheets, name)(), peers if name in ("quay", "north", "strand", "clean") else ())
    )


@cache
def compared() -> dict[str, str]:
    return dict(render_comparison((sheets.strand(), sheets.quay(), sheets.north(), sheets.clean()), agreement()))


def agreement():
    return sheets.kappa("north-j", "quay-j"), sheets.kappa_content("north-j", "quay-j")


def page(name: str) -> str:
    return next(text for path, text in made(name).items() if path.endswith(".html"))


def figure(name: str) -> str:
    return next(text for path, text in made(name).items() if path.endswith(".svg"))


# --- the frame ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*ALL, "compared", "mixed"])
def test_a_page_is_small_closed_and_in_order(name):
    mixed = (sheets.log(), sheets.empty(), sheets.hostile())
    found = {"compared": compared, "mixed": lambda: render_comparison(mixed)}.get(name, lambda: made(name))()
    assert [one for one in made_problems(found) if "which does not exist" not in one] == []
    text = next(text for path, text in found.items() if path.endswith(".html"))
    assert (len(text.encode()) <= 200 * KB, len(gzip.compress(text.encode())) <= 45 * KB) == (True, True)
    assert '<a class="skip" href="#main">' in text
    # Every row of a table has its head, and every figure its words and its table.
    for table in re.findall(r"<table.*?</table>", text, flags=re.S):
        top, body = table.split("<tbody>")
        assert top.count('<th scope="col"') == top.count("<th") - top.count("<thead")
        assert body.count('<th scope="row"') == body.count("<th") == body.count("<tr")
    for plot in re.findall(r'<div class="plot">(.*?)</details>', text, flags=re.S):
        if drawn := re.findall(r'<svg[^>]*class="fig (wide|narrow)"', plot):
            assert drawn == ["wide", "narrow"]
            assert len(re.findall(r"<title id=[^>]+>[^<]+</title><desc id=[^>]+>[^<]+</desc>", plot)) == 2
            assert "<table" in plot


def test_the_pages_of_a_comparison_are_where_it_says():
    links = re.findall(r'<a href="(datasheet/[^"#]+)"', compared()[sheet_pages.COMPARISON])
    assert links == [sheet_pages.datasheet_path(name) for name in ("north-j", "quay-j", "still-j", "strand-j")]
    assert 'href="../datasheets.html"' in page("quay")
    assert "datasheets.html" not in page("log")
    assert 'href="../datasheet/quay-j.svg"' in page("quay")


def test_equal_datasheets_give_equal_bytes_whatever_the_order():
    one, rng = sheets.quay(), random.Random(3)
    peers = [sheets.north(), sheets.strand(), sheets.quay()]
    rng.shuffle(peers)
    assert render_datasheet(one, peers) == made("quay")
    assert render_comparison([sheets.clean(), *peers], agreement=agreement()) == compared()


def test_a_long_datasheet_keeps_its_page_small_loses_nothing_and_leads_to_the_page_that_has_its_rows():
    one = sheets.quay()
    more = [sheets.share("own.share", k % 40, 40, judge="quay-j", variant=f"kind {k}") for k in range(230)]
    found = render_datasheet(replace(one, measurements=(*one.measurements, *more)))
    main, apart = "datasheet/quay-j.html", "datasheet/quay-j-measurements.html"
    assert sorted(path for path in found if "/quay-j" in path) == [apart, main, "datasheet/quay-j.svg"]
    assert len(re.findall(r"<tr data-k=", found[apart])) == len(one.measurements) + 230
    assert "<tr data-k=" not in found[main]
    led = links_to(found[main], r"[^\"#]+")
    assert {path for path, _, _ in led} == {f"../{apart}"}
    assert {anchor for _, anchor, _ in led} <= cells(found[apart]).keys()


@pytest.mark.parametrize(
    "name", ["", "..", "../../etc/passwd", "A", "a/b", "CON\x00", "ü", "x" * 300, "a-0123abcd", "a-measurements"]
)
def test_a_path_is_safe_and_of_one_judge(name):
    path = sheet_pages.datasheet_path(name)
    assert re.fullmatch(r"datasheet/[a-z0-9][a-z0-9._-]*\.html", path)
    assert path != sheet_pages.datasheet_path(name + "!")
    assert len(path) < 90


def test_a_comparison_needs_judges_and_each_once():
    with pytest.raises(InputError, match="at least one"):
        render_comparison([])
    with pytest.raises(InputError, match="has two datasheets"):
        render_comparison([sheets.quay(), sheets.quay()])


# --- what is said ---------------------------------------------------------------------------------------------------


SAYS = {
    "quay": (
        "Given nothing to choose between, it still chose in 7 of 120 calls.",
        "Between equal texts it preferred one in 51 of 120 calls, mostly for its position, not for how it was worded",
        "(pairs: 14 by position, 6 by text, 10 in one order only)",
        "It noticed one missing requirement in 84 of 100 calls.",
        "it preferred one of two equal texts in 11 of 120 calls and noticed the missing requirement in 61 of 100.",
        "is 14 of 20 (0.70); it hides the 10 pairs with a preference in one order only.",
        "In calls: 12 + 28 + 10 + 1 = 51 of 120. False preference is 0.425.",
        "Built-in judge. A rule with planted flaws. 5 of 5 planted values lie inside the measured interval",
        "Three calls of four are right at a difference of 0.83 requirements.", "quay-j: half a requirement 58 %",
        "Thresholds of peers: north-j: ≤ 0.5 (≤ 0.5 to 0.61); strand-j: > 5 (3.50 to > 5).",
        "39 ties and 0 wrong choices in 100 calls", "This is not an ROC curve.",
        "a text without content gets 1.00 to 2.20 points",
        "and 100 words that say nothing are worth −0.08 to 0.27 points.", "0.27 (0.15 to 0.39)",
        "In 43 of 120 comparisons, over all dimensions, both scores are at one end of the scale",
        "Two trials of one question gave the same outcome in 92 % (88 to 94 %) of cases.",
        "unweighted κ between trials is 0.86 (0.80 to 0.91)",
        "The judge has shifted in Positional false preference, equal texts (4 quantities compared, level 0.05).",
        "What this datasheet does not claim", "5 of 5 passed", "2 without a usable reply", "manifest c03f6e18…9d0041bd",
    ),
    "clean": (
        "it chose in none of 120 calls", "it preferred one in none of 120 calls.",
        "At the smallest difference shown, half a requirement, three calls of four are right already.",
        "is not defined: no pair was decided in both orders; it would hide pairs",
    ),
    "strand": ("At no difference shown, up to five requirements",),
    "north": (
        "The criterion shift is not measured: strict arm was not run.",
        "Repeat stability is not defined: one trial, needs two.",
    ),
    "empty": (
        "Null-pair preference is not measured.", "Nothing of this was measured.",
        "No measurement is in this datasheet.",
    ),
    "log": (
        "Of the pairs in the log it preferred one in 1,075 of 1,600 calls",
        "not for its position (pairs: 96 by position, 412 by text, 52 in one order only)",
        "is 96 of 508 (0.19); it hides the 52 pairs", "the upper left is then what a steady judge looks like",
        "Gates not applied",
    ),
    "one_order_log": ("it preferred one in 350 of 400 calls.", "every pair was shown in one order only, needs both"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAYS)
def test_the_page_of_a_judge_says(name):
    text = prose(page(name))
    assert [said for said in SAYS[name] if said not in text] == []
    assert len(re.findall(r'<p class="gone">', page("empty"))) == 6
    assert len(re.findall(r"<svg[^>]*fig", page("one_order_log"))) == 0


def without(name, **fields):
    """The measurements of a judge where those of a name are gone, or are changed."""
    kept = (m if m.name != name else replace(m, **fields) if fields else None for m in sheets.quay().measurements)
    return replace(sheets.quay(), measurements=tuple(m for m in kept if m is not None))


GONE = {"value": None, "low": None, "high": None, "level": None}
NONE = "no text with filler has a score without it"
PLANTED = {"dark_current[judge=quay-j,prompt=tie-allowed]": 0.5}
OTHER = replace(sheets.north(), manifest="0" * 64)
APART = "not measured: not comparable, the texts differ (another manifest)"
DRIFT = sheets.sheet("j", [sheets.missing("drift.verdict", APART, detail={"verdict": "not comparable"}, judge="j")])


def parts(*pairs):
    return sheets.sheet("j", sheets.decomposition("j", pairs))


@pytest.mark.parametrize(
    ("one", "peers", "says", "silent"),
    [
        (without("point.verbosity"), (), ("What is a requirement worth?",), ("ength alone", "comparisons, over all")),
        (without("point.verbosity", state=f"undefined: {NONE}, needs one", **GONE), (), (NONE,), ("100 words that",)),
        (replace(sheets.quay(), planted=PLANTED), (),
         ("0 of 1 planted values lie inside", "0.500 (outside)",
          "Null-pair preference, ties allowed 0.500 0.058 0.029 to 0.116 no"), ()),
        (parts(3, 6, 0, 0, 51), (), ("mostly for its position, not for how it was worded",), ()),
        (parts(6, 3, 0, 0, 51), (), ("mostly for how it was worded, not for its position",), ()),
        (parts(5, 4, 0, 0, 51), (), ("partly for its position and partly for how it was worded",), ()),
        (parts(2, 2, 9, 0, 47), (), ("mostly in one of the two orders only",), ()),
        (DRIFT, (), ("The two datasheets cannot be compared: the texts differ (another manifest).", "Drift"), ()),
        (sheets.quay(), (OTHER, sheets.strand()), ("so not drawn here: north-j.",), ()),
        (sheets.quay(), [sheets.north(f"peer-{k}") for k in range(6)], ("not drawn: peer-4 and peer-5.",), ()),
    ],
)  # fmt: skip
def test_the_page_of_a_changed_datasheet_says(one, peers, says, silent):
    """Nothing of what was not asked, what lies outside, by which mechanism, why not comparable, whom it cannot draw."""
    html = next(iter(render_datasheet(one, peers).values()))
    assert [text for text in says if text not in prose(html)] == []
    assert [text for text in silent if text in prose(html)] == []
    assert one is not DRIFT or '<a href="#drift">' in html
    assert OTHER not in peers or "north-j" not in "".join(re.findall(r"<svg.*?</svg>", html, flags=re.S))


def test_all_measurements_and_non_claims_are_there_and_undefined_ones_named():
    text = page("quay")
    assert len(re.findall(r"<tr data-k=", text)) == len(sheets.quay().measurements)
    for claim in datasheet.NON_CLAIMS:
        assert claim.replace("'", "’") in words(text)
    rows = re.findall(r'<tr data-k="vacuum"[^>]*><th[^>]*>Null-pair preference.*?</tr>', text)
    (row,) = [row for row in rows if "not measured" in row]
    assert "vacuum was not run under strict" in row
    assert " nan" not in words(text).lower()
    assert " None" not in words(text)


# --- logs -----------------------------------------------------------------------------------------------------------


def test_a_log_says_what_it_cannot_give_and_never_speaks_of_equal_texts_or_false_preference():
    for what in (
        "Preference between identical texts", "Sensitivity and detection threshold", "Filler preference",
        "The effect of a strict",
    ):  # fmt: skip
        assert re.search(rf"{what}[a-z ]*: not measured, ", prose(page("log")))
    measured = words(page("log").split('id="non-claims"')[0]).lower()
    for word in ("equal texts", "false preference", "planted", "position-led", "ties allowed"):
        assert word not in measured


# --- comparison -----------------------------------------------------------------------------------------------------


def test_a_comparison_stands_in_alphabetical_order_everywhere():
    text = compared()[sheet_pages.COMPARISON]
    (table,) = re.findall(r'<section class="sec" id="table".*?</section>', text, flags=re.S)
    heads = re.findall(r"<th scope=\"col\"[^>]*>(?:<a[^>]*>)?([^<]+)</", table)
    assert heads == ["Quantity", "north-j", "quay-j", "still-j", "strand-j"]
    for svg in re.findall(r'<svg[^>]*class="fig.*?</svg>', text, flags=re.S):
        named = [
            name for name in re.findall(r"<desc[^>]*>(.*?)</desc>", svg)[0].split("; ") if re.match(r"\w+-j:", name)
        ]
        firsts = list(dict.fromkeys(part.split(":")[0] for part in named))
        assert firsts == sorted(firsts)
        assert "this judge" not in svg
    assert "listed alphabetically, not ranked" in text


def test_the_comparison_has_values_intervals_and_kappas():
    text = words(compared()[sheet_pages.COMPARISON])
    four = "0.017 (0.005 to 0.059) 0.058 (0.029 to 0.116) 0.000 (0.000 to 0.031) 0.342 (0.263 to 0.430)"
    assert f"Null-pair preference {four}" in text
    assert "≤ 0.5 (≤ 0.5 to 0.61) 0.83 (0.66 to 0.97) ≤ 0.5 (no interval) > 5 (3.50 to > 5)" in text
    assert (
        "north-j and quay-j the text, orders averaged 0.520 0.400 to 0.630 510 common pairs made by hand "
        "north-j and quay-j the position, call by call 0.410 0.300 to 0.520 1,020 common calls" in text
    )
    assert "not measured: strict arm was not run" in text
    alone = render_comparison((sheets.quay(), sheets.north()))[sheet_pages.COMPARISON]
    assert "Do they prefer the same texts?" not in words(alone)


def test_one_judge_without_numbers_does_not_hide_the_others_and_one_without_usable_pairs_is_not_drawn():
    text = render_comparison((sheets.empty("a-empty"), sheets.quay(), sheets.log("b-log")))[sheet_pages.COMPARISON]
    assert len(re.findall(r'<p class="gone">', text)) == 0
    assert ["quay-j:" in drawn for drawn in re.findall(r"<desc[^>]*>(.*?)</desc>", text)] == [True] * 10
    lost = sheets.sheet("lost-j", sheets.decomposition("lost-j", (0, 0, 0, 20, 0)))  # drawn, it would look unbiased
    kappa = replace(sheets.kappa("lost-j", "quay-j"), state="not measured: no common call", **GONE)
    text = words(render_comparison((sheets.quay(), lost), (kappa,))[sheet_pages.COMPARISON])
    assert "20 to 60 pairs of equal texts, each in both orders." in text
    assert "Not drawn, because no pair has two usable replies: lost-j." in text
    assert "the position, call by call not measured none 1,020 common calls no common call" in text
    lines = map(str, datasheet_summary([sheets.quay()], ()).renderables)
    assert any(line.endswith("; 2 of 860 replies could not be used") for line in lines)


def test_judges_on_different_texts_are_warned_about():
    other = replace(sheets.north(), manifest="0" * 64)
    text = words(render_comparison((sheets.quay(), other, sheets.strand()))[sheet_pages.COMPARISON])
    assert "Numbers compare within a group only: north-j; quay-j and strand-j." in text
    assert "within a group" not in words(compared()[sheet_pages.COMPARISON])


def test_many_judges_stay_within_the_budget_and_their_names_lead_on_from_a_table_that_has_them_all():
    text = render_comparison([sheets.quay(f"judge-{k:02d}", planted=False) for k in range(30)])[sheet_pages.COMPARISON]
    assert len(text.encode()) <= 200 * KB
    assert "Figures draw the first twelve judges by name; the tables hold all 30." in words(text)
    (table,) = re.findall(r'<section class="sec" id="table".*?</section>', text, flags=re.S)
    assert not links_to(table, r"datasheet/[^\"#]+")
    assert all(f'href="datasheet/judge-{k:02d}.html#every"' in table for k in range(30))


# --- the summary figure ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_the_summary_is_one_self_contained_picture(name):
    root = ElementTree.fromstring(figure(name))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert 1120 <= float(root.attrib["width"]) <= 1200
    title, desc = root[0], root[1]
    assert title.text
    assert desc.text
    assert root.attrib["aria-labelledby"].split() == [title.attrib["id"], desc.attrib["id"]]
    assert "var(--" not in figure(name)
    assert not re.search(r"<script|<image|<foreignObject|@import|href=|onload=", figure(name))
    ids = re.findall(r'\bid="([^"]+)"', figure(name))
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", figure(name))) <= set(ids)


def test_the_summary_holds_all_figures_and_the_profile_and_no_text_of_it_is_small():
    text = words(figure("quay"))
    for said in (
        "Nothing to choose, and only wording to choose by", "How big a difference it notices",
        "Where false preference comes from", "What being strict about ties gives and takes",
        "By position, or by wording?",
        "Given nothing to choose between, it still chose in 7 of 120 calls.",
    ):  # fmt: skip
        assert said in text
    sizes = [float(size) for size in re.findall(r"font(?:-size)?:([\d.]+)px", figure("quay"))]
    assert min(sizes) >= 12


# --- hostile records ------------------------------------------------------------------------------------------------


TEXT = st.text(max_size=40)


@settings(max_examples=15, deadline=None)
@given(name=TEXT.filter(str.strip), note=TEXT)
def test_no_text_breaks_out_of_its_place(name, note):
    one = replace(
        sheets.sheet(name, [*sheets.vacuum(name, (1, 1, 1)), *sheets.decomposition(name, (3, 3, 3, 1, 50))]),
        model=note, sketch=(note,), non_claims=(note,),
    )  # fmt: skip
    measured = (*one.measurements, sheets.missing("own", note or "undefined", note, judge=name, odd=note))
    one = replace(one, measurements=measured)
    for path, text in {**render_datasheet(one, (sheets.north(),)), **render_comparison((one,))}.items():
        text.encode("utf-8")
        if path.endswith(".svg"):
            ElementTree.fromstring(text)
        elif path.endswith(".html"):
            assert len(re.findall("<script", text)) == 1


# --- from calls through their measurements to the page, and from its numbers to their rows ---------------------------


def answered(conditions):
    """Calls in both orders from (condition, delta, verdicts in uv and vu, how many pairs)."""
    for kind, (condition, delta, verdicts, pairs) in enumerate(conditions):
        for k in range(pairs):
            for order, verdict in zip(("uv", "vu"), verdicts, strict=True):
                yield PairCall(
                    pair=f"{kind}-{k}", condition=condition, task=f"t{k % 6}", order=order, verdict=verdict,
                    judge="made", delta=delta, better="u" if delta else None,
                    variant="empty" if condition == "vacuum" else "",
                )  # fmt: skip


def test_measured_calls_reach_the_page_under_the_names_it_reads():
    calls = list(answered([
        ("vacuum", 0.0, ("1", "tie"), 5), ("vacuum", 0.0, ("tie", "tie"), 25), ("same_subset", 0.0, ("1", "1"), 12),
        ("same_subset", 0.0, ("1", "2"), 3), ("same_subset", 0.0, ("tie", "2"), 6),
        ("same_subset", 0.0, ("tie", "tie"), 9), ("ladder", 1.0, ("1", "tie"), 6), ("ladder", 2.0, ("1", "2"), 12),
        ("ladder", 3.0, ("1", "2"), 12),
    ]))  # fmt: skip
    sheet = datasheet.datasheet_of(calls, rng=np.random.default_rng(1))
    text = prose(render_datasheet(sheet)["datasheet/made.html"])
    for said in (
        "it still chose in 5 of 60 calls.",
        "Between equal texts it preferred one in 36 of 60 calls, mostly for its position",
        "(pairs: 12 by position, 3 by text, 6 in one order only)",
            "It noticed one missing requirement in 6 of 12 calls.",
        "In calls: 6 + 24 + 6 + 0 = 36 of 60.", "is 12 of 15 (0.80); it hides the 6 pairs",
        "Position 1 won 12 of 12 pairs in which one position won both orders.", "at a difference of 1.50 requirements",
        "The criterion shift is not measured: strict arm was not run.", "null pairs: hardly a preference",
    ):  # fmt: skip
        assert said in text


@pytest.mark.parametrize("name", [sheet_pages.COMPARISON, "datasheet/quay-j.html", "datasheet/strand-j.html"])
def test_a_number_leads_to_the_row_that_has_it(name):
    pages = compared() | made("quay") | made("north") | made("strand") | made("clean")
    found = links_to(pages[name], r"(?:\.\./)?datasheet/[a-z-]+\.html")
    assert len(found) > 40
    counts = 0
    for path, anchor, text in found:
        row = cells(pages[path.removeprefix("../")])[anchor]
        shown, digits = first_number(text)
        value, _ = first_number(row[1])
        if "." not in text and value <= 1:  # a count of pairs or calls, whose share the row has
            n, _ = first_number(row[4] if len(row) == 6 else row[3])
            assert round(shown / n, 3) == pytest.approx(value, abs=0.0011), (text, row)
            counts += 1
        else:
            assert abs(shown - value) <= 0.51 * 10**-digits + 0.00051, (text, row)
    assert counts < len(found) / 2
