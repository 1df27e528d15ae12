"""What goes wrong in a season, from its file to its site: handled by rule, written down, and seen on the pages."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from season_runs import IDS, NOW, Scripted, market, orders, season_text, stored, without

from assaymark.cli import app, main, models
from assaymark.engine import CallSpec, Model, Reply
from assaymark.errors import ModelError
from assaymark.workflow import DECISIONS, RunFolder, Store, tracks

A, B = IDS[0], IDS[1]
HOSTILE = '</pre><script>document.title="taken"</script>{{ 7*7 }}'


class Late:
    """A model that answers after any deadline."""

    async def complete(self, call: CallSpec) -> Reply:
        await asyncio.sleep(60)
        raise AssertionError(call.key)


@dataclass
class Refusing:
    """A judge that will not grade anything."""

    asked: int = 0

    async def complete(self, call: CallSpec) -> Reply:
        self.asked += 1
        return Reply(text="I cannot help with that.", model=call.model, finish="refusal")


GREEDY = orders(
    (A, "buy", 1e9), ("NOBODY", "buy", 1.0), (A, "short", 1.0), (B, "sell", 1.0), (A, "buy", 0.5), why=HOSTILE
)  # fmt: skip
CAST: Mapping[str, Model] = {
    "greedy": Scripted(lambda _: GREEDY),
    "holder": Scripted(lambda day: orders((A, "buy", 10.0)) if day == "2024-03-01" else orders()),
    "babbler": Scripted(lambda _: "I would rather not use JSON."),
    "broken": Scripted(lambda _: ModelError("the line is dead", retryable=False)), "late": Late(),
}  # fmt: skip
PANEL = """
[[panel]]
name = "strict"
family = "of-strict"
model = "test/strict"
"""


@pytest.fixture(scope="module")
def tools():
    """The command line with scripted agents and a judge that refuses, beside all that is built in."""
    known = app.info.context_settings["obj"]
    mine = {f"test/{name}": model for name, model in CAST.items()} | {"test/strict": Refusing()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(app.info.context_settings, "obj", replace(known, models=lambda: {**models(), **mine}))
        yield


def file_of(source: Path) -> str:
    """Six weekdays, one of them without any data and one without a price of two instruments; no fractions."""
    head = f"universe = {IDS}\nmarket = {{source = '{source}'}}\nengine = {{deadline_s = 0.05, attempts = 1}}"
    text = season_text(head=head, rules="fractional = false\nmax_orders = 3", last="2024-03-08")
    cast = "".join(f'\n[[agents]]\nname = "{one}"\nfamily = "{one}"\nmodel = "test/{one}"\n' for one in CAST)
    judges = "".join(
        f'\n[[panel]]\nname = "{one}"\nfamily = "of-{one}"\nmodel = "reference/season-{one}"\n'
        for one in ("auditor", "reader")
    )
    return text[: text.index("[[agents]]")] + cast + judges + PANEL


@pytest.fixture(scope="module")
def season(tools, tmp_path_factory) -> tuple[RunFolder, Path]:
    """The season of everything that goes wrong, and its site. Not to be changed."""
    path = tmp_path_factory.mktemp("bad")
    history = without(without(market(), "2024-03-06"), "2024-03-05", A, B)
    (path / "season.toml").write_text(file_of(stored(path / "market", history)))
    folder, site = path / "run", path / "site"
    assert main(["season", "init", str(path / "season.toml"), "--out", str(folder)]) == 1
    assert not folder.exists()  # models that fail when they are first asked are found there; these are locked unasked
    known = app.info.context_settings["obj"].models()
    tracks.lock_season(RunFolder(folder), (path / "season.toml").read_text(), "season.toml", known, now=NOW)
    for verb in (["run"], ["judge"]):
        assert main(["season", *verb, str(folder)]) == 0
    assert main(["season", "publish", str(folder), "--out", str(site)]) == 0
    return RunFolder(folder), site


def text_of(page: Path) -> str:
    return html.unescape(page.read_text(encoding="utf-8"))


def pages_of(site: Path, agent: str) -> str:
    """Everything that the English pages of one agent say."""
    own = (site / "agents").glob(f"{agent}.html"), (site / "agents" / agent).glob("*.html")
    return "\n".join(text_of(page) for pages in own for page in sorted(pages))


def test_nothing_is_lost(season):
    store = Store(season[0])
    decisions = store.read(DECISIONS)
    assert Counter(one.agent.id for one in decisions) == dict.fromkeys(CAST, 5)
    flags = {name: {flag for one in decisions if one.agent.id == name for flag in one.flags} for name in CAST}
    assert flags["babbler"] == {"invalid-reply"}
    assert flags["broken"] == flags["late"] == {"no-answer"}
    assert len([one for one in store.read(tracks.NAVS) if one.agent == "late"]) == 6
    states = Counter((one.judge, one.score.grades.state) for one in store.read(tracks.GRADES))
    assert {state for judge, state in states if judge == "strict"} == {"refused"}
    assert {state for judge, state in states if judge == "reader"} == {"ok"}


def test_a_hostile_text_stays_a_text_and_no_claim_rests_on_a_judge_that_gave_nothing(season):
    folder, site = season
    for page in site.rglob("*.html"):
        assert "<script>document.title" not in page.read_text(encoding="utf-8")
    assert HOSTILE in pages_of(site, "greedy")
    file = json.loads(folder.verdicts.read_text())
    assert not [name for name in file["measurements"] if "composite" in name and "strict" in name]
    assert all(one["publication_level"] != "headline" for one in file["verdicts"])


def test_orders_that_broke_a_rule_stand_with_their_reason_on_the_page_of_their_agent(season):
    folder, site = season
    rejected = Store(folder).read(tracks.REJECTIONS)
    assert {one.reason for one in rejected if one.agent == "greedy"} >= {
        "beyond-cash", "short-forbidden", "not-held", "not-taken", "beyond-count"
    }  # fmt: skip
    shown = pages_of(site, "greedy")
    for one in rejected:
        if one.agent == "greedy":
            assert one.text in shown
    assert "NOBODY" in shown


def test_agents_and_judges_that_failed_are_named_on_the_first_page(season):
    folder, site = season
    first = text_of(site / "index.html")
    for name in ("babbler", "broken", "late"):
        assert f"{name} gave no usable answer on 5 of 5 days, and held its book." in first
        assert "no-answer" in pages_of(site, name) or "invalid-reply" in pages_of(site, name)
    assert "the line is dead" in pages_of(site, "broken")
    row = next(one for one in first.split("<tr") if "agents/broken.html" in one and "no usable answer" in one)
    assert not re.search(r"\d–\d", row)  # what judges give an empty record is no score of it
    assert "It gave no usable answer, so what judges grade is an empty record" in pages_of(site, "broken")
    graded = len([one for one in Store(folder).read(tracks.GRADES) if one.judge == "strict"])
    assert f"strict gave {graded} of {graded} grades no usable form." in first
    assert "strict" in text_of(site / "panel.html")
    german = text_of(site / "de" / "index.html")
    assert "late hat an 5 von 5 Tagen keine brauchbare Antwort gegeben" in german


def test_a_day_without_data_and_an_old_price_are_named(season):
    folder, site = season
    first = text_of(site / "index.html")
    assert "On 1 day (2024-03-06) the market had no prices" in first
    assert "On 1 day some book held an instrument whose last price was older." in first
    navs = {one.day: one for one in Store(folder).read(tracks.NAVS) if one.agent == "holder"}
    assert (navs["2024-03-06"].state, navs["2024-03-05"].stale) == ("no data", (A,))


def refused(capsys, *words: str | Path) -> str:
    """The one line that a command ends with."""
    capsys.readouterr()
    assert main(["season", *map(str, words)]) == 1
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith("assaymark: ")
    return found.err


def test_a_season_that_was_not_judged_is_not_published(season, tmp_path, capsys):
    path = tmp_path / "season.toml"
    path.write_text((season[0].path / "plan.toml").read_text().replace('name = "spring"', 'name = "summer"'))
    folder = tmp_path / "run"
    tracks.lock_season(RunFolder(tmp_path / "run"), (tmp_path / "season.toml").read_text(), "season.toml", now=NOW)
    said = refused(capsys, "publish", folder, "--out", tmp_path / "site")
    assert said == f"assaymark: {folder} was not judged yet; run: assaymark season judge {folder}\n"
    assert "no decision was made yet; run: assaymark season run" in refused(capsys, "judge", folder)
    assert "holds no season" in refused(capsys, "publish", tmp_path / "nowhere", "--out", tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_site_is_not_written_over_something_else(season, tmp_path, capsys):
    folder, site = season
    (tmp_path / "thesis.txt").write_text("years of work")
    before = folder.verdicts.stat().st_mtime_ns
    assert "holds something else than a site" in refused(capsys, "publish", folder.path, "--out", tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["thesis.txt"]
    assert folder.verdicts.stat().st_mtime_ns == before
    assert "holds something else" in refused(capsys, "publish", folder.path, "--out", folder.path)
    assert (site / "index.html").is_file()


def test_a_damaged_table_is_named_and_no_page_is_made_of_it(season, tmp_path, capsys):
    folder, _ = season
    path = folder.tables / "grades.parquet"
    raw = path.read_bytes()
    path.write_bytes(raw[:200] + bytes([raw[200] ^ 1]) + raw[201:])
    try:
        assert "grades.parquet is damaged" in refused(capsys, "publish", folder.path, "--out", tmp_path / "site")
    finally:
        path.write_bytes(raw)
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("decide_at = 21:30:00", 'decide_at = "21:30:00+02:00"'), "takes no zone"),
        (("[judging]", "[judging]\nhalt = 0.9"), "halt must not be higher than publish"),
    ],
)
def test_mistakes_of_a_season_file_are_said_before_anything_is_written(season, tmp_path, capsys, change, words):
    text = (season[0].path / "plan.toml").read_text() + "\n[judging]\n"
    text = text.replace("last = 2024-03-08", "last = 2024-03-08\ndecide_at = 21:30:00")
    assert change[0] in text
    (tmp_path / "season.toml").write_text(text.replace(*change))
    assert words in refused(capsys, "init", tmp_path / "season.toml", "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()
