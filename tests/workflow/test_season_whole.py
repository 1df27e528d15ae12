"""Seasons from a file to a site, at the command line: the pages follow from the records.

In the second one everything goes wrong: it is handled by rule, recorded, and shown on the pages."""

# ruff: noqa: I001

from __future__ import annotations

import asyncio
import html
import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from outline import read
from season_runs import IDS, NOW, Scripted, market, orders, panel, rows, season_text, stored, without

from assaymark.claims import english
from assaymark.cli import main, models
from assaymark.engine import CallSpec, Model, Reply
from assaymark.errors import ModelError
from assaymark.metrology import datasheet
from assaymark.records import canonical_json
from assaymark.workflow import DECISIONS, EVIDENCE, MEASUREMENTS, OUTCOMES, VERDICTS, RunFolder, Store, verify_run
from assaymark.workflow import tracks

A, B = IDS[0], IDS[1]
JUDGES = ("auditor", "reader", "allocator")
MODELS = {"one": "reference/momentum", "two": "reference/equal-weight", "three": "reference/contrarian"}


def file_of(source: Path, cast: Mapping[str, str] = MODELS, judges: str = "", head: str = "", **changes: str) -> str:
    """Eleven days in three weeks, three agents and three judges."""
    text = season_text(head=f"universe = {IDS}\nmarket = {{source = '{source}'}}\n{head}", **changes)
    agents = (f'\n[[agents]]\nname = "{name}"\nfamily = "{name}"\nmodel = "{model}"\n' for name, model in cast.items())
    return text[: text.index("[[agents]]")] + "".join(agents) + (judges or panel(*JUDGES, more="trials = 2\n"))


def did(*words: object, status: int = 0) -> None:
    assert main(["season", *map(str, words)]) == status


def played(path: Path, text: str) -> Path:
    """A season run to its end, with seconds that are the same in every run: they alone are measured."""
    file, folder = path / "season.toml", path / "run"
    path.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    did("init", file, "--out", folder)
    did("run", folder)
    store = Store(RunFolder(folder))
    times = [replace(one, seconds=2.0 + int(one.day[-2:]) % 3) for one in store.read(tracks.TIMES)]
    store.write(tracks.TIMES, times, {"fixed": "times"})
    did("judge", folder)
    return folder


def held(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("market"), market())


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory, source: Path) -> tuple[Path, Path]:
    """A run folder and its site. Neither is to be changed."""
    path = tmp_path_factory.mktemp("season")
    folder = played(path, file_of(source))
    did("publish", folder, "--out", path / "site")
    return folder, path / "site"


def test_every_file_of_a_season_is_verified_and_every_table_exported(season, tmp_path):
    run = RunFolder(Path(shutil.copytree(season[0], tmp_path / "run")))

    def differences() -> list[str]:
        return [one.where for one in verify_run(run).differences]

    assert differences() == ["season/days.journal"]  # ``played`` has put other times in the place of those measured
    Store(run).write(tracks.TIMES, tracks.times_of(tracks.read_journal(run)[0]), {"as": "measured"})
    assert main(["verify", str(run.path)]) == 0
    assert main(["export", str(run.path), "--arrow", str(tmp_path / "arrow")]) == 0
    exported = {path.stem for path in (tmp_path / "arrow").iterdir()}
    assert exported == {path.stem for path in run.tables.glob("*.parquet")} > {"navs", "fills", "grades", "guesses"}
    journal = (run.path / "season" / "days.journal").read_bytes()
    for name, data in (
        ("study.lock", run.lock.read_bytes().replace(b'"locked_at": "2', b'"locked_at": "3')),
        ("verdicts.json", run.verdicts.read_bytes() + b" "), ("tables/navs.parquet", b""),
        ("season/days.journal", b"".join(journal.splitlines(keepends=True)[:-1])),
        ("season/days.journal", bytes([journal[0] ^ 128]) + journal[1:]),
    ):  # fmt: skip
        raw = (run.path / name).read_bytes()
        (run.path / name).write_bytes(data)
        assert differences() == [name]
        (run.path / name).write_bytes(raw)


def test_every_verdict_has_a_certificate_that_anybody_can_check_and_its_level_under_other_rules(
    season, tmp_path, ran, capsys
):
    folder, site = season
    verdicts = json.loads((folder / "verdicts.json").read_text())["verdicts"]
    files = sorted((folder / "certificates").iterdir())
    assert len(files) == len(verdicts)
    assert all(one["fragility"] for one in verdicts)
    said = ran("claim", *(part for file in files for part in ("--verify", file)))
    assert said.count("follows from its own tables") == len(files)
    lied = tmp_path / "lied.json"
    lied.write_text(files[0].read_text().replace('"no-claim"', '"headline"', 1))
    assert main(["claim", "--verify", str(lied)]) == 1
    assert "does NOT follow from its own tables" in capsys.readouterr().out
    page = (site / "claims.html").read_text(encoding="utf-8")
    assert "The level is the same under other rules: kappa cut-offs 0.5 and 0.25" in page


def test_what_was_decided_is_what_the_file_the_tables_and_the_terminal_say(season, tmp_path, ran, capsys):
    folder, site = season[0], tmp_path / "again"
    file = json.loads((folder / "verdicts.json").read_text())
    schema = json.loads((Path(__file__).parents[2] / "docs" / "verdicts.schema.json").read_text())
    Draft202012Validator(schema).validate(file)
    store = Store(RunFolder(folder))
    verdicts = store.read(VERDICTS)
    assert {one["claim"]["id"] for one in file["verdicts"]} == {one.claim.id for one in verdicts}
    assert sum(file["tally"].values()) == len(verdicts)
    assert {one.plan_hash for one in verdicts} == {file["plan_hash"]}
    assert {one["agent"] for one in file["places"]} == set(MODELS)
    assert file["judged_to"] == "2024-03-15"
    assert set(file["measurements"]) <= {one.id for one in store.read(MEASUREMENTS)}
    named = {name for one in file["verdicts"] for name in one["measurements"]}
    assert set(file["measurements"]) <= named
    hidden = named - set(file["measurements"])
    assert all("[dimension=" in name and "high=" in name for name in hidden), "only unsupported pairs are left out"
    said = ran("season", "publish", folder, "--out", site, "--language", "en")
    counts = "{headline} supported, {qualified} only with a condition, {no-claim} not supported".format(**file["tally"])
    assert f"{len(verdicts)} claims decided ({counts})" in said
    pages = sum(name.endswith(".html") for name in held(site))
    names = "archive, changelog, claims, index, measurements, method, panel, rules, agents/ ("
    assert f"{pages} pages written: {names}" in said
    document = json.loads(ran("season", "publish", folder, "--out", site, "--json", "--language", "en"))
    assert (document["verdicts"], document["page"]) == (file, str(site / "index.html"))
    for claim in ("one > two", "two > one", "three first", "one ~ three", "season.band[agents=one]"):
        assert main(["gate", str(folder), "--claim", claim, "--at-least", "qualified"]) == 1
        assert "[-] no-claim; qualified needed" in capsys.readouterr().out
    assert main(["gate", str(folder), "--claim", "one > two on clarity"]) == 2
    assert main(["gate", str(folder), "--claim", "season.beats[agent=one,baseline=equal weight]"]) == 2
    assert "unknown claim 'season.beats[agent=one,baseline=equal weight]'" in capsys.readouterr().err


def test_the_page_of_scoring_writes_the_ids_of_claims_as_seasons_do(season):
    def form(claim: str) -> str:
        return re.sub(r"=(?!aggregate|equal)[^,\]]+", "=", claim)

    page = (Path(__file__).parents[2] / "docs" / "scoring.md").read_text(encoding="utf-8")
    written = {form(claim) for claim in re.findall(r"^\| [^|]+ \| `([\w.]+\[[^`]*\])` \|$", page, re.M)}
    decided = json.loads(RunFolder(season[0]).verdicts.read_text())["verdicts"]
    assert written == {form(one["claim"]["id"]) for one in decided}


def test_a_season_published_or_played_again_is_the_same_bytes(season, source, tmp_path):
    folder, site = season
    copy, before = Path(shutil.copytree(site, tmp_path / "copy")), held(folder)
    did("publish", folder, "--out", copy)
    assert (held(copy), held(folder)) == (held(site), before)
    again = played(tmp_path, file_of(source))
    did("publish", again, "--out", tmp_path / "site")
    one, other = Store(RunFolder(folder)), Store(RunFolder(again))
    for table in (DECISIONS, tracks.GRADES, tracks.GUESSES, tracks.REPLACED, EVIDENCE, OUTCOMES, tracks.BASELINES,
                  tracks.CHECKS, MEASUREMENTS, VERDICTS):  # fmt: skip
        assert one.digest(table) == other.digest(table), table.name
    assert (folder / "verdicts.json").read_bytes() == (again / "verdicts.json").read_bytes()
    # the rules page says when the file was locked, and nothing else on the site knows the time
    made = held(tmp_path / "site")
    assert {name for name, data in held(site).items() if made.get(name) != data} <= {"rules.html", "de/rules.html"}


def test_swapping_the_names_of_agents_and_the_order_of_judges_changes_no_score(season, source, tmp_path):
    swapped = dict(zip(("two", "one", "three"), MODELS.values(), strict=True))
    judges = panel(*reversed(JUDGES), more="trials = 2\n")
    found = [
        {
            (models[one.agent], one.judge, one.trial, one.scope, one.period): one.score.score
            for one in Store(RunFolder(path)).read(tracks.GRADES)
        }
        for path, models in ((season[0], MODELS), (played(tmp_path, file_of(source, swapped, judges)), swapped))
    ]
    assert found[0] == found[1]


def test_a_season_that_went_on_after_it_was_judged_says_to_which_day_its_grades_are(source, tmp_path, ran):
    folder, site, file = tmp_path / "run", tmp_path / "site", tmp_path / "season.toml"
    file.write_text(file_of(source, judges=panel("reader")))

    def published() -> tuple[str, str]:
        said = ran("season", "publish", folder, "--out", site, "--language", "en")
        return (site / "index.html").read_text(encoding="utf-8"), said

    did("init", file, "--out", folder)
    did("step", folder, "--day", "2024-03-05")
    did("judge", folder)
    did("step", folder)
    words = "The grades are of the days up to 2024-03-05. Decisions were made up to 2024-03-06"
    page, said = published()
    assert (words in page, words in said) == (True, True)
    assert f"Run: assaymark season judge {folder}" in said
    assert "The season is not over: its last decisions are of 2024-03-06, and it ends on 2024-03-15." in page
    assert json.loads((folder / "verdicts.json").read_text())["judged_to"] == "2024-03-05"
    did("judge", folder)
    assert "The grades are of the days" not in published()[0]


def test_datasheets_of_the_judges_are_linked_and_a_language_of_ones_own_is_a_file(season, tmp_path):
    folder, site = Path(shutil.copytree(season[0], tmp_path / "run")), tmp_path / "site"
    sheet = datasheet.Datasheet(
        judge="reader", measurements=(), sketch=(), calls={"all": 0, "ok": 0, "invalid": 0}, tasks=0, source="run",
        model="reference/season-reader", family="jreader", manifest="0" * 64,
    )  # fmt: skip
    (folder / "datasheets").mkdir()
    (folder / "datasheets" / "reader.json").write_text(canonical_json(sheet))
    own = {"language": "Frenglish", "decimal": ",", "list_and": "et", "minus": "−", **english().texts}
    file = tmp_path / "fr.toml"
    file.write_text("\n".join(f"{json.dumps(key)} = {json.dumps(text)}" for key, text in own.items()))
    did("publish", folder, "--out", site, "--language", "de", "--language", file)
    for page, texts in {
        "index.html": ['lang="de"', "Frenglish"], "fr/index.html": ['lang="fr"'], "datasheet/reader.html": [],
        "panel.html": ['href="datasheet/reader.html"'], "fr/panel.html": ['href="../datasheet/reader.html"'],
    }.items():  # fmt: skip
        text = (site / page).read_text()
        assert all(one in text for one in texts)
    assert not (site / "en").exists()
    assert "datasheet/auditor" not in (site / "panel.html").read_text()


def test_a_language_that_is_none_is_refused_before_anything_is_written(season, tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "half.toml").write_text('language = "Half"\ndecimal = "."\nlist_and = "and"\nminus = "-"\n')
    for languages, words in (
        (["xx"], "xx: unknown language 'xx'"), (["en", "en"], "'en' is named twice"),
        (["nowhere.toml"], "no such language file"), (["half.toml"], "half.toml, claim.count.1: is missing"),
        (["../x y.toml"], "must begin with the code of a language"),
    ):  # fmt: skip
        named = [word for one in languages for word in ("--language", one)]
        assert words in refused("season", "publish", season[0], "--out", "site", *named)
        assert not (tmp_path / "site").exists()


def test_every_page_is_there_every_link_leads_somewhere_and_with_its_calls_every_record_to_its_call(season, tmp_path):
    folder, site = season
    names = {name for name in held(site) if name.endswith(".html")}
    english_pages = {name for name in names if not name.startswith("de/")}
    top = {f"{name}.html" for name in ("index", "claims", "panel", "measurements", "rules", "changelog")}
    assert top | {f"agents/{name}.html" for name in MODELS} < english_pages
    assert {f"de/{name}" for name in english_pages} == names - english_pages
    assert not {Path(name).parent.name for name in names} & {"calls", "records"}
    copy, called = Path(shutil.copytree(folder, tmp_path / "season")), tmp_path / "site"
    did("publish", copy, "--out", called, "--calls", "--language", "en")
    pages = {path.relative_to(called).as_posix(): path.read_text(encoding="utf-8") for path in called.rglob("*.html")}
    for of, texts in ((site, {name: (site / name).read_text(encoding="utf-8") for name in names}), (called, pages)):
        outlines = {(of / path).resolve(): read(page) for path, page in texts.items()}
        for path, outline in outlines.items():
            for link in outline.links:
                assert not link.startswith(("http:", "https:", "//", "/")), (path, link)
                target, _, anchor = link.partition("#")
                where = (path.parent / target).resolve() if target else path
                assert where.is_file(), (path, link)
                assert not anchor or where not in outlines or anchor in outlines[where].ids, (path, link)
    outlines = {path: read(page) for path, page in pages.items()}
    store = Store(RunFolder(copy))
    keys = {one.call_key for one in store.read(tracks.GUESSES)}
    keys |= {part.call_key for one in store.read(tracks.GRADES) for part in one.score.grades.parts}
    keys |= {one.call.raw_object for one in store.read(DECISIONS)}
    named = Counter(key for page in pages.values() for key in re.findall(r"<dt>Key</dt><dd><code>(\w+)</code>", page))
    assert named == Counter(keys)
    assert "records/index.html" in outlines["panel.html"].links
    linked = {link.partition("#c")[2] for path in pages if path.startswith("records/") for link in outlines[path].links}
    assert {key[:16] for key in keys} <= linked
    rests = {link.partition("#")[0] for link in outlines["measurements.html"].links}
    assert {f"records/{kind}.html" for kind in ("grades", "guesses", "decisions")} <= rests


# A season in which everything goes wrong


HOSTILE = '</pre><script>document.title="taken"</script>{{ 7*7 }}'
GREEDY = orders(
    (A, "buy", 1e9), ("NOBODY", "buy", 1.0), (A, "short", 1.0), (B, "sell", 1.0), (A, "buy", 0.5), why=HOSTILE
)  # fmt: skip


class Late:
    """A model that answers after any deadline."""

    async def complete(self, call: CallSpec) -> Reply:
        await asyncio.sleep(60)
        raise AssertionError(call.key)


class Refusing:
    """A judge that will not grade anything."""

    async def complete(self, call: CallSpec) -> Reply:
        return Reply(text="I cannot help with that.", model=call.model, finish="refusal")


CAST: Mapping[str, Model] = {
    "greedy": Scripted(lambda _: GREEDY),
    "holder": Scripted(lambda day: orders((A, "buy", 10.0)) if day == "2024-03-01" else orders()),
    "babbler": Scripted(lambda _: "I would rather not use JSON."),
    "broken": Scripted(lambda _: ModelError("the line is dead", retryable=False)), "late": Late(),
}  # fmt: skip


@pytest.fixture(scope="module")
def bad(tmp_path_factory) -> tuple[RunFolder, Path]:
    """Six weekdays, one of them without any data and one without a price of two instruments. Not to be changed."""
    path = tmp_path_factory.mktemp("bad")
    history = without(without(market(), "2024-03-06"), "2024-03-05", A, B)
    folder, site, file = RunFolder(path / "run"), path / "site", path / "season.toml"
    file.write_text(text := file_of(
        stored(path / "market", history), {name: f"test/{name}" for name in CAST},
        panel("auditor", "reader", strict="test/strict"), head="engine = {deadline_s = 0.05, attempts = 1}",
        rules="fractional = false\nmax_orders = 3", last="2024-03-08",
    ))  # fmt: skip
    who = {**models(), **{f"test/{name}": model for name, model in CAST.items()}, "test/strict": Refusing()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("assaymark.cli.options.models", lambda: who)
        did("init", file, "--out", folder.path, status=1)
        assert not folder.path.exists()  # models that fail when they are first asked are found there
        tracks.lock_season(folder, text, "season.toml", who, now=NOW)  # these are locked unasked
        did("run", folder.path)
        did("judge", folder.path)
        did("publish", folder.path, "--out", site)
    return folder, site


def text_of(page: Path) -> str:
    return html.unescape(page.read_text(encoding="utf-8"))


def pages_of(site: Path, agent: str) -> str:
    """Everything that the English pages of one agent say."""
    return "\n".join(text_of(page) for page in sorted((site / "agents").rglob("*.html")) if agent in str(page))


def test_nothing_is_lost_and_a_hostile_text_stays_a_text(bad):
    folder, site = bad
    decisions = Store(folder).read(DECISIONS)
    assert Counter(one.agent.id for one in decisions) == dict.fromkeys(CAST, 5)
    flags = {name: {flag for one in decisions if one.agent.id == name for flag in one.flags} for name in CAST}
    assert (flags["babbler"], flags["broken"], flags["late"]) == ({"invalid-reply"}, {"no-answer"}, {"no-answer"})
    assert len(rows(folder, tracks.NAVS, agent="late")) == 6
    for judge, state in (("strict", "refused"), ("reader", "ok")):
        assert {one.score.grades.state for one in rows(folder, tracks.GRADES, judge=judge)} == {state}
    for page in site.rglob("*.html"):
        assert "<script>document.title" not in page.read_text(encoding="utf-8")
    assert HOSTILE in pages_of(site, "greedy")
    file = json.loads(folder.verdicts.read_text())  # no claim rests on a judge that gave nothing
    assert not [name for name in file["measurements"] if "composite" in name and "strict" in name]
    assert all(one["publication_level"] != "headline" for one in file["verdicts"])


def test_what_went_wrong_stands_with_its_reason_on_the_pages(bad):
    folder, site = bad
    first, german, broken = text_of(site / "index.html"), text_of(site / "de" / "index.html"), pages_of(site, "broken")
    for name in ("babbler", "broken", "late"):
        assert f"{name} gave no usable answer on 5 of 5 days, and held its portfolio." in first
        assert "no-answer" in pages_of(site, name) or "invalid-reply" in pages_of(site, name)
    graded = len(rows(folder, tracks.GRADES, judge="strict"))
    for page, words in (
        (broken, "the line is dead"),
        (broken, "It gave no usable answer, so what judges grade is an empty record"),
        (first, f"strict gave {graded} of {graded} grades no usable form."),
        (first, "On 1 day (2024-03-06) the market had no prices"),
        (first, "On 1 day some portfolio held an instrument whose last price was older."),
        (german, "late hat an 5 von 5 Tagen keine brauchbare Antwort gegeben"),
        (text_of(site / "panel.html"), "strict"),
    ):
        assert words in page
    row = next(one for one in first.split("<tr") if "agents/broken.html" in one and "no usable answer" in one)
    assert not re.search(r"\d to \d+</a>", row)  # what judges give an empty record is no score of it
    navs = {one.day: one for one in rows(folder, tracks.NAVS, agent="holder")}
    assert (navs["2024-03-06"].state, navs["2024-03-05"].stale) == ("no data", (A,))
    rejected, shown = rows(folder, tracks.REJECTIONS, agent="greedy"), pages_of(site, "greedy")
    reasons = {"beyond-cash", "short-forbidden", "not-held", "not-taken", "beyond-count"}
    assert {one.reason for one in rejected} >= reasons
    assert [one.text for one in rejected if one.text not in shown] == []
    assert "NOBODY" in shown


def test_what_cannot_be_published_or_locked_is_refused_and_leaves_everything_as_it_was(bad, tmp_path, refused):
    folder, site, plan = bad[0], tmp_path / "site", bad[0].plan.read_text()

    fresh = RunFolder(tmp_path / "run")
    tracks.lock_season(fresh, plan.replace('name = "spring"', 'name = "summer"'), "season.toml", now=NOW)
    said = refused("season", "publish", fresh.path, "--out", site)
    assert said == f"assaymark: {fresh.path} was not judged yet; run: assaymark season judge {fresh.path}\n"
    assert "no decision was made yet; run: assaymark season run" in refused("season", "judge", fresh.path)
    assert "contains no season" in refused("season", "publish", tmp_path / "nowhere", "--out", site)
    table = folder.tables / "grades.parquet"
    raw, before = table.read_bytes(), folder.verdicts.stat().st_mtime_ns
    table.write_bytes(raw[:200] + bytes([raw[200] ^ 1]) + raw[201:])
    try:
        assert "grades.parquet is damaged" in refused("season", "publish", folder.path, "--out", site)
    finally:
        table.write_bytes(raw)
    assert not site.exists()
    assert "contains something other" in refused("season", "publish", folder.path, "--out", folder.path)
    assert folder.verdicts.stat().st_mtime_ns == before
    for old, new, words in (
        ("last = 2024-03-08", 'last = 2024-03-08\ndecide_at = "21:30:00+02:00"', "takes no zone"),
        ("\n[calendar]", "\n[judging]\nhalt = 0.9\n[calendar]", "halt must not be higher than publish"),
    ):
        assert old in plan
        (tmp_path / "season.toml").write_text(plan.replace(old, new))
        assert words in refused("season", "init", tmp_path / "season.toml", "--out", tmp_path / "new")
        assert not (tmp_path / "new").exists()
