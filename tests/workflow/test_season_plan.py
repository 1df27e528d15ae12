"""The season file, its lock and its rules page: all problems at once, nothing half-written, every field shown."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import UnionType
from typing import Union, get_args, get_origin

import pytest
from season_runs import season_text

from assaymark.claims import catalogue, languages
from assaymark.cli import models
from assaymark.errors import InputError, PlanError
from assaymark.plan import Frozen
from assaymark.protocol import DatasheetLimits
from assaymark.report.season import OWN, season_rules
from assaymark.workflow import STUDY, RunFolder, read_json, tracks
from assaymark.workflow.tracks import season_lock

NOW = datetime(2024, 4, 1, tzinfo=UTC)
JUDGE = '\n[[panel]]\nname = "{}"\nfamily = "{}"\nmodel = "{}"\n{}'


def locked(path: Path, text: str | None = None):
    return tracks.lock_season(RunFolder(path), text or season_text(), "season.toml", models(), now=NOW)


def problems(path: Path, text: str) -> list[tuple[str, str]]:
    """Every problem that a lock names with its place; nothing is left."""
    with pytest.raises(InputError) as found:
        locked(path / "run", text)
    assert not (path / "run").exists()
    return [(one.where, one.what) for one in found.value.problems]


def test_a_lock_covers_file_texts_and_market(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "one")
    one = locked(folder.path)
    assert tracks.is_season(folder)
    assert locked(folder.path).plan_hash == one.plan_hash
    universe = tracks.open_season(folder).data.universe
    assert universe == one.data.universe
    # a universe by number takes the classes in turn
    assert len({each.asset_class for each in one.data.history.listings if each.id in universe}) == 6
    assert len(universe) == len(set(universe)) == 8
    others = (
        {"prompt": "Something else."}, {"seed": 5}, {"head": "capital = 50000.0"}, {"head": 'scoring = "v0.3"'},
        {"rules": "cost_bps = 11.0"}, {"rules": '[judging]\nperiod = "month"'},
    )  # fmt: skip
    for number, changed in enumerate(season_text(**changes) for changes in others):
        assert locked(tmp_path / f"other-{number}", changed).plan_hash != one.plan_hash
        with pytest.raises(PlanError, match="differs from the season locked"):
            locked(folder.path, changed)
    manner = season_text() + "\n[engine]\nconcurrency = 2\n"
    assert locked(tmp_path / "manner", manner).plan_hash == one.plan_hash
    of = season_lock.judge_texts
    for name in ("more", "outcome-v1.txt", "author-v1.txt"):  # of judges
        monkeypatch.setattr(season_lock, "judge_texts", lambda plan, name=name: {**of(plan), name: "words"})
        with pytest.raises(PlanError, match="or the texts of this version differ"):
            tracks.stored_season(folder)
        monkeypatch.undo()
    assert tracks.stored_season(folder).plan_hash == one.plan_hash
    with pytest.raises(PlanError, match="contains a season; use: assaymark season"):
        STUDY.stored(folder)
    folder.plan.write_text(folder.plan.read_text().replace("Grow", "Shrink"))
    with pytest.raises(PlanError, match="was edited after the lock"):
        tracks.open_season(folder)
    assert read_json(folder.lock, "lock")["format"] == "assaymark season lock 2"
    folder.lock.write_text('{"format": "another"}')
    with pytest.raises(PlanError, match="a study or a benchmark"):
        tracks.open_season(folder)
    assert not tracks.is_season(RunFolder(tmp_path))
    with pytest.raises(PlanError, match="contains no season; make one with: assaymark season init"):
        tracks.open_season(RunFolder(tmp_path))


def test_a_ledger_that_cannot_be_named_locks_nothing(tmp_path, refused):
    path, folder = tmp_path / "season.toml", tmp_path / "run"
    path.write_text(season_text())
    for url in ("no url", "postgresql+psycopg://me:hunter2@127.0.0.1/season"):
        assert "hunter2" not in refused("season", "init", path, "--out", folder, "--ledger", url)
        assert not folder.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"head": "universe = ['ALBIXX', 'NOBODY']"}, r"2 problems.*unknown instrument 'ALBIXX'. Did you mean 'ALBIX'"),
        ({"head": "universe = 1000"}, "1000 instruments are asked for.*allowed: 1 to"),
        ({"first": "2014-01-01"}, "calendar.first: 2014-01-01 is outside the market: the market has days from"),
        ({"last": "2031-01-01"}, "calendar.last: 2031-01-01 is outside"),
        ({"last": "2020-01-01"}, "first must not be later than last"),
        ({"calendar": "decide_at = 09:30:00"}, "must be from 21:00 on"),
        ({"model": "reference/nobody"}, "agents.one.model: unknown model 'reference/nobody'"),
        ({"prompt": ""}, "one prompt or one strategy each"),
        ({"head": "strategies = {one = 'x', two = 'y'}"}, "one prompt or one strategy each"),
        ({"prompt": "", "head": "strategies = {one = 'x', three = 'y'}"}, r"agents: one, two; got one, three"),
        ({"head": "market = {live = true}"}, "live needs a source that grows"),
        ({"head": "market = {source = 'nowhere'}"}, "market.source: nowhere contains no market snapshot"),
        ({"head": "market = {source = 'nowhere', live = true}"}, "contains no snapshot; fetch one"),
        ({"head": "colour = 1"}, "colour: unknown key"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_allowed(tmp_path, changes, words):
    with pytest.raises(InputError, match=f"(?s){words}"):
        locked(tmp_path / "run", season_text(**changes))
    assert not (tmp_path / "run").exists()


def test_every_problem_of_the_file_its_models_and_its_market_is_named_at_once(tmp_path):
    wrong = season_text(
        head='scoring = "v9"\ncapital = -1.0\nuniverse = []', rules='fill = "noon"\nmax_orders = 0'
    )  # fmt: skip
    assert {"scoring", "capital", "rules.fill", "rules.max_orders"} <= {where for where, _ in problems(tmp_path, wrong)}
    # a judge is no agent, and an agent no judge
    text = season_text(
        head="universe = ['ALBIXX', 'ALBIX']\ncapital = -1.0", model="reference/season-reader",
        other="reference/auditor",
    )  # fmt: skip
    said = dict(problems(tmp_path, text + JUDGE.format("r", "r", "reference/momentum", "")))
    assert set(said) == {"capital", "universe", "agents.one.model", "agents.two.model", "panel.r.model"}
    assert said["agents.one.model"].startswith("reference/season-reader cannot decide; built-in models that can: ")
    assert "reference/momentum" in said["agents.one.model"]
    assert "unknown instrument 'ALBIXX'" in said["universe"]
    found = problems(tmp_path, season_text(prompt="", model="reference/auditor", last="2031-01-01"))
    assert [where for where, _ in found] == ["", "agents.one.model", "calendar.last"]
    # arguments of models
    text = season_text().replace('"reference/momentum"', '"reference/momentum"\nargs = {style = "oak"}')
    text += JUDGE.format("odd", "j", "reference/auditor", "") + JUDGE.format("people", "human", "human/table", "")
    text += JUDGE.format("sway", "j", "reference/season-reader", "args = {preference = 15, halo = 1}")
    found = problems(tmp_path, text)
    assert (len(found), {where for where, _ in found}) == (4, {"agents.one.args", "panel.odd.model", "panel.sway.args"})
    told = "reference/auditor cannot read whole records; built-in models that can"
    assert dict(found)["panel.odd.model"].startswith(told)


def test_names_that_cannot_be_and_judges_that_are_asked_the_very_same_call_are_refused():
    """One reply would be graded twice, and the panel would agree with itself."""
    for old, new, words in (
        ("two", "one", "each is named once"), ("two", "../two", "no slash"), ("one", "panel", "choose another name")
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            tracks.parse_season(season_text().replace(f'name = "{old}"', f'name = "{new}"'))
    first = JUDGE.format("a", "one", "reference/season-auditor", "trials = 2\n")
    twice = season_text() + first + JUDGE.format("b", "two", "reference/season-auditor", "")
    with pytest.raises(InputError, match="a and b are asked the very same call"):
        tracks.parse_season(twice)
    for apart in ("seed = 3\n", "args = { noise = 0.0 }\n"):
        assert len(tracks.parse_season(twice + apart).panel) == 2


# What the rules page says of it


PANEL = (
    JUDGE.format("reader", "north", "reference/reader", "trials = 3\nargs = { noise = 0.5 }\n")
    + """
[datasheets]
verbosity = 0.15
"""
)


def lines(text: str) -> dict[tuple[str, str], str]:
    return {row[:2]: row[2] for row in season_rules(tracks.parse_season(text))}


def fields(kind: type[Frozen], group: str = OWN) -> set[tuple[str, str]]:
    """Every field of the file with its table, by the types alone."""
    found = set()
    for name, field in kind.model_fields.items():
        union = get_origin(field.annotation) in (Union, UnionType)
        kinds = get_args(field.annotation) if union else (field.annotation,)
        inner = next((one for one in kinds if isinstance(one, type) and issubclass(one, Frozen)), None)
        found |= {(group, field.alias or name)} if inner is None else fields(inner, name)
    return found


def test_every_field_has_a_line_and_no_line_has_no_field():
    found = set(lines(season_text() + PANEL))
    wanted = fields(tracks.Season) - {(OWN, name) for name in ("agents", "panel", "strategies")}
    assert wanted >= {("rules", "cost_bps"), ("judging", "alpha"), ("engine", "attempts"), ("datasheets", "slope")}
    assert found == wanted | {("agents", "one"), ("agents", "two"), ("panel", "reader")}
    assert {name for group, name in fields(tracks.Season) if group == "datasheets"} == set(DatasheetLimits.model_fields)


@pytest.mark.parametrize("language", languages())
def test_every_line_says_what_it_means(language):
    words, own = catalogue(language), "[strategies]\none = 'Buy.'\ntwo = 'Sell.'\n\n[[agents]]"
    strategies = season_text(prompt="").replace("[[agents]]", own, 1)
    for text in (season_text() + PANEL, season_text(), strategies):
        every = season_rules(tracks.parse_season(text))
        assert [key for *_, key in every if not words.say(f"field.{key}").endswith(".")] == []
    found = {name: value for group, name, value, _ in every if group == "strategies"}
    assert (list(found), len(set(found.values()))) == (["one", "two"], 2)


def test_values_stand_as_in_the_file_and_no_path_and_no_long_text():
    found = lines(season_text(rules="cost_bps = 2.5\nfractional = false\nfill = 'close'") + PANEL)
    assert found.items() >= {
        ("rules", "cost_bps"): "2.5", ("rules", "fractional"): "false", ("rules", "fill"): "close",
        ("rules", "max_weight"): "", ("season", "capital"): "100000", ("calendar", "decide_at"): "21:30:00",
        ("datasheets", "verbosity"): "0.15",
        ("panel", "reader"): 'model = "reference/reader", family = "north", trials = 3, args = { noise = 0.5 }',
    }.items()  # fmt: skip
    head = "market = {source = '/home/somebody/snapshots/spring-2024'}\nuniverse = ['AAA', 'BBB']"
    found = lines(season_text(head=head, prompt="A secret recipe. " * 40))
    assert (found["market", "source"], found["season", "universe"]) == ("spring-2024", "AAA, BBB")
    assert found["season", "prompt"].startswith("sha256 ")
    assert not any("secret" in value or "somebody" in value for value in found.values())


def test_what_only_our_broker_goes_by_is_not_said_of_records_of_others():
    season = tracks.parse_season(season_text())
    records = season.market.model_copy(update={"source": "records", "format": "aitrader", "track": "us"})
    found = {row[:2] for row in season_rules(season.model_copy(update={"market": records}))}
    assert found < set(lines(season_text()))
    assert not {("rules", "fill"), ("season", "bars"), ("market", "live"), ("calendar", "decide_at")} & found
    assert {("market", "format"), ("calendar", "first"), ("judging", "period"), ("season", "capital")} <= found
