"""The site of a season: whole in every language, silent on what is withheld, and closed to what records bring."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from functools import cache
from html import unescape
from pathlib import Path
from posixpath import normpath

import made_season as made
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_season import pages, site
from markup import made_problems
from outline import html_of, read, words

import assaymark.workflow
from assaymark.claims import Catalogue, catalogue, phrase
from assaymark.errors import InputError, UnknownNameError
from assaymark.judging import load_scoring
from assaymark.judging import season as judging_season
from assaymark.judging.season import record
from assaymark.report import season as season_pages

LANGUAGES = ("en", "de")
TOP = ("index.html", "claims.html", "panel.html", "measurements.html", "rules.html", "changelog.html", "method.html",
       "archive.html")  # fmt: skip
MEASURES = Path(assaymark.workflow.__file__).parent
MEASURED = r"season\.[a-z_]+"
SIZES = {"eight": made.made_season, "single": lambda: made.made_season(5, 9, 1),
         "many": lambda: made.made_season(12, 6, 6)}  # fmt: skip
SEASONS = ("eight", "one", "single", "hostile", "many")


def top(name: str) -> dict[str, str]:
    return {path: html for path, html in html_of(site(name)).items() if path.removeprefix("de/") in TOP}


def rows_of(html: str) -> list[str]:
    """The rows of agents on the leaderboard, as text."""
    table = html[html.index('class="bl board season"') :]
    body = table[table.index("<tbody>") : table.index("</table>")]
    return [words(f"<table>{row}</table>") for row in re.findall(r"<tr>.*?</tr>", body, re.DOTALL)]


# --- every page -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SEASONS)
def test_every_page_is_well_formed_small_closed_in_both_languages_and_leads_somewhere(name):
    made_site = html_of(site(name))
    besides = {"judges/north-j.html"} | ({"../sheet.html"} if name == "hostile" else set())
    assert [one for one in made_problems(site(name), besides) if "sheet.html" not in one] == []
    english = {path for path in made_site if not path.startswith("de/")}
    assert {path.removeprefix("de/") for path in made_site if path.startswith("de/")} == english
    for path, html in made_site.items():
        assert re.search('<html lang="(..)"', html)[1] == ("de" if path.startswith("de/") else "en"), path
        other = path.removeprefix("de/") if path.startswith("de/") else f"de/{path}"
        (link,) = re.findall(r'<a href="([^"]+)" hreflang', html)
        assert normpath(f"{path.rpartition('/')[0]}/{link}").lstrip("/") == other, path
        assert not re.search(r"\b(?:nan|NaN|None)\b", re.sub("<(style|script).*?</|<[^>]*>", " ", html, flags=re.S)), (
            path
        )
        scripts = html.count("<script")
        assert path.removeprefix("de/") not in TOP or scripts == (2 if "data-brush" in html else 1), path


def test_a_german_page_holds_no_english_text():
    english, german = catalogue("en").texts, catalogue("de").texts
    telling = {text for key, text in english.items() if len(text) > 7 and "{" not in text and text != german[key]}
    for path, html in html_of(site("eight")).items():
        if path.startswith("de/"):
            text = words(html)
            left = {one for one in telling - set(german.values()) if re.search(rf"\b{re.escape(one)}(?!\w)", text)}
            # What a plan names is English, and so are the texts of the invented records, as one of them says.
            assert left <= {"absolute", "replicates", "efficiency", "no answer"}, path


# --- what is withheld -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIZES)
def test_a_total_is_printed_only_for_a_single_rank(name):
    run = SIZES[name]()
    totals = {row.contestant: row.total for row in run.table}
    by_tier = sorted(totals, key=lambda one: (run.decided.place(one).first or 99, one))
    found = dict(zip(by_tier, rows_of(site(name)["index.html"]), strict=False))
    for place in run.decided.places:
        total = totals[place.agent]
        if total is not None:
            assert (f"{total:.1f}" in found[place.agent]) == place.shown, place
            ends = re.search(r" (\d+) to (\d+) (?!\d).* tier (\d+) to (\d+) .*cannot be ranked", found[place.agent])
            assert (ends is None) == place.shown
            if ends is not None:
                low, least, most, high = (int(ends[at]) for at in (3, 1, 2, 4))
                assert low <= least <= most <= high, "the range of its judges lies in that of its tier"
        else:
            assert "not graded" in found[place.agent]


def test_agents_of_a_tier_are_sorted_by_name_whatever_their_totals_are():
    run = made.made_season()
    rows = {row.contestant: row for row in run.table}
    swapped = [
        replace(rows[{"Birch": "Dogwood", "Dogwood": "Birch"}.get(row.contestant, row.contestant)],
                contestant=row.contestant, agreement=row.agreement)
        for row in reversed(run.table)
    ]  # fmt: skip
    places = tuple(reversed(run.decided.places))
    other = replace(run, table=tuple(swapped), decided=replace(run.decided, places=places))
    order = ["Alder", "Birch", "Cedar", "Dogwood", "Elm", "Gorse", "Fir", "Hazel", "Equal weight", "60/40", "Cash"]
    for season in (run, other):
        table = pages(season, "en")["index.html"].partition('class="bl board season"')[2].partition("</table>")[0]
        assert re.findall(r'<th scope="row">(?:<a [^>]*>)?([^<]+)', table) == order


def test_what_is_not_supported_is_listed_and_cannot_be_copied():
    run = made.made_season()
    english = made.made_catalogue()
    kept = {one.verdict.publication_level for one in run.decided.verdicts}
    assert kept == {"headline", "qualified", "no-claim"}
    page = site("eight")["claims.html"]
    copies = re.findall(r'data-copy="([^"]*)"', page)
    permitted = [one for one in run.decided.verdicts if one.verdict.publication_level != "no-claim"]
    assert len(copies) == len(permitted)
    for one, copied in zip(permitted, copies, strict=True):
        assert english.render(one.statement).replace("'", "’") in copied
        assert one.verdict.plan_hash in copied
        assert all(english.render(sentence) in copied for sentence in one.condition)
    silent = [one for one in run.decided.verdicts if one.kind == "beats"]
    for html in (site("eight")["index.html"], page):
        assert not any(one.verdict.claim.statement in words(html) for one in silent)
        assert "That any agent invests better than equal weight." in words(html)


def test_agents_and_judges_that_are_ours_are_said_to_be_and_what_they_graded_is_never_copied_without_it():
    run = made.made_season(6, 3)
    judges = made.specs(run.plan.panel, model="reference/season-reader")
    agents = made.specs(run.plan.agents, model="reference/momentum")
    graded = "Graded by rule-based stand-ins."
    mixed = judges[:1] + run.plan.panel[1:]
    for season, start, says in (
        (made.planned(run, panel=judges), "Reference judges.", graded),
        (made.planned(run, panel=mixed), "", "Graded in part by rule-based stand-ins (North-J)."),
        (made.planned(run, panel=judges, agents=agents), "Reference season.", f"Made and g{graded[1:]}"),
        (made.planned(run, agents=agents), "Reference agents.", ""),
    ):
        found = pages(season, "en")
        assert start in words(found["index.html"])
        for path in ("index.html", "claims.html", "agents/Alder.html") if says else ():
            copies = [unescape(text) for text in re.findall(r'data-copy="(“[^"]*)"', found[path])]
            assert copies
            assert all(f"” {says} " in text for text in copies), path
            assert all("(assaymark: Season 3, days 1 to 3, 2 January 2026, plan " in text for text in copies)
            assert f"Say also: {says}" in words(found[path])
    plain = html_of(pages(run, "en"))
    for text in ("stand-ins", "hreflang"):  # one language needs no switch
        assert text not in "".join(plain.values())
    assert "Reference" not in words(plain["index.html"])


def test_an_unsupported_pair_is_listed_without_its_direction():
    run = made.made_season(6, 6)
    pair = replace(run.decided.verdicts[-1], kind="above", withheld=phrase("made.any_order", agents=("Alder", "Fir")))
    claim = replace(pair.verdict.claim, subjects=("Fir", "Alder"), asserts_order=True)
    contrast = replace(
        run.measurements[0], name="contrast", labels={"dimension": "aggregate", "high": "Fir", "low": "Alder"},
        value=8.25, low=None,
    )  # fmt: skip
    verdict = replace(pair.verdict, claim=claim, measurements=(contrast.id,), publication_level="no-claim")
    decided = replace(run.decided, verdicts=(replace(pair, verdict=verdict),))
    made_pages = pages(replace(run, decided=decided, measurements=(*run.measurements, contrast)), "en")
    page = words(made_pages["claims.html"])
    assert "Any ranking of Alder and Fir." in page
    assert "Fir scores" not in page
    assert "8.2" not in page
    assert "difference over periods (Alder and Fir) : not shown" in page
    rows = words(made_pages["measurements.html"])
    assert "Difference over periods Alder and Fir not shown: no supported ranking" in rows
    assert "8.2" not in rows


def test_every_claim_is_counted_once_on_the_first_page():
    run = made.made_season(6, 6)
    band = next(one for one in run.decided.verdicts if one.kind == "first" and one.withheld)
    many = (replace(band, kind="band", withheld=phrase("made.any_place", agent=f"Agent {at}")) for at in range(60))
    decided = replace(run.decided, verdicts=(*run.decided.verdicts, *many))
    for level in season_pages.season_levels(
        season_pages.SeasonIndex.of(replace(run, decided=decided), season_pages.Language(made.made_catalogue()))
    ):
        shown = sum(getattr(one, "covers", 1) for one in (*level.claims, *level.more))
        every = sum(one.verdict.publication_level == level.level for one in decided.verdicts)
        assert shown + int(re.sub(r"\D", "", level.rest) or 0) == every, level.level
    pairs = [one for one in run.decided.verdicts if one.kind == "above" and one.verdict.publication_level != "no-claim"]
    weak = phrase("claim.reason.agreement.methodology", kappa="0.27", ends="", cut=0.4)
    few = replace(run, decided=replace(run.decided, verdicts=(*pairs, replace(band, reasons=(weak,)))))
    alone = season_pages.SeasonIndex.of(few, season_pages.Language(made.made_catalogue()))
    said_of = [one for level in season_pages.season_levels(alone)[:2] for one in (*level.claims, *level.more)]
    assert (len(said_of), len(pairs) > 0) == (len(pairs), True)  # no claim about a single agent is supported
    first, *rest = season_pages.season_levels(alone)[2].claims
    assert (rest, first.why) == ([], (("No lead over every other agent is supported.", False),))


def test_a_single_judge_leaves_every_rank_open_has_the_range_of_the_tier_and_a_plan_without_efficiency():
    run, single, eight = made.made_season(5, 9, 1), html_of(site("single")), site("eight")
    graded = sum(one.first is not None for one in run.decided.places)
    text = rows_of(single["index.html"])[0]
    assert f" 1 to {graded} " in text
    assert "cannot be ranked" in text
    assert "Agents that cannot be ranked have the range of their tier" in words(single["index.html"])
    assert "range of its tier" in words(single["measurements.html"])
    assert "range of the judges" not in "".join(words(html) for html in single.values())
    assert "range of the judges" in words(eight["measurements.html"])
    assert "Efficiency" in words(eight["index.html"])
    assert "Efficiency" not in words(single["index.html"])


def test_every_state_has_its_word():
    english, german = (words(site("eight")[f"{folder}index.html"]) for folder in ("", "de/"))
    for word in ("no timing", "unresolved", "not graded", "mixed or strong", "not judged"):
        assert word in english, word
    assert "single observation" in words(site("eight")["panel.html"])
    german += words(site("eight")["de/panel.html"])
    for word in ("keine Zeit", "ungeklärt", "nicht bewertet", "gemischt oder stark", "Einzelbeobachtung"):
        assert word in german, word


def test_returns_of_agents_and_baselines_are_always_shown():
    run = made.made_season()
    text = words(site("eight")["index.html"]).replace("\u00a0", " ")
    for path in run.paths:
        share = 100 * (path.nav[-1] / path.start - 1)
        assert f"{share:+.1f} %".replace("-", "−") in text


# --- panel, rules and versions ----------------------------------------------------------------------------------------


def test_the_panel_page_says_a_kappa_that_misses_its_cut_off_and_the_sign_of_its_interval():
    run, missed = made.made_season(), {"value": 0.19974, "low": -0.0048}
    numbers = tuple(replace(one, **missed) if one.name == "season.kappa" else one for one in run.measurements)
    text = words(pages(replace(run, measurements=numbers))["panel.html"])
    assert "kappa 0.1997 (−0.005 to 0.440" in text


def test_the_panel_page_names_every_judge_its_datasheet_and_how_far_the_judges_agree():
    run, page = made.made_season(), site("eight")["panel.html"]
    text = words(page)
    for judge in run.plan.panel:
        assert judge.name in text
    assert 'href="judges/north-j.html"' in page
    assert 'href="../judges/north-j.html"' in site("eight")["de/panel.html"]
    assert text.count("no datasheet") == 2
    assert "kappa 0.31 (0.18 to 0.44" in text
    for row in run.table:
        if row.agreement is not None:
            found = f"{row.agreement.low:.1f} {row.agreement.high:.1f} {row.agreement.high - row.agreement.low:.1f}"
            assert f"{row.contestant} {found}" in text


@pytest.mark.parametrize("link", ["https://evil.example/x", "//evil.example", "javascript:alert(1)", "/etc/passwd"])
def test_a_datasheet_is_linked_only_beside_the_site(link):
    run = made.made_season(2, 3)
    page = pages(replace(run, sheets={one.name: link for one in run.plan.panel}), "en")["panel.html"]
    assert "evil" not in page
    assert "passwd" not in page


def test_the_rules_page_is_made_from_the_file_and_the_plan():
    run = made.made_season()
    text = words(site("eight")["rules.html"])
    for _, name, value, _ in season_pages.season_rules(run.plan):
        assert f"{name} {' '.join(value.split())}".strip() in text
    for part in (*run.scoring.reasoning, *run.scoring.evidence):
        assert f"{part.weight:g}" in text
    assert run.plan_hash in text
    assert "40 % reasoning, 35 % evidence, 15 % process and 10 % outcome" in text.replace("\u00a0", " ")
    assert "45.33 %, 39.67 % and 15 % process" in text.replace("\u00a0", " ")


def test_another_plan_is_told_in_its_own_numbers_and_against_the_version_before():
    shipped = load_scoring().model_dump()
    plan = type(load_scoring()).model_validate(shipped | {
        "version": "own", "title": "Ours", "grader": "ours_v1", "bands": {"strong": 70, "mixed": 45},
        "composite": {"reasoning": 50, "evidence": 30, "process": 10, "outcome": 10, "without_outcome": ["evidence"]},
        "efficiency": shipped["efficiency"] | {"weight": 20, "least_seconds": 2.5},
    })  # fmt: skip
    made_site = pages(replace(made.made_season(2, 3), scoring=plan), "en")
    rules = words(made_site["rules.html"]).replace("\u00a0", " ")
    assert "50 % reasoning, 30 % evidence, 10 % process and 10 % outcome" in rules
    assert "Total = 0.8 × median of the judges + 0.2 × efficiency" in rules
    assert "at least 2.5 s" in rules
    assert "70 to 100" in rules
    changes = words(made_site["changelog.html"])
    for field, old, new in (
        ("composite.reasoning", "40", "50"), ("composite.without_outcome", "Reasoning and Evidence", "Evidence"),
        ("efficiency.weight", "10", "20"), ("bands.strong", "67", "70"),
    ):  # fmt: skip
        assert re.search(rf"{re.escape(field)}\)? {old} {new}\b", changes), field
    assert "ours_v1" in changes


def test_versions_are_told_apart_by_the_plans_that_are_shipped():
    text = words(site("eight")["changelog.html"])
    assert "Percent of efficiency in the total (efficiency.weight) 0 10" in text
    assert "one judge median of the judges" in text
    assert "this season" in text.split("v0.3: ")[0]
    for name in ("v0.3", "v0.4"):
        assert load_scoring(name).digest in text


# --- languages and folders --------------------------------------------------------------------------------------------


def test_the_first_language_lies_at_the_root_and_one_of_ones_own_beside_it():
    run = made.made_season(2, 3)
    german = made.made_catalogue("de")
    own = replace(german, language="xx", name="Unser", texts={**german.texts, "board.title": "Tafel"})
    made_site = dict(season_pages.site_pages(run, [german, own]))
    assert read(made_site["index.html"]).lang == "de"
    assert read(made_site["xx/index.html"]).lang == "xx"
    assert "Tafel" in words(made_site["xx/index.html"])
    assert not any(path.startswith(("en/", "de/")) for path in made_site)


def test_a_site_is_written_to_a_folder_of_its_own(tmp_path):
    run, languages = made.made_season(2, 3), [made.made_catalogue(code) for code in LANGUAGES]
    found = season_pages.write_site(run, tmp_path / "site", languages)
    texts = [path for path in found if path.suffix != ".png"]
    written = {str(path.relative_to(tmp_path / "site")): path.read_text(encoding="utf-8") for path in texts}
    assert written == pages(run)
    with pytest.raises(InputError, match="holds something already"):
        season_pages.write_site(run, tmp_path / "site", languages)
    with pytest.raises(InputError, match="each of one or more is named once"):
        season_pages.write_site(run, tmp_path / "other", [languages[0], languages[0]])
    with pytest.raises(InputError, match="named once"):
        list(season_pages.site_pages(run, ()))
    with pytest.raises(UnknownNameError, match="language"):
        list(season_pages.site_pages(run, ["xx"]))
    for code in ("../x", "agents", ""):
        with pytest.raises(InputError, match="is not a language code"):
            season_pages.write_site(run, tmp_path / "other", [languages[0], replace(languages[1], language=code)])
    assert not (tmp_path / "other").exists()


# --- words ------------------------------------------------------------------------------------------------------------


def test_every_state_and_count_of_a_measurement_has_words():
    """As they are written in the code that measures a season, and as the first page and the panel's look them up."""
    found = set()

    def said(group: str, part: ast.AST) -> None:
        asked = {id(one) for inner in ast.walk(part) if isinstance(inner, ast.Compare) for one in ast.walk(inner)}
        words = (one.value for one in ast.walk(part) if isinstance(one, ast.Constant) and id(one) not in asked)
        found.update((group, word) for word in words if isinstance(word, str) and word)

    for path in (MEASURES / "tracks" / f"season_{name}.py" for name in ("measures", "facts")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.keyword(arg="state", value=value):
                    said("state", value)
                case ast.Call(args=args):  # of a pair (12, "days") the second; method and state follow
                    for place, one in enumerate(args):
                        if isinstance(one, ast.Tuple) and len(one.elts) == 2:
                            said("of", one.elts[1])
                            for state in args[place + 2 : place + 3]:
                                said("state", state)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(MEASURED, node.value):
                found.add(("measure", node.value.removeprefix("season.")))
    assert len(found) > 40
    known = catalogue("de").texts
    assert {f"{group}.{name}" for group, name in found} <= set(known) | {"state.ok"}


def test_every_reason_of_the_blinding_is_said_in_german():
    source = Path(record.__file__).read_text(encoding="utf-8")
    written = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    whys = {*season_pages.REASONS}
    assert whys <= written
    run = made.made_season(1, 2)
    lines = tuple(judging_season.AuditLine("x", "kept", 1, why) for why in whys)
    _, names = season_pages.blinding_blocks(
        season_pages.SeasonIndex.of(replace(run, blinding=lines), season_pages.Language(catalogue("de")))
    )
    assert not whys & {why for _, _, _, why in names.blocks[0].rows}


# --- hostile input ----------------------------------------------------------------------------------------------------


@cache
def usual_tags() -> frozenset[str]:
    return frozenset(tag for html in (*top("eight").values(), *top("one").values()) for tag in read(html).tags)


@given(st.text(st.characters(codec=None), max_size=40))
@settings(max_examples=15)
def test_any_text_leaves_pages_that_can_be_written_and_have_only_our_markup(text):
    run = made.made_season(2, 3, hostile=False)
    odd: Catalogue = made.made_catalogue()
    plan = made.planned(
        run, name=text, title=text, currency=text, prompt=text,
        panel=made.specs(run.plan.panel, family=text, model=text),
        agents=made.specs(run.plan.agents, family=text, model=text),
    )  # fmt: skip
    changed = replace(
        plan, plan_hash=text, locked_at=text, software=text, first=text, last=text, source=text,
        sheets={one.name: text for one in run.plan.panel},
        notes=(phrase("made.meaning", field=text),),
        blinding=tuple(replace(line, name=text, why=text) for line in run.blinding),
    )  # fmt: skip
    for path, html in season_pages.site_pages(changed, [odd]):
        if path in TOP:
            html.encode()
            outline = read(html)
            assert outline.tags.count("script") == (2 if "data-brush" in html else 1)
            assert set(outline.tags) <= usual_tags()
            assert not re.search(r'href="(?:[a-z]+:|//|/)', html)
