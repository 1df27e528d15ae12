"""The pages of agents: whole, small, escaped, in two languages alike, and silent on what is withheld."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import pytest
from made_season import HOSTILE, hostile_season, made_catalogue, made_season, planned, specs
from outline import html_of

from assaymark.claims import catalogue
from assaymark.report.season import SeasonRun, site_pages
from assaymark.text import clean

LANGUAGES = ("en", "de")
LINES = 'id="claim-lines"'
NASTY = (
    HOSTILE, '"><svg onload=alert(1)>', "' onmouseover='alert(1)", "]]>-->", "W" * 4000, "\u202e\u2066evil\u2069",
    "שלום עולם", "\x00\x07\x1b[2J\x85\ud800", "{{ self }}{% include 'x' %}", "a\u2028b\u2029c", "</style><style>*{}",
    "https://evil.example/?q=<", "%s %d {0} {name}", "&lt;script&gt;",
)  # fmt: skip


def pages(run: SeasonRun, languages: tuple[str, ...] = LANGUAGES) -> dict[str, str]:
    made = list(site_pages(run, [made_catalogue(code) for code in languages]))
    assert len({path for path, _ in made}) == len(made)
    return {path: html for path, html in html_of(dict(made)).items() if path.removeprefix("de/").startswith("agents/")}


@cache
def eight() -> dict[str, str]:
    return pages(made_season())


def nasty_season(text: str) -> SeasonRun:
    """A season in which one text stands wherever a record can hold one."""
    run = made_season(2, 3, hostile=False)
    step = {"orders": (text,), "texts": (("summary", text), (text, text)), "flags": (text,), "problem": text}
    refusal = made_season(1, 10).steps["Alder"][7].refusals[0]
    steps = {
        name: tuple(
            replace(one, day=text, refusals=(replace(refusal, symbol=text, reason=text, text=text),),
                    fills=tuple(replace(fill, symbol=text) for fill in one.fills), mismatches=(text,), **step)
            for one in mine
        )
        for name, mine in run.steps.items()
    }  # fmt: skip
    ledger = {
        name: tuple(replace(line, quote=text, saw=text, rule=text, judges={text: text}, day=text) for line in lines)
        for name, lines in run.ledger.items()
    }
    grades = tuple(
        replace(one, verdict=text, summary=text, reason=text, lookahead=text, lookahead_reason=text,
                state="ok" if at % 2 else text)
        for at, one in enumerate(run.grades)
    )  # fmt: skip
    agents, told = specs(run.plan.agents, family=text, model=text), {one.name: text for one in run.plan.agents}
    plan = planned(run, agents=agents, strategies=told, title=text, currency=text)
    return replace(plan, steps=steps, ledger=ledger, grades=grades)


@cache
def calm() -> tuple[set[str], set[str], set[str]]:
    """Paths, tags and attributes of the pages of a season whose texts are harmless."""
    found = pages(nasty_season("calm"))
    known = [Reader(html) for html in found.values()]
    tags, attributes = (set().union(*(getattr(one, kind) for one in known)) for kind in ("tags", "attributes"))
    return set(found), tags, attributes


class Reader(HTMLParser):
    """Collects tags, attributes, links, ids and the text that a reader sees."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text: list[str] = []
        self.styles: list[str] = []
        self.silent = 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.silent += tag in ("script", "style")
        for name, value in attrs:
            self.attributes.add(name)
            if name == "href" and tag == "a":
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")
            if name == "style":
                self.styles.append(value or "")

    def handle_endtag(self, tag):
        self.silent -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.silent:
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


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
        read = Reader(html)
        assert read.tags <= tags
        assert read.attributes <= attributes | {"data-x"}
        assert html.count("<script") <= 2
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", html)
        assert not any("evil" in link or "<" in link for link in read.links)
        html.encode("utf-8")


def test_hostile_texts_are_shown_as_they_were_written():
    found = pages(hostile_season())
    shown = Reader(next(html for path, html in found.items() if "birch" in path and "decisions" in path)).words
    assert " ".join(clean(HOSTILE).split()) in shown


def test_names_that_are_no_file_names_have_pages_that_do_not_collide():
    run = made_season(4, 3)
    names = ("a/../../b", "A/../../B", "agents", "")
    one, *_ = run.plan.agents
    agents = tuple(one.model_copy(update={"name": name}) for name in names)
    places = tuple(replace(run.decided.places[0], agent=name) for name in names)
    strange = replace(planned(run, agents=agents), decided=replace(run.decided, places=places, tiers=()))
    found = pages(strange)
    heads = [path for path in found if not re.search(r"/(ledger|decisions|checks)(-\d+)?\.html$", path)]
    assert len({path.lower() for path in heads}) == 2 * len(names)
    assert all(re.fullmatch(r"(de/)?agents/[A-Za-z0-9][A-Za-z0-9._-]*\.html", path) for path in found)


# --- the pages together -----------------------------------------------------------------------------------------------


def test_every_link_leads_to_a_page_and_a_place_on_it():
    found = eight()
    read = {path: Reader(html) for path, html in found.items()}
    for path, one in read.items():
        assert len(one.ids) == len(set(one.ids)), path
        for link in one.links:
            target, _, place = link.partition("#")
            parts = path.split("/")[:-1]
            for part in target.split("/") if target else []:
                parts = parts[:-1] if part == ".." else [*parts, part]
            aim = "/".join(parts) if target else path
            if aim in read:
                assert not place or place in read[aim].ids, (path, link)
            else:
                own = path.removesuffix(".html") + ".csv"
                top = re.fullmatch(r"(de/)?(index|claims|panel|measurements|rules|method|archive)\.html", aim)
                assert aim == own or top or "figures/" in aim, (path, link)


@pytest.mark.parametrize("claims", [0, 12])
def test_both_languages_have_the_same_pages_with_the_same_rows(claims):
    found = pages(made_season(1, 250, claims_a_day=claims))
    english = {path: html for path, html in found.items() if not path.startswith("de/")}
    for path, html in english.items():
        german = found[f"de/{path}"]
        assert re.findall(r' id="(d\d+)"', html) == re.findall(r' id="(d\d+)"', german)
        if LINES in html:
            assert [key for key, _ in rows_of(html)] == [key for key, _ in rows_of(german)]
    assert len(found) == 2 * len(english)


def test_pages_of_a_year_are_small():
    found = pages(made_season(1, 250, claims_a_day=12))
    for path, html in found.items():
        main = path.count("/") == 1 + path.startswith("de/")
        assert len(html.encode()) < (120_000 if main else 600_000), path


@pytest.mark.parametrize("text", ["<" * 5000, "\u0e01" * 5000])
def test_pages_of_the_longest_texts_stay_below_a_megabyte(text):
    run = made_season(1, 60, claims_a_day=20)
    steps = {
        name: tuple(replace(one, texts=(("summary", text),) * 4, mismatches=(text,)) for one in mine)
        for name, mine in run.steps.items()
    }
    ledger = {name: tuple(replace(line, quote=text, saw=text) for line in lines) for name, lines in run.ledger.items()}
    for path, html in pages(replace(run, steps=steps, ledger=ledger)).items():
        assert len(html.encode()) < 1_000_000, path


def test_every_claim_and_every_decision_stands_on_exactly_one_page():
    run = made_season(1, 250, claims_a_day=9)
    found = pages(run, ("en",))
    rows = [row for html in found.values() if LINES in html for row in rows_of(html)]
    assert len(rows) == len(run.ledger["Alder"])
    decisions = [html for path, html in found.items() if "decisions" in path]
    numbers = [int(n) for html in decisions for n in re.findall(r' id="d(\d+)"', html)]
    assert numbers == [step.number for step in reversed(run.steps["Alder"])]


def test_no_english_is_left_on_a_german_page():
    english, german = catalogue("en").texts, catalogue("de").texts
    left = {
        text
        for key, text in english.items()
        if key.startswith("model.") and text != german[key] and "{" not in text and len(text) > 7
    }
    some = re.compile(r"de/agents/(Birch|Elm|Hazel)(/decisions)?\.html")
    words = {path: Reader(html).words for path, html in eight().items() if some.fullmatch(path)}
    for path, text in words.items():
        found = {one for one in left if re.search(rf"\b{re.escape(one)}\b", text)}
        # The texts of the invented records are in English, and this is said in one of them.
        assert found <= {"no answer"}, path


def test_equal_seasons_give_equal_bytes():
    assert pages(made_season(2, 9)) == pages(made_season(2, 9))


# --- what is said -----------------------------------------------------------------------------------------------------


def test_a_total_is_printed_only_where_it_may_be():
    run = made_season()
    for place in run.decided.places:
        html = eight()[f"agents/{place.agent}.html"]
        row = next(row for row in run.table.rows if row.contestant == place.agent)
        head = Reader(html[html.index('<div class="head">') : html.index('id="earned"')]).words
        if place.shown:
            assert f"Total: {row.total:.1f} of 100." in head
        elif row.total is None:
            assert "Total" not in head
        else:
            assert re.search(r"Totals \d+ to \d+; it cannot be ranked, and its tier spans 37 to 77", head)
            assert f"{row.total:.1f}" not in head


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Alder", "Judges: 70, 74 and 79 of 100, all strong."),
        ("Birch", "; mixed or strong."),
        ("Gorse", "No usable grade from"),
        ("Hazel", "No judge gave a usable grade."),
    ],
)
def test_the_head_says_how_the_judges_stand(name, said):
    run = made_season()
    row = next(row for row in run.table.rows if row.contestant == name)
    words = Reader(eight()[f"agents/{name}.html"]).words
    if name == "Alder":
        points = sorted(g.composite for g in run.grades if g.agent == name)
        written = [str(int(one + 0.5)) for one in points]
        assert row.agreement.standing.state == "agreed"
        said = f"Judges: {', '.join(written[:-1])} and {written[-1]} of 100, all strong."
    assert said in words


def test_a_page_begins_with_supported_claims_and_never_has_the_sentence_of_another():
    run, text = made_season(), made_catalogue()
    for agent in run.plan.agents:
        page = Reader(eight()[f"agents/{agent.name}.html"]).words
        for one in run.decided.verdicts:
            if agent.name not in one.verdict.claim.subjects or one.kind == "above":
                continue
            statement = text.render(one.statement).replace("'", "’")
            if one.verdict.publication_level == "no-claim":
                assert one.withheld == one.statement or statement not in page
                assert text.render(one.withheld) in page
            else:
                assert f"“{statement}”" in page
                assert not one.condition or f"Say also: {text.join(one.condition)}" in page


def test_a_single_judge_neither_agrees_nor_disagrees():
    found = pages(made_season(3, 5, 1))
    assert "A single judge can neither agree nor disagree." in Reader(found["agents/Alder.html"]).words
    assert "; its tier spans" in Reader(found["agents/Alder.html"]).words
    assert "Ein einzelner Richter kann weder" in Reader(found["de/agents/Alder.html"]).words


def test_the_return_and_the_difference_to_equal_weight_are_those_of_the_paths():
    run = made_season()
    paths = {path.name: path for path in run.paths}
    own, other = (paths[name].nav[-1] / paths[name].start - 1 for name in ("Birch", "equal weight"))
    words = Reader(eight()["agents/Birch.html"]).words.replace("\xa0", " ").replace("−", "-")
    assert f"Return {100 * own:+.1f} %; equal weight, {100 * other:+.1f} %. One path of 61 days" in words
    assert f"Difference to equal weight over the 61 days: {100 * (own - other):+.1f} percentage points." in words
    assert "(95 % interval -0.200 to +0.150; stationary block bootstrap, n = 61). The interval contains zero." in words


def test_what_the_ledger_lowered_is_said_with_what_the_judge_gave():
    words = Reader(eight()["agents/Birch.html"]).words
    run = made_season()
    for grade in (one for one in run.grades if one.agent == "Birch"):
        given, counted = grade.capped["claim_support"], grade.evidence["claim_support"]
        assert f"Support from market data: {grade.judge} gave {given:.0f}; {counted:.0f} counts." in words


def test_a_failed_look_ahead_check_is_named_with_its_reason():
    words = Reader(eight()["agents/Elm.html"]).words
    assert "Judges who see knowledge of the future: 1 of 3." in words
    assert "“Day 3 speaks of the close of day 4.”" in words


def test_what_nobody_here_could_prevent_is_not_promised():
    run = made_season(1, 5)
    own, other = (pages(one, ("en",))["agents/Alder.html"] for one in (run, replace(run, source="a venue")))
    assert "cannot enter its prompt" in own
    assert "after costs" in own
    assert "cannot enter its prompt" not in other
    assert "after costs" not in other
    assert "This season was not run here" in other


def test_long_lists_of_what_does_not_reconcile_go_on_pages_of_their_own():
    run = made_season(1, 61)
    wrong = tuple(f"Cash {at} is stated." for at in range(9))
    steps = {"Alder": tuple(replace(step, mismatches=wrong) for step in run.steps["Alder"])}
    found = pages(replace(run, steps=steps), ("en",))
    assert found["agents/Alder.html"].count("is stated.") < 100
    assert sum(html.count("is stated.") for path, html in found.items() if "/checks" in path) == 9 * 61


def test_a_season_without_days_grades_or_measurements_has_pages_too():
    run = made_season(2, 1)
    bare = replace(run, paths=(), grades=(), measurements=(), steps={}, ledger={}, blinding={})
    words = Reader(pages(bare)["agents/Alder.html"]).words
    for said in ("No net asset value", "There is no usable grade", "No decision is recorded", "no checkable sentence"):
        assert said in words


def test_a_decision_leads_to_its_prompt_and_reply_where_records_lie_beside_the_pages():
    run = made_season(1, 5)
    steps = run.steps["Alder"]
    records = {("decisions", "Alder", one.record_id): f"records/decisions.html#r{one.number}" for one in steps}
    found = pages(replace(run, records=records))
    for path, up in (("agents/Alder.html", "../"), ("de/agents/Alder/decisions.html", "../../../")):
        assert f'href="{up}records/decisions.html#r5">' in found[path]
    assert "Prompt and reply" in found["agents/Alder.html"]
    assert "Prompt and reply" not in eight()["agents/Alder.html"]
