"""The pages in a real browser: silent, offline, working without and with script, and the same in every light."""

from __future__ import annotations

from pathlib import Path

import assay_runs as runs
import full_runs
import pytest
from browsing import APART, write_pages
from looking import until

from assaymark.report import render_pages

pytestmark = pytest.mark.browser

RUNS = ("realistic", "named", "large", "withheld", "full", "long")
FIGURES = ("named/index.html", "large/index.html", "long/index.html", "long/claim-map.html", "long/agreement.html")


def made(name: str):
    """A run by its name; ``named`` is the realistic one with judges that are not built in."""
    if name == "named":
        return runs.realistic(reference_panel=())
    return getattr(runs if hasattr(runs, name) else full_runs, name)()


@pytest.fixture(scope="module")
def folder(once) -> Path:
    """All pages of all runs as files."""

    def build(root: Path) -> None:
        for name in RUNS:
            write_pages(root / name, render_pages(made(name)))

    return once("pages-of-studies", build)


OTHER = (
    "claim-map.html", "claims.html", "measurements.html", "ledger/page-001.html", "agents.html", "agreement.html",
    "stability.html", "controls.html", "fact-check.html", "plan.html",
)  # fmt: skip


def test_every_page_is_silent_offline_and_fits_and_labels_of_figures_stay_apart(visit):
    """The first pages of large studies on both screens, all their other pages on a phone, in one tab."""
    page, problems = visit("named/index.html"), []
    wide = [(path, 1440) for path in {*FIGURES, "large/index.html", "long/index.html"}]
    narrow = {*FIGURES, "large/index.html", "long/index.html", *(f"{name}/{path}" for name in ("realistic", "long")
                                                                for path in OTHER)}  # fmt: skip
    for path, width in (*sorted(wide), *((path, 390) for path in sorted(narrow))):
        page.show(path, width)
        problems += [(path, width, one) for one in page.noise]
        problems += [(path, width, "asks for more")] * (len(page.asked) != 1)
        fits = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        problems += [] if fits else [(path, width, "wider than the screen")]
        problems += [(path, width, one) for one in page.evaluate(APART)] if path in FIGURES else []
    assert problems == []


def test_the_finding_and_the_bench_are_on_the_first_screen(visit):
    page = visit("named/index.html")
    for name in ("named", "large", "withheld", "full"):
        page.show(f"{name}/index.html")
        counts, answer = page.evaluate(
            "['.counts', '.answer'].map(one => document.querySelector(one)?.getBoundingClientRect().bottom ?? 0)"
        )
        assert counts < 330
        assert 0 < answer < 720
        assert page.evaluate("document.querySelector('#ahead, #limits').getBoundingClientRect().top") < 1000


# --- the bench --------------------------------------------------------------------------------------------------------


def shown(page) -> str:
    return " ".join(page.locator("#bench").inner_text().split())


def ask(page, one: str, how: str, two: str, score: str = "the overall score") -> str:
    page.locator("#b-one").select_option(label=one)
    page.locator("#b-how").select_option(label=how)
    if two:
        page.locator("#b-two").select_option(label=two)
    page.locator("#b-score").select_option(label=score)
    return shown(page)


def test_the_script_draws_what_the_page_holds_without_it(visit):
    """Choosing the first sentence again changes nothing: neither its words nor its marks."""
    page = visit("named/index.html")
    marks = "[...document.querySelectorAll('#b-gates svg *')].map(e => [...e.attributes].map(a => a.value).join())"
    before, drawn = shown(page), page.evaluate(marks)
    page.evaluate("document.getElementById('b-one').onchange()")
    assert shown(page) == before
    assert page.evaluate(marks) == drawn
    assert page.noise == []


def test_a_supported_sentence_its_reverse_and_one_that_stops(visit):
    page = visit("named/index.html")
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
    same = "I want to say that"
    assert other.split("Not supported", 1)[1] == one.split("Not supported", 1)[1], same
    assert "Badger and Otter score within 0.3 of each other" in one
    limits = ask(page, "Marten", "ranks first", "", "limits")
    assert "Only with its condition “Marten ranks first of the 5 agents on limits.” Say also: " in limits
    assert not page.locator("#b-two").is_visible()
    assert "Equivalence was tested on the overall score alone." in ask(
        page, "Marten", "scores within 0.3 of", "Otter", "limits"
    )
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
        assert gates == 5
        assert dead, "the judges of this run are built in"
        assert "{" not in text
        assert "undefined" not in text
    assert page.noise == []


def test_another_rule_decides_again_and_turns_copying_off(visit):
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


def test_a_link_opens_its_sentence_and_an_unknown_one_says_so(visit, folder):
    page = visit("named/index.html#say=Badger.above.Otter.aggregate")
    assert "Any ranking of Badger and Otter" in shown(page)
    page.evaluate("location.hash = '#say=Marten.first.limits'")
    until(page, "document.getElementById('b-said').textContent.includes('limits')")
    ask(page, "Marten", "scores above", "Stoat", "sizing")
    assert page.url.endswith("#say=Marten.above.Stoat.sizing")
    page = visit("named/index.html#say=nobody.above.Otter.aggregate")
    assert "This link names an agent or score that this study does not have" in shown(page)
    assert "“Marten scores above" in shown(page)
    page = visit("large/index.html#say=Kingfisher.above.Teal.sizing")
    page.wait_for_url("**/sentences-*.html#say=Kingfisher.above.Teal.sizing")
    assert "Kingfisher scores above Teal on sizing." in shown(page)


def test_no_sentence_is_copied_without_its_condition(visit):
    page = visit("named/index.html#say=Marten.first.limits", permissions=["clipboard-read", "clipboard-write"])
    page.locator("#b-copy").click()
    page.locator("#b-copy", has_text="Copied").wait_for()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.startswith(
        "“Marten ranks first of the 5 agents on limits.” The judges agree only weakly on this score."
    )
    assert runs.PLAN in text


def test_without_script_the_bench_shows_its_first_sentence_and_a_way_to_all(visit):
    page = visit("named/index.html", java_script_enabled=False)
    assert "“Marten scores above" in shown(page)
    assert not page.locator("#b-one").is_visible()
    assert not page.locator("#b-copy").is_visible()
    assert page.locator("noscript li a").count() == page.locator("noscript li .g").count() > 50


def test_on_paper_the_bench_is_its_sentence_and_its_gates(visit):
    page = visit("named/index.html")
    page.emulate_media(media="print")
    assert not page.locator(".ask").is_visible()
    assert not page.locator(".rules").is_visible()
    assert page.locator("#b-said").is_visible()
    assert page.locator("#b-gates li").count() == 5


# --- tables and cards -------------------------------------------------------------------------------------------------


def test_filters_and_search_show_what_they_count(visit):
    page = visit("realistic/ledger/page-001.html")
    visible = "[...document.querySelectorAll('#ledger-rows tbody tr')].filter(r => !r.hidden)"
    button = page.locator('[data-tools="ledger-rows"] button[data-f="contradicted"]')
    button.click()
    shown = page.evaluate(f"{visible}.length")
    assert button.get_attribute("aria-pressed") == "true"
    assert button.text_content() == f"Contradicted {shown}"
    assert page.evaluate(f"{visible}.every(r => r.dataset.k === 'contradicted')")
    assert page.locator('[data-tools="ledger-rows"] output').text_content().startswith(f"{shown} of ")
    page.locator('[data-tools="ledger-rows"] button[data-f=""]').click()
    page.locator('[data-tools="ledger-rows"] input').fill("rec-00007")
    assert 0 < page.evaluate(f"{visible}.length") < 10
    assert page.noise == []


def test_cards_are_filtered_like_rows(visit):
    page = visit("full/claims.html")
    visible = "[...document.querySelectorAll('#claim-rows > li')].filter(r => !r.hidden)"
    button = page.locator('[data-tools="claim-rows"] button[data-f="headline"]')
    button.click()
    shown = page.evaluate(f"{visible}.length")
    assert 0 < shown < page.locator("#claim-rows > li").count()
    assert button.text_content() == f"Supported {shown}"
    assert page.evaluate(f"{visible}.every(r => r.dataset.k === 'headline')")
    assert page.noise == []


def test_without_script_all_rows_show_and_no_dead_button_does(visit):
    page = visit("realistic/ledger/page-001.html", java_script_enabled=False)
    assert page.locator("#ledger-rows tbody tr").nth(99).is_visible()
    assert not page.locator(".tools").first.is_visible()
    assert not visit("realistic/claims.html", java_script_enabled=False).locator(".copy").first.is_visible()


def test_dark_mode_and_forced_colours_follow_the_reader(visit):
    light, dark = visit("named/index.html"), visit("named/index.html", color_scheme="dark")
    paint = "getComputedStyle(document.body).backgroundColor"
    assert light.evaluate(paint) == "rgb(255, 255, 255)"
    assert dark.evaluate(paint) == "rgb(17, 21, 26)"
    assert dark.noise == []
    forced = visit("named/index.html", forced_colors="active")
    style = "getComputedStyle(document.querySelector('.answer')).borderLeftStyle"
    assert visit("withheld/index.html", forced_colors="active").evaluate(style) == "dashed"
    assert forced.evaluate(style) == "solid"


def test_one_width_of_each_figure_is_shown(visit):
    shown = (
        "[...document.querySelectorAll('svg.fig')]"
        ".filter(e => getComputedStyle(e).display !== 'none').map(e => e.classList[1])"
    )
    assert "narrow" not in visit("realistic/index.html").evaluate(shown)
    assert "wide" not in visit("realistic/index.html", 390).evaluate(shown)
