"""The pages of agents: whole, small, escaped, in two languages alike, and silent on what is withheld."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest
from made_season import HOSTILE, made_catalogue, made_season, planned, redecided, site, specs
from made_season import pages as every_page
from outline import html_of, read, words

from assaymark.records import Action, Rationale
from assaymark.report import season as season_pages
from assaymark.text import clean

LINES = 'id="claim-lines"'
NASTY = (
    HOSTILE, '"><svg onload=alert(1)>', "' onmouseover='alert(1)", "]]>-->", "W" * 4000, "\u202e\u2066evil\u2069",
    "שלום עולם", "\x00\x07\x1b[2J\x85\ud800", "{{ self }}{% include 'x' %}", "a\u2028b\u2029c", "</style><style>*{}",
    "https://evil.example/?q=<", "%s %d {0} {name}", "&lt;script&gt;",
)  # fmt: skip


def of_agents(found: dict[str, str]) -> dict[str, str]:
    return {path: html for path, html in html_of(found).items() if path.removeprefix("de/").startswith("agents/")}


def pages(run: season_pages.SeasonRun, *languages: str) -> dict[str, str]:
    return of_agents(every_page(run, *languages))


def said(agent: str, folder: str = "", name: str = "eight") -> str:
    return words(site(name)[f"{folder}agents/{agent}.html"])


def nasty_season(text: str) -> season_pages.SeasonRun:
    """A season in which one text stands wherever a record can hold one."""
    run = made_season(2, 3, hostile=False)
    refusal = replace(made_season(1, 10).steps["Alder"][7].rejections[0], symbol=text, reason=text, text=text)
    said = {
        "actions": (Action(instrument=text, kind="buy"),), "flags": (text, "no-answer"), "missing": (text,),
        "rationales": (Rationale(text=text, kind="summary"), Rationale(text=text, kind=text)),
    }  # fmt: skip
    steps = {
        name: tuple(
            redecided(replace(one, day=text, fills=tuple(replace(fill, symbol=text) for fill in one.fills),
                              rejections=(refusal,), mismatches=(text,)), **said)
            for one in mine
        )
        for name, mine in run.steps.items()
    }  # fmt: skip
    line = {"quote": text, "saw": text, "rule": text, "judges": {text: text}, "day": text}
    ledger = {name: tuple(replace(one, **line) for one in lines) for name, lines in run.ledger.items()}
    grade = {"verdict": text, "summary": text, "reason": text, "lookahead": text, "lookahead_reason": text}
    grades = tuple(replace(one, **grade, state="ok" if at % 2 else text) for at, one in enumerate(run.grades))
    agents, told = specs(run.plan.agents, family=text, model=text), {one.name: text for one in run.plan.agents}
    plan = planned(run, agents=agents, strategies=told, title=text, currency=text)
    return replace(plan, steps=steps, ledger=ledger, grades=grades)


@cache
def calm() -> tuple[set[str], set[str], set[str]]:
    """Paths, tags and attributes of the pages of a season whose texts are harmless."""
    found = pages(nasty_season("calm"))
    known = [read(html) for html in found.values()]
    tags, attributes = (set().union(*(getattr(one, kind) for one in known)) for kind in ("tags", "attributes"))
    return set(found), tags, attributes


def rows_of(html: str) -> list[tuple[str, str]]:
    """The keys of the rows of the fact check, and their markup."""
    body = html[html.index(LINES) :]
    return re.findall(r'<tr data-k="([^"]*)"(.*?)</tr>', body[: body.index("</table>")], re.DOTALL)


# --- hostile texts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_no_text_of_a_record_becomes_markup(text):
    paths, tags, attributes = calm()
    found = pages(nasty_season(text))
    assert found.keys() == paths
    for html in found.values():
        outline = read(html)
        assert set(outline.tags) <= tags
        assert set(outline.attributes) <= attributes | {"data-x"}
        assert html.count("<script") <= 2
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", html)
        assert not any("evil" in link or "<" in link for link in outline.links)
        html.encode("utf-8")


def test_hostile_texts_are_shown_as_they_were_written():
    path = next(path for path in of_agents(site("hostile")) if "birch" in path and "decisions" in path)
    assert " ".join(clean(HOSTILE).split()) in words(site("hostile")[path])


def test_names_that_are_no_file_names_have_pages_that_do_not_collide():
    run, names = made_season(4, 3), ("a/../../b", "A/../../B", "agents", "")
    agents = tuple(run.plan.agents[0].model_copy(update={"name": name}) for name in names)
    places = tuple(replace(run.decided.places[0], agent=name) for name in names)
    found = pages(replace(planned(run, agents=agents), decided=replace(run.decided, places=places, tiers=())))
    heads = [path for path in found if not re.search(r"/(ledger|decisions|checks)(-\d+)?\.html$", path)]
    assert len({path.lower() for path in heads}) == 2 * len(names)
    assert all(re.fullmatch(r"(de/)?agents/[A-Za-z0-9][A-Za-z0-9._-]*\.html", path) for path in found)


# --- the pages together -----------------------------------------------------------------------------------------------


def test_a_year_has_small_pages_the_same_in_both_languages_with_every_claim_and_decision_once():
    for claims in (0, 12):
        run = made_season(1, 250, claims_a_day=claims)
        found = pages(run)
        english = {path: html for path, html in found.items() if not path.startswith("de/")}
        assert len(found) == 2 * len(english)
        for path, html in english.items():
            german = found[f"de/{path}"]
            assert re.findall(r' id="(d\d+)"', html) == re.findall(r' id="(d\d+)"', german)
            if LINES in html:
                assert [key for key, _ in rows_of(html)] == [key for key, _ in rows_of(german)]
        for path, html in found.items():
            main = path.count("/") == 1 + path.startswith("de/")
            assert len(html.encode()) < (120_000 if main else 600_000), path
        assert sum(len(rows_of(html)) for html in english.values() if LINES in html) == len(run.ledger["Alder"])
        decisions = [html for path, html in english.items() if "decisions" in path]
        numbers = [int(n) for html in decisions for n in re.findall(r' id="d(\d+)"', html)]
        assert numbers == [step.number for step in reversed(run.steps["Alder"])]


@pytest.mark.parametrize("text", ["<" * 5000, "\u0e01" * 5000])
def test_pages_of_the_longest_texts_stay_below_a_megabyte(text):
    run, long = made_season(1, 60, claims_a_day=20), (Rationale(text=text, kind="summary"),) * 4
    steps = {
        name: tuple(redecided(replace(one, mismatches=(text,)), rationales=long) for one in mine)
        for name, mine in run.steps.items()
    }
    ledger = {name: tuple(replace(line, quote=text, saw=text) for line in lines) for name, lines in run.ledger.items()}
    for path, html in pages(replace(run, steps=steps, ledger=ledger)).items():
        assert len(html.encode()) < 1_000_000, path


# --- what is said -----------------------------------------------------------------------------------------------------


def test_a_total_is_printed_only_where_it_may_be_below_the_claims_that_are_supported():
    run, text = made_season(), made_catalogue()
    for place in run.decided.places:
        html = site("eight")[f"agents/{place.agent}.html"]
        row = next(row for row in run.table if row.contestant == place.agent)
        head = re.sub(r"<[^>]*>", " ", html[html.index('<div class="head">') : html.index('id="earned"')])
        head = " ".join(head.split())
        if place.shown:
            assert f"Total: {row.total:.1f} of 100." in head
        elif row.total is None:
            assert "Total" not in head
        else:
            assert re.search(r"Totals \d+ to \d+; it cannot be ranked, and its tier spans 37 to 77", head)
            assert f"{row.total:.1f}" not in head
        page = words(html)
        for one in run.decided.verdicts:
            if place.agent not in one.verdict.claim.subjects or one.kind == "above":
                continue
            statement = text.render(one.statement).replace("'", "’")
            if one.verdict.publication_level == "no-claim":
                assert one.withheld == one.statement or statement not in page
                assert text.render(one.withheld) in page
            else:
                assert f"“{statement}”" in page
                assert not one.condition or f"Say also: {text.join(one.condition)}" in page


def test_the_head_says_how_the_judges_stand():
    run = made_season()
    points = sorted(grade.composite for grade in run.grades if grade.agent == "Alder")
    written = [str(int(one + 0.5)) for one in points]
    assert next(row for row in run.table if row.contestant == "Alder").agreement.state == "agreed"
    for agent, text in (
        ("Alder", f"Judges: {', '.join(written[:-1])} and {written[-1]} of 100, all strong."),
        ("Birch", "; mixed or strong."), ("Gorse", "No usable grade from"), ("Hazel", "No judge gave a usable grade."),
    ):  # fmt: skip
        assert text in said(agent)
    assert "A single judge can neither agree nor disagree." in said("Alder", name="single")
    assert "; its tier spans" in said("Alder", name="single")
    assert "Ein einzelner Richter kann weder" in said("Alder", "de/", "single")


def test_the_return_and_the_difference_to_equal_weight_are_those_of_the_paths():
    paths = {path.name: path for path in made_season().paths}
    own, other = (paths[name].nav[-1] / paths[name].start - 1 for name in ("Birch", "equal weight"))
    text = said("Birch").replace("\xa0", " ").replace("−", "-")
    assert f"Return {100 * own:+.1f} %; equal weight, {100 * other:+.1f} %. One path of 61 days" in text
    assert f"Difference to equal weight over the 61 days: {100 * (own - other):+.1f} percentage points." in text
    assert "(95 % interval -0.200 to +0.150; stationary block bootstrap, n = 61). The interval contains zero." in text


def test_what_the_ledger_lowered_and_a_failed_look_ahead_check_are_named_with_their_reasons():
    for grade in (one for one in made_season().grades if one.agent == "Birch"):
        given, counted = grade.capped["claim_support"], grade.evidence["claim_support"]
        text = f"Support from market data: {grade.judge} gave {given:.0f}; {counted:.0f} counts."
        assert text in said("Birch")
    assert "Judges who see knowledge of the future: 1 of 3." in said("Elm")
    assert "“Day 3 speaks of the close of day 4.”" in said("Elm")


def test_what_nobody_here_could_prevent_is_not_promised():
    run = made_season(1, 5)
    own, other = (pages(one, "en")["agents/Alder.html"] for one in (run, replace(run, source="a venue")))
    for text in ("cannot enter its prompt", "after costs"):
        assert (text in own, text in other) == (True, False)
    assert "This season was not run here" in other


def test_long_lists_of_what_does_not_reconcile_go_on_pages_of_their_own():
    run, wrong = made_season(1, 61), tuple(f"Cash {at} is stated." for at in range(9))
    steps = {"Alder": tuple(replace(step, mismatches=wrong) for step in run.steps["Alder"])}
    found = pages(replace(run, steps=steps), "en")
    assert found["agents/Alder.html"].count("is stated.") < 100
    assert sum(html.count("is stated.") for path, html in found.items() if "/checks" in path) == 9 * 61


def test_a_season_without_days_grades_or_measurements_has_pages_too():
    bare = replace(made_season(2, 1), paths=(), grades=(), measurements=(), steps={}, ledger={}, blinding=())
    page = words(pages(bare, "en")["agents/Alder.html"])
    for text in ("No net asset value", "There is no usable grade", "No decision is recorded", "no checkable sentence"):
        assert text in page


def test_a_decision_leads_to_its_prompt_and_reply_where_records_lie_beside_the_pages():
    run = made_season(1, 5)
    steps = run.steps["Alder"]
    records = {("decisions", "Alder", one.decision.record_id): f"records/decisions.html#r{one.number}"
               for one in steps}  # fmt: skip
    found = pages(replace(run, records=records))
    for path, up in (("agents/Alder.html", "../"), ("de/agents/Alder/decisions.html", "../../../")):
        assert f'href="{up}records/decisions.html#r5">' in found[path]
    assert "Prompt and reply" in found["agents/Alder.html"]
    assert "Prompt and reply" not in site("eight")["agents/Alder.html"]
