"""The first page of a site of several runs: every run with its supported claims, and the menu on every page."""

from __future__ import annotations

import re
from functools import cache
from posixpath import normpath

import assay_runs
import bench_runs
import judged_sheets
import made_season
import pytest
from markup import made_problems
from outline import read, words

from assaymark.report import (
    SiteEntry,
    benchmark_entry,
    judges_entry,
    judges_frame,
    menu,
    portbench,
    render_comparison,
    render_datasheet,
    render_pages,
    render_site_index,
    season_entry,
    site_of,
    study_entry,
)  # fmt: skip
from assaymark.report import season as season_pages

CATALOGUES = [made_season.made_catalogue(code) for code in ("en", "de")]


@cache
def parts_of() -> tuple:
    """A benchmark, a season, and two datasheets."""
    return bench_runs.eight(), made_season.made_season(3, 8), [judged_sheets.quay(), judged_sheets.north()]


@cache
def runs() -> dict[str, SiteEntry]:
    bench, season, sheets = parts_of()
    return {
        "bench": benchmark_entry(bench), "season": season_entry(season, CATALOGUES[0]),
        "study": study_entry(assay_runs.realistic()), "sheets": judges_entry(sheets, "Our judges"),
    }  # fmt: skip


@cache
def site() -> dict[str, str]:
    links, (bench, season, sheets) = menu(runs()), parts_of()
    frame = judges_frame(site=site_of(links, "sheets"))
    judged = {**render_comparison(sheets, frame=frame)}
    for one in sheets:
        judged |= render_datasheet(one, [other for other in sheets if other is not one], frame)
    parts = {
        "bench": portbench.render_benchmark(bench, site_of(links, "bench")),
        "season": dict(season_pages.site_pages(season, CATALOGUES, site_of(links, "season"))),
        "study": render_pages(assay_runs.realistic(), site_of(links, "study")),
        "sheets": judged,
    }
    pages = {"index.html": render_site_index(runs(), "Supported claims")}
    return pages | {f"{key}/{path}": text for key, part in parts.items() for path, text in part.items()}


def test_runs_stand_by_kind_and_then_by_name_and_the_menu_says_the_kind():
    assert [(link.key, link.word) for link in menu(runs()).values()] == [
        ("study", "Overview"), ("sheets", "Judges"), ("season", "Season"), ("bench", "PortBench"),
    ]  # fmt: skip
    page = words(site()["index.html"])
    at = [page.index(one.title) for one in (runs()[key] for key in ("study", "sheets", "season"))]
    assert at == sorted(at)


def test_two_runs_of_a_kind_are_told_apart_by_their_titles():
    two = {"b": study_entry(assay_runs.realistic()), "a": study_entry(assay_runs.minimal())}
    assert [link.word for link in menu(two).values()] == sorted((one.title for one in two.values()), key=str.casefold)


def test_every_page_has_the_menu_of_the_site_and_every_link_leads_to_a_page():
    made, besides = site(), {"season/judges/north-j.html"}
    assert made_problems(made, besides) == []
    for path, html in made.items():
        here = path.rpartition("/")[0]
        links = re.findall(r'<a [^>]*href="([^"#]+)', html) if path.endswith(".html") else []
        aims = {normpath(f"{here}/{link}").lstrip("/") for link in links}
        every = {"study/index.html", "sheets/datasheets.html", "season/index.html", "bench/index.html", "index.html"}
        assert not path.endswith(".html") or every <= aims, path


def test_only_supported_sentences_are_quoted_and_a_run_without_any_says_so():
    run = assay_runs.realistic()
    withheld = [one.claim.statement for one in run.verdicts if one.publication_level == "no-claim"]
    page = words(site()["index.html"])
    assert withheld
    assert not any(sentence in page for sentence in withheld)
    none = words(render_site_index({"one": study_entry(assay_runs.withheld())}, "Supported claims"))
    total = len(assay_runs.withheld().verdicts)
    assert f"No claim is supported by this evidence: {total:,} claims decided." in none


@pytest.mark.parametrize("made", [
    study_entry(assay_runs.hostile()), benchmark_entry(bench_runs.hostile()),
    season_entry(made_season.hostile_season(), made_season.made_catalogue()),
    judges_entry([judged_sheets.quay("<script>x</script>")], "<img src=x onerror=y>"),
], ids=["study", "bench", "season", "judges"])  # fmt: skip
def test_hostile_names_are_text(made):
    outline = read(render_site_index({"one": made}, "<script>alert(1)</script>"))
    assert outline.tags.count("script") == 1
    assert "img" not in outline.tags
