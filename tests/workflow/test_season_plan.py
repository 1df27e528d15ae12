"""The season file and its lock: all problems at once, nothing half-written, nothing changed afterwards."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from season_runs import season_text

from assaymark.cli import main, models
from assaymark.errors import InputError, PlanError
from assaymark.workflow import STUDY, RunFolder, read_json, tracks
from assaymark.workflow.tracks import season_lock

NOW = datetime(2024, 4, 1, tzinfo=UTC)


def locked(path: Path, text: str | None = None):
    return tracks.lock_season(RunFolder(path), text or season_text(), "season.toml", models(), now=NOW)


def test_a_lock_covers_file_texts_and_market(tmp_path):
    one = locked(tmp_path / "one")
    assert tracks.is_season(RunFolder(tmp_path / "one"))
    assert locked(tmp_path / "one").plan_hash == one.plan_hash
    assert tracks.open_season(RunFolder(tmp_path / "one")).data.universe == one.data.universe
    others: tuple[dict, ...] = (
        {"prompt": "Something else."}, {"seed": 5}, {"head": "capital = 50000.0"}, {"head": 'scoring = "v0.3"'},
        {"rules": "cost_bps = 11.0"},
    )  # fmt: skip
    for number, changed in enumerate(season_text(**changes) for changes in others):
        assert locked(tmp_path / f"other-{number}", changed).plan_hash != one.plan_hash
        with pytest.raises(PlanError, match="differs from the season locked"):
            locked(tmp_path / "one", changed)
    plan = tmp_path / "one" / "plan.toml"
    manner = season_text() + "\n[engine]\nconcurrency = 2\n"
    assert locked(tmp_path / "manner", manner).plan_hash == one.plan_hash
    plan.write_text(plan.read_text().replace("Grow", "Shrink"))
    with pytest.raises(PlanError, match="was edited after the lock"):
        tracks.open_season(RunFolder(tmp_path / "one"))


def test_a_ledger_that_cannot_be_named_locks_nothing(tmp_path, capsys):
    path = tmp_path / "season.toml"
    path.write_text(season_text())
    folder = tmp_path / "run"
    for url in ("no url", "postgresql+psycopg://me:hunter2@127.0.0.1/season"):
        assert main(["season", "init", str(path), "--out", str(folder), "--ledger", url]) == 1
        assert "hunter2" not in capsys.readouterr().err
        assert not folder.exists()


def test_all_problems_of_a_file_are_named_at_once_and_nothing_is_left(tmp_path):
    wrong = season_text(
        head='scoring = "v9"\ncapital = -1.0\nuniverse = []', rules='fill = "noon"\nmax_orders = 0'
    ).replace("universe = 8\n", "")
    with pytest.raises(InputError) as found:
        locked(tmp_path / "run", wrong)
    places = {one.where for one in found.value.problems}
    assert {"scoring", "capital", "universe.int", "rules.fill", "rules.max_orders"} <= places | {"universe.int"}
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"head": "universe = ['ALBIXX', 'NOBODY']"}, r"2 problems.*unknown instrument 'ALBIXX'. Did you mean 'ALBIX'"),
        ({"head": "universe = 1000"}, "1000 instruments are asked for.*allowed: 1 to"),
        ({"first": "2014-01-01"}, "calendar.first: 2014-01-01 lies outside of the market: the market has days from"),
        ({"last": "2031-01-01"}, "calendar.last: 2031-01-01 lies outside"),
        ({"last": "2020-01-01"}, "first must not be later than last"),
        ({"calendar": "decide_at = 09:30:00"}, "must be from 21:00 on"),
        ({"model": "reference/nobody"}, "agents.one.model: unknown model 'reference/nobody'"),
        ({"prompt": ""}, "one prompt or a strategy each"),
        ({"head": "[strategies]\none = 'x'"}, "one prompt or a strategy each"),
        ({"prompt": "", "head": "strategies = {one = 'x', three = 'y'}"}, r"agents: one, two; got one, three"),
        ({"head": "market = {live = true}"}, "live needs a source that grows"),
        ({"head": "market = {source = 'nowhere'}"}, "holds no market snapshot"),
        ({"head": "market = {source = 'nowhere', live = true}"}, "holds no snapshot; put one in"),
        ({"head": "colour = 1"}, "colour: unknown key"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_allowed(tmp_path, changes, words):
    head = changes.get("head", "")
    if head.startswith("[strategies]"):
        changes["head"] = "strategies = {one = 'x', two = 'y'}"
    with pytest.raises(InputError, match=f"(?s){words}"):
        locked(tmp_path / "run", season_text(**changes))
    assert not (tmp_path / "run").exists()


def test_arguments_of_models_are_read_before_anything_is_written(tmp_path):
    text = season_text().replace('"reference/momentum"', '"reference/momentum"\nargs = {style = "oak"}')
    text += """
[[panel]]
name = "odd"
family = "j"
model = "reference/auditor"
[[panel]]
name = "sway"
family = "j"
model = "reference/season-reader"
args = {preference = 15, halo = 1}
[[panel]]
name = "people"
family = "human"
model = "human/table"
"""
    with pytest.raises(InputError) as found:
        locked(tmp_path / "run", text)
    said = {one.where: one.what for one in found.value.problems}
    assert set(said) == {"agents.one.args", "panel.odd.model", "panel.sway.args"}
    assert said["panel.odd.model"].startswith("reference/auditor cannot read whole records; reference models that can")
    assert len(found.value.problems) == 4
    assert not (tmp_path / "run").exists()


def test_a_judge_is_no_agent_and_every_problem_is_named_at_once(tmp_path):
    """Those of the file, of its models and of its market in one message."""
    text = season_text(
        head="universe = ['ALBIXX', 'ALBIX']\ncapital = -1.0", model="reference/season-reader",
        other="reference/auditor",
    )  # fmt: skip
    with pytest.raises(InputError) as found:
        locked(tmp_path / "run", text + '\n[[panel]]\nname = "r"\nfamily = "r"\nmodel = "reference/momentum"\n')
    said = {one.where: one.what for one in found.value.problems}
    assert set(said) == {"capital", "universe", "agents.one.model", "agents.two.model", "panel.r.model"}
    assert said["agents.one.model"].startswith("reference/season-reader cannot decide; built-in models that can: ")
    assert "reference/momentum" in said["agents.one.model"]
    assert "unknown instrument 'ALBIXX'" in said["universe"]
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError) as found:
        locked(tmp_path / "run", season_text(prompt="", model="reference/auditor", last="2031-01-01"))
    assert [one.where for one in found.value.problems] == ["", "agents.one.model", "calendar.last"]


def test_the_texts_of_judges_and_how_they_judge_are_in_the_plan_hash(tmp_path, monkeypatch):
    plain = locked(tmp_path / "plain").plan_hash
    assert locked(tmp_path / "months", season_text() + '\n[judging]\nperiod = "month"\n').plan_hash != plain
    for name in ("horizon_texts", "outcome_texts", "author_texts"):
        whole = getattr(season_lock, name)
        monkeypatch.setattr(season_lock, name, lambda *given, of=whole: {**of(*given), "more": "words"})
        with pytest.raises(PlanError, match="or the texts of this version differ"):
            tracks.stored_season(RunFolder(tmp_path / "plain"))
        monkeypatch.undo()
    assert tracks.stored_season(RunFolder(tmp_path / "plain")).plan_hash == plain


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [("two", "one", "each is named once"), ("two", "../two", "no slash"), ("one", "panel", "choose another name")],
)
def test_an_agent_twice_with_a_slash_or_called_like_the_judges_together_is_refused(old, new, words):
    with pytest.raises(InputError, match=words):
        tracks.parse_season(season_text().replace(f'name = "{old}"', f'name = "{new}"'))


def test_judges_that_are_asked_the_very_same_call_are_refused():
    """One reply would be graded twice, and the panel would agree with itself."""
    judge = '\n[[panel]]\nname = "{}"\nfamily = "{}"\nmodel = "reference/season-auditor"\n{}'
    twice = season_text() + judge.format("a", "one", "trials = 2\n") + judge.format("b", "two", "")
    with pytest.raises(InputError, match="a and b are asked the very same call"):
        tracks.parse_season(twice)
    for apart in ("seed = 3\n", "args = { noise = 0.0 }\n"):
        assert len(tracks.parse_season(twice + apart).panel) == 2


def test_a_universe_by_number_takes_the_classes_in_turn(tmp_path):
    chosen = locked(tmp_path / "run").data.universe
    assert len(chosen) == len(set(chosen)) == 8
    classes = {one.asset_class for one in locked(tmp_path / "run").data.history.listings if one.id in chosen}
    assert len(classes) == 6


def test_other_folders_are_told_apart(tmp_path):
    empty = RunFolder(tmp_path)
    assert not tracks.is_season(empty)
    with pytest.raises(PlanError, match="holds no season; make one with: assaymark season init"):
        tracks.open_season(empty)
    locked(tmp_path / "run")
    with pytest.raises(PlanError, match="holds a season; use: assaymark season"):
        STUDY.stored(RunFolder(tmp_path / "run"))
    lock = tmp_path / "run" / "study.lock"
    assert read_json(lock, "lock")["format"] == "assaymark season lock 2"
    lock.write_text('{"format": "another"}')
    with pytest.raises(PlanError, match="a study or a benchmark"):
        tracks.open_season(RunFolder(tmp_path / "run"))
