"""The pages in a real browser: silent, offline, working without and with script, and the same in every light."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import assay_runs as runs
import full_runs
import pytest
from browsing import APART, FITS, write_pages
from looking import until

from assaymark.report import render_pages

pytestmark = pytest.mark.browser

FIGURES = ("named/index.html", "large/index.html", "long/index.html", "long/claim-map.html", "long/agreement.html")
OTHER = (
    "claims.html", "measurements.html", "ledger/page-001.html", "agents.html", "stability.html", "controls.html",
    "fact-check.html", "plan.html",
)  # fmt: skip
ENDS = "['.counts', '.answer'].map(one => document.querySelector(one)?.getBoundingClientRect().bottom ?? 0)"
WIDTHS = """[...document.querySelectorAll('svg.fig')].filter(e => getComputedStyle(e).display !== 'none')
  .map(e => e.classList[1])"""
BORDER = "getComputedStyle(document.querySelector('.answer')).borderLeftStyle"
PAINT = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def folder(once) -> Path:
    """All pages of all runs as files; ``named`` is the realistic one with judges that are not built in."""

    def build(root: Path) -> None:
        named, large, long = runs.realistic(reference_panel=()), runs.large(), full_runs.long()
        made = {"named": named, "large": large, "long": long, "withheld": runs.withheld(), "full": full_runs.full()}
        for name, run in made.items():
            write_pages(root / name, render_pages(replace(run, evidence=run.evidence[:1500])))

    return once("pages-of-studies", build)


def test_every_page_is_silent_offline_and_fits_and_labels_of_figures_stay_apart(visit):
    """Finding and bench are on the first screen, one width of each figure is shown, and light follows the reader."""
    page, problems = visit("named/index.html"), []
    for path in (*FIGURES, "withheld/index.html", "full/index.html", *(f"long/{path}" for path in OTHER)):
        page.show(path, 1440)
        if path.endswith("index.html") and not path.startswith("long"):
            counts, answer = page.evaluate(ENDS)
            assert (counts < 330, 0 < answer < 720) == (True, True), path
            assert page.evaluate("document.querySelector('#ahead, #limits').getBoundingClientRect().top") < 1000
        for width, other in ((1440, "narrow"), (390, "wide")):
            page.set_viewport_size({"width": width, "height": 900})
            problems += [] if page.evaluate(FITS) else [(path, width, "wider than the screen")]
            problems += [(path, width, one) for one in page.evaluate(APART)] if path in FIGURES else []
            assert other not in page.evaluate(WIDTHS)
        problems += [(path, one) for one in (*page.noise, *page.asked[1:])]
        if path in ("named/index.html", "withheld/index.html"):
            page.emulate_media(forced_colors="active")
            assert page.evaluate(BORDER) == ("dashed" if path.startswith("withheld") else "solid")
            page.emulate_media(forced_colors="none")
            for scheme, paint in (("dark", "rgb(17, 21, 26)"), ("light", "rgb(255, 255, 255)")):
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate(PAINT) == paint
    assert problems == []


# --- the bench --------------------------------------------------------------------------------------------------------


def shown(page) -> str:
    return " ".join(page.locator("#bench").inner_text().split())


def ask(page, one: str, how: str, two: str, score: str = "the overall score") -> str:
    for box, label in {"one": one, "how": how, "two": two, "score": score}.items():
        if label:
            page.locator(f"#b-{box}").select_option(label=label)
    return shown(page)


def test_a_supported_sentence_its_reverse_and_one_that_stops(visit):
    page = visit("named/index.html")
    marks = "[...document.querySelectorAll('#b-gates svg *')].map(e => [...e.attributes].map(a => a.value).join())"
    before = shown(page), page.evaluate(marks)
    page.evaluate("document.getElementById('b-one').onchange()")
    assert (shown(page), page.evaluate(marks)) == before, "the script draws what the page holds without it"
    said = ask(page, "Marten", "scores above", "Otter")
    assert "Supported “Marten scores above Otter on the overall score.”" in said
    assert "Copy sentence" in said
    reverse = ask(page, "Otter", "scores above", "Marten")
    assert "Not supported The other direction is supported. Nothing to copy" in reverse
    assert "Nearest supported sentence “Marten scores above Otter on the overall score.” supported" in reverse
    assert ask(page, "Otter", "scores below", "Marten").split("What would")[0].count("“Marten scores above Otter") == 1
    one = ask(page, "Badger", "scores above", "Otter")
    assert "Not supported Any ranking of Badger and Otter on the overall score." in one
    assert "Stops here. adjusted p = .410; .04 needed" in one
    assert one.count("not reached") == 3
    other = ask(page, "Otter", "scores above", "Badger")
    assert other.split("Not supported", 1)[1] == one.split("Not supported", 1)[1], "the same in both directions"
    assert "Badger and Otter score within 0.3 of each other" in one
    limits = ask(page, "Marten", "ranks first", "", "limits")
    assert "Only with its condition “Marten ranks first of the 5 agents on limits.” Say also: " in limits
    assert not page.locator("#b-two").is_visible()
    within = ask(page, "Marten", "scores within 0.3 of", "Otter", "limits")
    assert "Equivalence was tested on the overall score alone." in within
    assert page.noise == []


def test_every_question_has_an_answer(visit):
    page = visit("full/index.html")
    found = page.evaluate("""() => {
      const of = id => [...document.getElementById(id).options].map(o => o.value), out = [];
      const all = ["b-one", "b-how", "b-two", "b-score"].map(of);
      for (const a of all[0]) for (const h of all[1]) for (const b of all[2]) for (const s of all[3]) {
        const ids = ["b-one", "b-how", "b-two", "b-score"];
        ids.forEach((id, at) => document.getElementById(id).value = [a, h, b, s][at]);
        document.getElementById("b-score").onchange();
        out.push([document.getElementById("b-level").textContent.trim(), document.getElementById("b-said").textContent,
                  document.querySelectorAll("#b-gates li").length, document.getElementById("b-copy").disabled]);
      }
      return out;
    }""")
    assert len(found) == 5 * 4 * 5 * 7
    for level, text, gates, dead in found:
        assert level in ("Supported", "Only with its condition", "Not supported")
        assert text.startswith("“") == (level != "Not supported")
        assert (gates, dead) == (5, True), "the judges of this run are built in"
        assert not re.search(r"\{|undefined", text)
    assert page.noise == []


def test_another_rule_decides_again_and_turns_copying_off_and_paper_has_sentence_and_gates(visit):
    page = visit("named/index.html")
    before = page.locator(".counts").inner_text()
    page.locator("[name=rule]").nth(2).check()
    said = shown(page)
    assert "Decided by lower bound of kappa, not by the preregistered rule." in said
    assert "Nothing to copy" in said
    assert page.locator(".counts").inner_text() != before
    assert page.evaluate("document.activeElement.name") == "rule"
    page.locator("[name=rule]").first.check()
    assert page.locator(".counts").inner_text() == before
    assert page.locator("#b-copy").is_enabled()
    page.emulate_media(media="print")
    assert [page.locator(one).is_visible() for one in (".ask", ".rules", "#b-said")] == [False, False, True]
    assert page.locator("#b-gates li").count() == 5


def test_a_link_opens_its_sentence_an_unknown_one_says_so_and_none_is_copied_without_its_condition(visit):
    page = visit("named/index.html#say=Badger.above.Otter.aggregate",
                 permissions=["clipboard-read", "clipboard-write"])  # fmt: skip
    assert "Any ranking of Badger and Otter" in shown(page)
    page.evaluate("location.hash = '#say=Marten.first.limits'")
    until(page, "document.getElementById('b-said').textContent.includes('limits')")
    page.locator("#b-copy").click()
    page.locator("#b-copy", has_text="Copied").wait_for()
    text = page.evaluate("navigator.clipboard.readText()")
    first = "“Marten ranks first of the 5 agents on limits.” The judges agree only weakly on this score."
    assert text.startswith(first)
    assert runs.PLAN in text
    ask(page, "Marten", "scores above", "Stoat", "sizing")
    assert page.url.endswith("#say=Marten.above.Stoat.sizing")
    page = visit("named/index.html#say=nobody.above.Otter.aggregate")
    assert "This link names an agent or score that this study does not have" in shown(page)
    assert "“Marten scores above" in shown(page)
    page.show("large/index.html#say=Kingfisher.above.Teal.sizing")
    page.wait_for_url("**/sentences-*.html#say=Kingfisher.above.Teal.sizing")
    assert "Kingfisher scores above Teal on sizing." in shown(page)


def test_without_script_the_bench_shows_a_sentence_and_a_way_to_all_and_tables_all_rows_and_no_dead_button(visit):
    page = visit("named/index.html", java_script_enabled=False)
    assert "“Marten scores above" in shown(page)
    assert [page.locator(one).is_visible() for one in ("#b-one", "#b-copy")] == [False, False]
    assert page.locator("noscript li a").count() == page.locator("noscript li .g").count() > 50
    page.show("full/ledger/page-001.html")
    assert page.locator("#ledger-rows tbody tr").nth(99).is_visible()
    assert not page.locator(".tools").first.is_visible()
    page.show("full/claims.html")
    assert not page.locator(".copy").first.is_visible()


def test_filters_and_search_show_what_they_count(visit):
    page = visit("full/ledger/page-001.html")
    visible = "[...document.querySelectorAll('#ledger-rows tbody tr')].filter(r => !r.hidden)"
    button = page.locator('[data-tools="ledger-rows"] button[data-f="contradicted"]')
    button.click()
    shown = page.evaluate(f"{visible}.length")
    assert (button.get_attribute("aria-pressed"), button.text_content()) == ("true", f"Contradicted {shown}")
    assert page.evaluate(f"{visible}.every(r => r.dataset.k === 'contradicted')")
    assert page.locator('[data-tools="ledger-rows"] output').text_content().startswith(f"{shown} of ")
    page.locator('[data-tools="ledger-rows"] button[data-f=""]').click()
    page.locator('[data-tools="ledger-rows"] input').fill("rec-00007")
    assert 0 < page.evaluate(f"{visible}.length") < 10
    assert page.noise == []
