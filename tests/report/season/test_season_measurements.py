"""Every measurement of a season has a row in every language, and numbers of other pages lead to theirs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from html import unescape

import made_season as made
import pytest
from numbers_of_pages import cells, first_number, links_to
from outline import read, words

from assaymark.records import Measurement
from assaymark.report.season import SeasonRun, site_pages
from assaymark.report.season.index import ROWS, measured_pages

LANGUAGES = ("en", "de")


def pages(run: SeasonRun) -> Mapping[str, str]:
    return dict(site_pages(run, [made.made_catalogue(code) for code in LANGUAGES]))


@cache
def site() -> Mapping[str, str]:
    return pages(made.made_season())


@cache
def hostile() -> Mapping[str, str]:
    return pages(made.hostile_season())


def shown(html: str) -> dict[str, str]:
    """The rows of a page by their anchors, as text."""
    table = html[html.index('id="measured-rows"') :]
    found = re.findall(r'<tr data-k="[^"]*" id="([^"]+)">(.*?)</tr>', table, re.DOTALL)
    return {anchor: words(f"<table><tr>{cells}</tr></table>").replace("\u00a0", " ") for anchor, cells in found}


def contrast(high: str, low: str) -> Measurement:
    return Measurement(
        name="contrast", labels={"dimension": "aggregate", "high": high, "low": low}, value=8.25, low=-1.5, high=18.0,
        level=0.95, n=8, n_of="common periods", method="paired", unit="points",
    )  # fmt: skip


def with_order(run, high: str, low: str, level: str = "qualified"):
    """A season in which one pair is decided."""
    one = next(one for one in made.made_season().decided.verdicts if one.kind == "above")
    claim = replace(one.verdict.claim, subjects=(high, low))
    verdict = replace(one, verdict=replace(one.verdict, claim=claim, publication_level=level))
    return replace(run, decided=replace(run.decided, verdicts=(verdict,)))


@pytest.mark.parametrize("folder", ["", "de/"])
def test_every_measurement_has_one_row(folder):
    run = made.made_season()
    rows = shown(site()[f"{folder}measurements.html"])
    assert len(rows) == len(run.measurements)
    for row in measured_pages(run.measurements)["measurements.html"]:
        item = next(one for one in run.measurements if one.id == row.id)
        for label in set(item.labels.values()) & {one.name for one in (*run.plan.agents, *run.plan.panel)}:
            assert label in rows[row.anchor]


def test_a_row_reads_in_its_language():
    item = contrast("Fir", "Alder")
    run = with_order(replace(made.made_season(2, 3), measurements=(item,)), "Fir", "Alder")
    made_site = pages(run)
    ((_, english),), ((_, german),) = (shown(made_site[f"{folder}measurements.html"]).items() for folder in ("", "de/"))
    assert "higher Fir; lower Alder +8.2 points −1.5 to +18.0, 95 % 8 common periods paired" in english
    assert "höher Fir; niedriger Alder +8,2 Punkte −1,5 bis +18,0, 95 % 8 gemeinsame Zeiträume paired" in german
    assert "supports no claim by itself" in words(made_site["measurements.html"])
    assert '<span lang="en">paired</span>' in made_site["de/measurements.html"]


def test_the_numbers_of_an_unsupported_pair_and_of_a_shared_rank_are_not_shown():
    item = contrast("Fir", "Alder")
    run = with_order(replace(made.made_season(2, 3), measurements=(item,)), "Fir", "Alder", "no-claim")
    ((_, english),) = shown(pages(run)["measurements.html"]).items()
    ((_, german),) = shown(pages(run)["de/measurements.html"]).items()
    assert english == "Difference over periods Alder and Fir not shown: no supported order 8 common periods paired"
    assert "Alder und Fir nicht gezeigt: keine belegte Rangfolge" in german
    season = made.made_season()
    rows = shown(site()["measurements.html"])
    links = {row.id: row.anchor for row in measured_pages(season.measurements)["measurements.html"]}
    for place in season.decided.places:
        item = next(one for one in season.measurements if one.id == f"season.total[agent={place.agent}]")
        ranged = "range of the judges; it shares its tier" in rows[links[item.id]]
        assert ranged == (not place.shown and item.value is not None)


def test_what_has_no_value_says_why():
    item = replace(
        contrast("Fir", "Alder"),
        value=None,
        low=None,
        high=None,
        level=None,
        state="cannot be tested (3 common clusters that follow each other in time; 12 are needed)",
    )
    run = with_order(replace(made.made_season(2, 3), measurements=(item,)), "Fir", "Alder")
    made_site = pages(run)
    assert "cannot be tested: too few common periods no interval" in words(made_site["measurements.html"])
    assert "nicht prüfbar: zu wenige gemeinsame Zeiträume" in words(made_site["de/measurements.html"])


def test_neither_place_nor_link_tells_who_leads():
    first, second = (measured_pages((contrast(*pair),)) for pair in (("Fir", "Alder"), ("Alder", "Fir")))
    assert [row.anchor for row in first["measurements.html"]] == [row.anchor for row in second["measurements.html"]]


@pytest.mark.parametrize("folder", ["", "de/"])
def test_numbers_of_claims_and_the_panel_lead_to_their_rows(folder):
    rows = shown(site()[f"{folder}measurements.html"])
    for page in ("claims.html", "panel.html", "index.html"):
        links = re.findall(r'href="measurements\.html#([^"]+)"', site()[f"{folder}{page}"])
        assert links, page
        assert set(links) <= set(rows), page
    panel = site()[f"{folder}panel.html"]
    for name in ("kappa", "noise", "invalid", "alone", "self_preference"):
        mine = [one for one in made.made_season().measurements if one.name == f"season.{name}"]
        anchors = {row.anchor for row in measured_pages(mine)["measurements.html"]}
        assert anchors & set(re.findall(r"measurements\.html#([^\"]+)", panel)), name


def test_a_card_names_at_most_six_measurements_and_counts_the_others():
    run = made.made_season()
    one = run.decided.verdicts[0]
    ids = tuple(item.id for item in run.measurements[:9])
    decided = replace(run.decided, verdicts=(replace(one, verdict=replace(one.verdict, measurements=ids)),))
    page = pages(replace(run, decided=decided))["claims.html"]
    assert page.count('href="measurements.html#') == 6
    assert "Rests on 9 measurements" in words(page)
    assert "and 3 more" in words(page)


def test_a_long_season_has_parts_that_are_the_same_in_every_language():
    many = tuple(
        Measurement(name="season.total", labels={"agent": f"a{at:04d}"}, value=1.0, n=1, n_of="judges", method="m")
        for at in range(ROWS + 1)
    )
    made_site = pages(replace(made.made_season(2, 3), measurements=many))
    assert len(shown(made_site["measurements-002.html"])) == 1
    assert list(shown(made_site["de/measurements-002.html"])) == list(shown(made_site["measurements-002.html"]))
    assert max(len(html.encode()) for html in made_site.values()) < 1_000_000


def test_where_records_have_pages_a_measurement_leads_to_them():
    run = made.made_season(2, 3)
    judge, agent = run.plan.panel[0].name, run.plan.agents[0].name
    records = {
        ("grades", judge, agent): "records/grades.html#r1",
        ("guesses", judge, ""): "records/guesses.html#r2",
        ("decisions", agent, ""): "records/decisions.html#r3",
    }
    made_site = pages(replace(run, records=records))
    for folder, up in (("", ""), ("de/", "../")):
        html = made_site[f"{folder}measurements.html"]
        for place in records.values():
            assert f'href="{up}{place}"' in html
    total = next(
        row for row in shown(made_site["measurements.html"]).values() if row.startswith(f"Total agent {agent}")
    )
    assert total.endswith(f"grades by {judge}")
    returned = [row for row in shown(made_site["measurements.html"]).values() if row.startswith("Return")]
    assert returned
    assert not any("grades by" in row for row in returned)
    assert "Rests on</th>" not in site()["measurements.html"]


def test_labels_of_records_become_no_markup():
    outline = read(hostile()["measurements.html"])
    assert "img" not in outline.tags
    assert outline.tags.count("script") == 1
    assert '<script>alert("x")' not in hostile()["measurements.html"]
    assert '<script>alert("x")</script>' in unescape(hostile()["measurements.html"])


def test_equal_seasons_give_equal_bytes_whatever_the_order_of_their_measurements():
    run = made.made_season(4, 6)
    turned = replace(run, measurements=tuple(reversed(run.measurements)))
    for path in ("measurements.html", "de/measurements.html"):
        assert pages(run)[path] == pages(turned)[path]


# --- what leads here --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["", "de/"])
@pytest.mark.parametrize(
    ("page", "least"),
    [("index.html", 20), ("panel.html", 18), ("agents/Alder.html", 8), ("agents/Birch.html", 8)],
)
def test_a_number_leads_to_the_row_that_has_it(folder, page, least):
    """A row has a decimal of what the board rounds to whole points.

    What a total changes by without a judge leads to the total without that judge, and is left out here.
    """
    rows = cells(site()[f"{folder}measurements.html"])
    text = re.sub(r'<section class="sec" id="without".*?</section>', "", site()[f"{folder}{page}"], flags=re.DOTALL)
    found = links_to(text, r"(?:\.\./)?measurements\.html")
    numbers = [(rows[anchor], text) for _, anchor, text in found if re.search(r"\d", text)]
    assert len(numbers) >= least
    for row, text in numbers:
        shown, digits = first_number(text.replace(",", ".") if folder else text)
        value, places = first_number(row[2].replace(",", ".") if folder else row[2])
        if text.endswith("of 40") or "von" in text or " of " in text:  # a count, whose share the row has
            continue
        assert abs(shown - value) <= 0.51 * (10**-digits + 10**-places), (text, row)


def test_a_range_of_judges_leads_to_what_each_of_them_gave():
    board = site()["index.html"]
    ranges = re.findall(r'<a href="(agents/[^"#]+)#graded">(\d+)(?:–(\d+))?</a>', board)
    assert len(ranges) > 5
    for path, *_ in ranges:
        assert '<section class="sec" id="graded"' in site()[path]


def test_what_a_judge_gave_leads_to_its_record_where_records_lie_beside_the_pages():
    run = made.made_season()
    agent, judge = run.plan.agents[0].name, run.plan.panel[0].name
    run = replace(run, records={("grades", judge, agent): "records/grades.html#r1"})
    found = pages(run)
    [path] = [path for path in found if path.startswith("agents/") and path.endswith(f"{agent}.html")]
    assert found[path].count('<a href="../records/grades.html#r1">') > 5
    assert found[f"de/{path}"].count('<a href="../../records/grades.html#r1">') > 5
    assert "records/" not in site()[path]
