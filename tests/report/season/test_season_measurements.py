"""Every measurement of a season has a row in every language, and numbers of other pages lead to theirs."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from made_season import made_season, pages, site
from outline import cells, first_number, links_to, read, words

from assaymark.records import Measurement
from assaymark.report import season as season_pages

ITEM = Measurement(
    name="contrast", labels={"dimension": "aggregate", "high": "Fir", "low": "Alder"}, value=8.25, low=-1.5, high=18.0,
    level=0.95, n=8, n_of="common periods", method="paired", unit="points",
)  # fmt: skip


def shown(html: str) -> dict[str, str]:
    """The rows of a page by their anchors, as text."""
    table = html[html.index('id="measured-rows"') :]
    found = re.findall(r'<tr data-k="[^"]*" id="([^"]+)">(.*?)</tr>', table, re.DOTALL)
    return {anchor: words(f"<table><tr>{cells}</tr></table>").replace("\u00a0", " ") for anchor, cells in found}


def with_order(claimed: str = "qualified", **fields) -> dict[str, str]:
    """The pages of a season in which one pair is decided."""
    one = next(one for one in made_season().decided.verdicts if one.kind == "above")
    claim = replace(one.verdict.claim, subjects=("Fir", "Alder"))
    verdict = replace(one, verdict=replace(one.verdict, claim=claim, publication_level=claimed))
    run = made_season(2, 3)
    measured = (replace(ITEM, **fields),)
    return pages(replace(run, measurements=measured, decided=replace(run.decided, verdicts=(verdict,))))


@pytest.mark.parametrize("folder", ["", "de/"])
def test_every_measurement_has_one_row_and_numbers_of_claims_and_the_panel_lead_to_theirs(folder):
    run, rows = made_season(), shown(site("eight")[f"{folder}measurements.html"])
    assert len(rows) == len(run.measurements)
    for item, row in season_pages.paged_measurements(run.measurements)["measurements.html"]:
        for label in set(item.labels.values()) & {one.name for one in (*run.plan.agents, *run.plan.panel)}:
            assert label in rows[row.id]
    for page in ("claims.html", "panel.html", "index.html"):
        links = set(re.findall(r'href="measurements\.html#([^"]+)"', site("eight")[f"{folder}{page}"]))
        assert links, page
        assert links <= set(rows), page
    panel = set(re.findall(r"measurements\.html#([^\"]+)", site("eight")[f"{folder}panel.html"]))
    for name in ("kappa", "noise", "invalid", "alone", "self_preference"):
        mine = [one for one in run.measurements if one.name == f"season.{name}"]
        assert {row.id for _, row in season_pages.paged_measurements(mine)["measurements.html"]} & panel, name


def test_a_row_reads_in_its_language():
    made = with_order()
    ((_, english),), ((_, german),) = (shown(made[f"{folder}measurements.html"]).items() for folder in ("", "de/"))
    assert "higher Fir; lower Alder +8.2 points −1.5 to +18.0, 95 % 8 common periods paired" in english
    assert "höher Fir; niedriger Alder +8,2 Punkte −1,5 bis +18,0, 95 % 8 gemeinsame Zeiträume paired" in german
    assert "supports no claim by itself" in words(made["measurements.html"])
    assert '<span lang="en">paired</span>' in made["de/measurements.html"]


def test_the_numbers_of_an_unsupported_pair_and_of_a_shared_rank_are_not_shown():
    made, season, rows = with_order("no-claim"), made_season(), shown(site("eight")["measurements.html"])
    ((_, english),), ((_, german),) = (shown(made[f"{folder}measurements.html"]).items() for folder in ("", "de/"))
    assert english == "Difference over periods Alder and Fir not shown: no supported ranking 8 common periods paired"
    assert "Alder und Fir nicht gezeigt: keine belegte Rangfolge" in german
    links = {item.id: row.id for item, row in season_pages.paged_measurements(season.measurements)["measurements.html"]}
    for place in season.decided.places:
        item = next(one for one in season.measurements if one.id == f"season.total[agent={place.agent}]")
        ranged = "range of the judges; it shares its tier" in rows[links[item.id]]
        assert ranged == (not place.shown and item.value is not None)
    # Neither place nor link tells who leads.
    turned = replace(ITEM, labels={**ITEM.labels, "high": "Alder", "low": "Fir"})
    first, second = (season_pages.paged_measurements((one,))["measurements.html"] for one in (ITEM, turned))
    assert [row.id for _, row in first] == [row.id for _, row in second]


def test_what_has_no_value_says_why():
    state = "cannot be tested (3 common clusters that follow each other in time; 12 are needed)"
    made = with_order(value=None, low=None, high=None, level=None, state=state)
    assert "cannot be tested: too few common periods no interval" in words(made["measurements.html"])
    assert "nicht prüfbar: zu wenige gemeinsame Zeiträume" in words(made["de/measurements.html"])


def test_a_card_names_at_most_six_measurements_and_counts_the_others():
    run = made_season()
    one, ids = run.decided.verdicts[0], tuple(item.id for item in run.measurements[:9])
    decided = replace(run.decided, verdicts=(replace(one, verdict=replace(one.verdict, measurements=ids)),))
    page = pages(replace(run, decided=decided), "en")["claims.html"]
    assert page.count('href="measurements.html#') == 6
    assert "Rests on 9 measurements" in words(page)
    assert "and 3 more" in words(page)


def test_a_long_season_has_parts_that_are_the_same_in_every_language():
    many = tuple(
        Measurement(name="season.total", labels={"agent": f"a{at:04d}"}, value=1.0, n=1, n_of="judges", method="m")
        for at in range(season_pages.ROWS + 1)
    )
    made = pages(replace(made_season(2, 3), measurements=many))
    rows = shown(made["measurements-002.html"])
    assert len(rows) == 1
    assert list(shown(made["de/measurements-002.html"])) == list(rows)
    assert max(len(html.encode()) for html in made.values()) < 1_000_000


def test_where_records_have_pages_measurements_and_grades_lead_to_them():
    run = made_season(2, 3)
    judge, agent = run.plan.panel[0].name, run.plan.agents[0].name
    records = {
        ("grades", judge, agent): "records/grades.html#r1",
        ("guesses", judge, ""): "records/guesses.html#r2",
        ("decisions", agent, ""): "records/decisions.html#r3",
    }
    made = pages(replace(run, records=records))
    for folder, up in (("", ""), ("de/", "../")):
        assert all(f'href="{up}{place}"' in made[f"{folder}measurements.html"] for place in records.values())
        assert made[f"{folder}agents/{agent}.html"].count(f'<a href="../{up}records/grades.html#r1">') > 5
    rows = shown(made["measurements.html"]).values()
    total = next(row for row in rows if row.startswith(f"Total agent {agent}"))
    assert total.endswith(f"grades by {judge}")
    returned = [row for row in rows if row.startswith("Return")]
    assert returned
    assert not any("grades by" in row for row in returned)
    assert "Rests on</th>" not in site("eight")["measurements.html"]
    assert "records/" not in site("eight")[f"agents/{agent}.html"]


def test_labels_of_records_become_no_markup():
    html = site("hostile")["measurements.html"]
    outline = read(html)
    assert "img" not in outline.tags
    assert outline.tags.count("script") == 1
    assert '<script>alert("x")' not in html
    assert '<script>alert("x")</script>' in unescape(html)


def test_equal_seasons_give_equal_bytes_whatever_the_order_of_their_measurements():
    run = made_season(4, 6)
    one, two = pages(run), pages(replace(run, measurements=tuple(reversed(run.measurements))))
    assert pages(made_season(4, 6)) == one
    for path in ("measurements.html", "de/measurements.html"):
        assert one[path] == two[path]


# --- what leads here --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["", "de/"])
@pytest.mark.parametrize(
    ("page", "least"), [("index.html", 20), ("panel.html", 18), ("agents/Alder.html", 8), ("agents/Birch.html", 8)]
)
def test_a_number_leads_to_the_row_that_has_it(folder, page, least):
    """A row has a decimal of what the board rounds to whole points.
    What a total changes by without a judge leads to the total without that judge, and is left out here."""
    rows = cells(site("eight")[f"{folder}measurements.html"])
    html = re.sub(r'<section class="sec" id="without".*?</section>', "", site("eight")[folder + page], flags=re.DOTALL)
    found = links_to(html, r"(?:\.\./)?measurements\.html")
    numbers = [(rows[anchor], text) for _, anchor, text in found if re.search(r"\d", text)]
    assert len(numbers) >= least
    for row, text in numbers:
        value_shown, digits = first_number(text.replace(",", ".") if folder else text)
        value, places = first_number(row[2].replace(",", ".") if folder else row[2])
        if text.endswith("of 40") or "von" in text or " of " in text:  # a count, whose share the row has
            continue
        assert abs(value_shown - value) <= 0.51 * (10**-digits + 10**-places), (text, row)


def test_a_range_of_judges_leads_to_what_each_of_them_gave():
    ranges = re.findall(r'<a href="(agents/[^"#]+)#graded">(\d+)(?: to (\d+))?</a>', site("eight")["index.html"])
    assert len(ranges) > 5
    for path, *_ in ranges:
        assert '<section class="sec" id="graded"' in site("eight")[path]
