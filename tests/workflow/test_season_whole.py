"""A season from its file to its site, at the command line: what a reader is shown follows from what was recorded."""

# ruff: noqa: I001

from __future__ import annotations

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
from season_runs import IDS, market, season_text, stored

from assaymark.claims import english
from assaymark.cli import main
from assaymark.metrology import datasheet
from assaymark.records import canonical_json
from assaymark.workflow import DECISIONS, EVIDENCE, MEASUREMENTS, OUTCOMES, VERDICTS, RunFolder, Store, verify_run
from assaymark.workflow import tracks

JUDGES = ("auditor", "reader", "allocator")
MODELS = {"one": "momentum", "two": "equal-weight", "three": "contrarian"}


def agent(name: str, model: str) -> str:
    return f'\n[[agents]]\nname = "{name}"\nfamily = "{model}"\nmodel = "reference/{model}"\n'


def judge(name: str) -> str:
    return f'\n[[panel]]\nname = "{name}"\nfamily = "of-{name}"\nmodel = "reference/season-{name}"\ntrials = 2\n'


def file_of(
    source: Path, *, models: Mapping[str, str] = MODELS, judges: tuple[str, ...] = JUDGES, extra: str = ""
) -> str:
    """Eleven days in three weeks, three agents and three judges."""
    text = season_text(head=f"universe = {IDS}\nmarket = {{source = '{source}'}}\n{extra}")
    head = text[: text.index("[[agents]]")]
    return head + "".join(agent(*one) for one in models.items()) + "".join(map(judge, judges))


def played(path: Path, text: str) -> Path:
    """A season run to its end, with seconds that are the same in every run: they alone are measured."""
    file, folder = path / "season.toml", path / "run"
    path.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    assert main(["season", "init", str(file), "--out", str(folder)]) == 0
    assert main(["season", "run", str(folder)]) == 0
    store = Store(RunFolder(folder))
    store.write(tracks.TIMES, [_timed(one) for one in store.read(tracks.TIMES)], {"fixed": "times"})
    return folder


def _timed(one: tracks.SeasonTime) -> tracks.SeasonTime:
    return replace(one, seconds=2.0 + int(one.day[-2:]) % 3)


def published(folder: Path, site: Path) -> Path:
    assert main(["season", "judge", str(folder)]) == 0
    assert main(["season", "publish", str(folder), "--out", str(site)]) == 0
    return site


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
    return folder, published(folder, path / "site")


def test_every_file_of_a_season_is_verified_and_every_table_exported(season, tmp_path):
    folder = Path(shutil.copytree(season[0], tmp_path / "run"))
    assert [one.where for one in verify_run(RunFolder(folder)).differences] == ["season/days.journal"]
    measured = tracks.times_of(
        tracks.read_journal(RunFolder(folder))[0]
    )  # which ``played`` has put others in the place of
    Store(RunFolder(folder)).write(tracks.TIMES, measured, {"as": "measured"})
    assert main(["verify", str(folder)]) == 0
    tables = {path.stem for path in (folder / "tables").glob("*.parquet")}
    assert main(["export", str(folder), "--arrow", str(tmp_path / "arrow")]) == 0
    assert {path.stem for path in (tmp_path / "arrow").iterdir()} == tables > {"navs", "fills", "grades", "guesses"}
    journal = folder / "season" / "days.journal"
    lines = journal.read_text().splitlines(keepends=True)
    harmed = {
        "study.lock": (folder / "study.lock").read_text().replace('"locked_at": "2', '"locked_at": "3'),
        "verdicts.json": (folder / "verdicts.json").read_text() + " ", "tables/navs.parquet": "",
        "season/days.journal": "".join(lines[:-1]),
    }  # fmt: skip
    first = journal.read_bytes()
    for name, text in [*harmed.items(), ("season/days.journal", bytes([first[0] ^ 128]) + first[1:])]:
        raw = (folder / name).read_bytes()
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
        assert [one.where for one in verify_run(RunFolder(folder)).differences] == [name]
        (folder / name).write_bytes(raw)


def test_every_page_is_there_in_both_languages_and_every_link_leads_somewhere(season):
    _, site = season
    pages = {name for name in held(site) if name.endswith(".html")}
    english_pages = {name for name in pages if not name.startswith("de/")}
    top = ("index", "claims", "panel", "measurements", "rules", "changelog")
    assert {f"{name}.html" for name in top} < english_pages
    assert {f"agents/{name}.html" for name in MODELS} < english_pages
    assert {f"de/{name}" for name in english_pages} == pages - english_pages
    for name in pages:
        text = (site / name).read_text(encoding="utf-8")
        for link in re.findall(r'(?:href|src)="([^"#]+)', text):
            assert not link.startswith(("http:", "https:", "//", "/")), (name, link)
            assert (site / name).parent.joinpath(link).resolve().is_file(), (name, link)


def test_every_verdict_has_a_certificate_that_anybody_can_check_and_its_level_under_other_rules(
    season, tmp_path, capsys
):
    folder, site = season
    verdicts = json.loads((folder / "verdicts.json").read_text())["verdicts"]
    files = sorted((folder / "certificates").iterdir())
    assert len(files) == len(verdicts)
    assert all(one["fragility"] for one in verdicts)
    capsys.readouterr()
    assert main(["claim", *(part for file in files for part in ("--verify", str(file)))]) == 0
    assert capsys.readouterr().out.count("follows from its own tables") == len(files)
    lied = tmp_path / "lied.json"
    lied.write_text(files[0].read_text().replace('"no-claim"', '"headline"', 1))
    assert main(["claim", "--verify", str(lied)]) == 1
    assert "does NOT follow from its own tables" in capsys.readouterr().out
    page = (site / "claims.html").read_text(encoding="utf-8")
    assert "The level is the same under other rules: kappa cut-offs 0.5 and 0.25" in page


def test_what_was_decided_is_what_the_file_the_tables_and_the_terminal_say(season, tmp_path, capsys):
    folder, _ = season
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
    known = {one.id for one in store.read(MEASUREMENTS)}
    assert set(file["measurements"]) <= known
    named = {name for one in file["verdicts"] for name in one["measurements"]}
    assert set(file["measurements"]) <= named
    hidden = named - set(file["measurements"])
    assert all("[dimension=" in name and "high=" in name for name in hidden), "only unsupported pairs are left out"
    capsys.readouterr()
    assert main(["season", "publish", str(folder), "--out", str(tmp_path / "again")]) == 0
    said = capsys.readouterr().out
    counts = [f"{file['tally'][level]} {level}" for level in ("headline", "qualified", "no-claim")]
    assert f"{len(verdicts)} claims decided ({', '.join(counts)})" in said
    pages = sum(name.endswith(".html") for name in held(tmp_path / "again"))
    assert (
        f"{pages} pages written: archive, changelog, claims, index, measurements, method, panel, rules, agents/ ("
        in said
    )
    assert main(["season", "publish", str(folder), "--out", str(tmp_path / "again"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdicts"] == file
    assert document["page"] == str(tmp_path / "again" / "index.html")
    for claim in ("one > two", "two > one", "three first", "one ~ three", "season.band[agents=one]"):
        assert main(["gate", str(folder), "--claim", claim, "--at-least", "qualified"]) == 1
        assert "[-] no-claim; qualified needed" in capsys.readouterr().out
    assert main(["gate", str(folder), "--claim", "one > two on clarity"]) == 2


def test_a_season_published_or_played_again_is_the_same_bytes(season, source, tmp_path):
    folder, site = season
    copy, before = Path(shutil.copytree(site, tmp_path / "copy")), held(folder)
    assert main(["season", "publish", str(folder), "--out", str(copy)]) == 0
    assert (held(copy), held(folder)) == (held(site), before)
    again = played(tmp_path, file_of(source))
    site_again = published(again, tmp_path / "site")
    one, other = Store(RunFolder(folder)), Store(RunFolder(again))
    for table in (
        DECISIONS,
        tracks.GRADES,
        tracks.GUESSES,
        tracks.REPLACED,
        EVIDENCE,
        OUTCOMES,
        tracks.BASELINES,
        tracks.CHECKS,
        MEASUREMENTS,
        VERDICTS,
    ):
        assert one.digest(table) == other.digest(table), table.name
    assert (folder / "verdicts.json").read_bytes() == (again / "verdicts.json").read_bytes()
    # the rules page says when the file was locked, and nothing else on the site knows the time
    differ = {name for name, data in held(site).items() if held(site_again).get(name) != data}
    assert differ <= {"rules.html", "de/rules.html"}


def test_a_season_that_went_on_after_it_was_judged_says_to_which_day_its_grades_are(source, tmp_path, capsys):
    (tmp_path / "season.toml").write_text(file_of(source, judges=("reader",)).replace("trials = 2", "trials = 1"))
    folder, site = tmp_path / "run", tmp_path / "site"
    assert main(["season", "init", str(tmp_path / "season.toml"), "--out", str(folder)]) == 0
    assert main(["season", "step", str(folder), "--day", "2024-03-05"]) == 0
    assert main(["season", "judge", str(folder)]) == 0
    assert main(["season", "step", str(folder)]) == 0
    capsys.readouterr()
    assert main(["season", "publish", str(folder), "--out", str(site)]) == 0
    words = "The grades are of the days up to 2024-03-05. Decisions were made up to 2024-03-06"
    said = capsys.readouterr().out
    assert words in said
    assert f"Run: assaymark season judge {folder}" in said
    first = (site / "index.html").read_text(encoding="utf-8")
    assert words in first
    assert "The season is not over: its last decisions are of 2024-03-06, and it ends on 2024-03-15." in first
    assert json.loads((folder / "verdicts.json").read_text())["judged_to"] == "2024-03-05"
    assert main(["season", "judge", str(folder)]) == 0
    assert main(["season", "publish", str(folder), "--out", str(site)]) == 0
    assert "The grades are of the days" not in (site / "index.html").read_text(encoding="utf-8")


def test_swapping_the_names_of_agents_changes_no_score(season, source, tmp_path):
    folder, _ = season
    swapped = dict(zip(("two", "one", "three"), MODELS.values(), strict=True))
    other = played(tmp_path, file_of(source, models=swapped))
    assert main(["season", "judge", str(other)]) == 0

    def scores(path: Path, models: Mapping[str, str]) -> dict[tuple[object, ...], object]:
        return {
            (models[one.agent], one.judge, one.trial, one.scope, one.period): one.score.score
            for one in Store(RunFolder(path)).read(tracks.GRADES)
        }

    assert scores(folder, MODELS) == scores(other, swapped)


def test_reordering_the_judges_changes_nothing_that_is_measured_or_said(season, source, tmp_path):
    folder, _ = season
    other = played(tmp_path, file_of(source, judges=("allocator", "auditor", "reader")))
    published(other, tmp_path / "site")
    one, two = Store(RunFolder(folder)), Store(RunFolder(other))
    assert one.digest(tracks.GRADES) == two.digest(tracks.GRADES)
    assert one.digest(MEASUREMENTS) == two.digest(MEASUREMENTS)
    plain = [[replace(each, plan_hash="") for each in store.read(VERDICTS)] for store in (one, two)]
    assert plain[0] == plain[1]


def sheet(name: str) -> datasheet.Datasheet:
    return datasheet.Datasheet(
        judge=name, measurements=(), sketch=(), calls={"all": 0, "ok": 0, "invalid": 0}, tasks=0, source="run",
        model=f"reference/season-{name}", family=f"of-{name}", manifest="0" * 64,
    )  # fmt: skip


def test_datasheets_of_the_judges_are_linked_and_a_language_of_ones_own_is_a_file(season, tmp_path):
    folder, site = Path(shutil.copytree(season[0], tmp_path / "run")), tmp_path / "site"
    (folder / "datasheets").mkdir()
    (folder / "datasheets" / "reader.json").write_text(canonical_json(sheet("reader")))
    words = english()
    own = {"language": "Frenglish", "decimal": ",", "list_and": "et", "minus": "−"}
    lines = [f"{json.dumps(key)} = {json.dumps(text)}" for key, text in {**own, **words.texts}.items()]
    file = tmp_path / "fr.toml"
    file.write_text("\n".join(lines))
    languages = ["--language", "de", "--language", str(file)]
    assert main(["season", "publish", str(folder), "--out", str(site), *languages]) == 0
    first = (site / "index.html").read_text()
    assert 'lang="de"' in first
    assert "Frenglish" in first
    assert 'lang="fr"' in (site / "fr" / "index.html").read_text()
    assert not (site / "en").exists()
    assert (site / "datasheet" / "reader.html").is_file()
    assert 'href="datasheet/reader.html"' in (site / "panel.html").read_text()
    assert 'href="../datasheet/reader.html"' in (site / "fr" / "panel.html").read_text()
    assert "datasheet/auditor" not in (site / "panel.html").read_text()


@pytest.mark.parametrize(
    ("languages", "words"),
    [
        (["xx"], "xx: unknown language 'xx'"), (["en", "en"], "'en' is named twice"),
        (["nowhere.toml"], "no such language file"), (["half.toml"], "half.toml, claim.count.1: is missing"),
        (["../x y.toml"], "must begin with the code of a language"),
    ],
)  # fmt: skip
def test_a_language_that_is_none_is_refused_before_anything_is_written(
    season, tmp_path, capsys, monkeypatch, languages, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "half.toml").write_text('language = "Half"\ndecimal = "."\nlist_and = "and"\nminus = "-"\n')
    chosen = [word for one in languages for word in ("--language", one)]
    assert main(["season", "publish", str(season[0]), "--out", "site", *chosen]) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


def test_with_its_calls_every_record_leads_to_its_call(season, tmp_path):
    folder, site = season
    assert not [path for path in site.rglob("*.html") if path.parent.name in ("calls", "records")]
    copy = Path(shutil.copytree(folder, tmp_path / "season"))
    assert main(["season", "publish", str(copy), "--out", str(tmp_path / "site"), "--calls", "--language", "en"]) == 0
    pages = {path.relative_to(tmp_path / "site").as_posix(): path.read_text(encoding="utf-8")
             for path in (tmp_path / "site").rglob("*.html")}  # fmt: skip
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
    for path, outline in outlines.items():
        if path.startswith(("records/", "calls/", "measurements", "claims", "panel")):
            for link in outline.links:
                target, _, anchor = link.partition("#")
                where = (Path(path).parent / target).as_posix() if target else path
                where = re.sub(r"[^/]+/\.\./", "", where)
                assert where in pages, (path, link)
                assert not anchor or anchor in outlines[where].ids, (path, link)
