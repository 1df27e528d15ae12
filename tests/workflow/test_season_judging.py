"""Judging a season: what is asked, what is recorded, and that it goes on where it was."""

# ruff: noqa: I001

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from season_runs import NOW, begun, market, season_text, stored

from assaymark.agents import reference_agents
from assaymark.cli import main
from assaymark.engine import CallSpec, Model, Reply, load_prices
from assaymark.errors import InputError, LedgerError, ModelError, PlanError
from assaymark.judging import load_scoring, reference_season_judges
from assaymark.workflow import EVIDENCE, JUDGMENTS, RunFolder, Store, frame_of, import_grades, paid_models
from assaymark.workflow import tracks

JUDGES = ("auditor", "reader", "allocator")
TABLES = (tracks.GRADES, tracks.GUESSES, tracks.REPLACED, EVIDENCE, JUDGMENTS)
ENGINE = "\n[engine]\nattempts = 1\nbackoff_s = 0\ndeadline_s = 5\n"
WHO: dict[str, Model] = {**reference_agents(), **reference_season_judges()}


def panel(*names: str, **models: str) -> str:
    """The panel of a season file; judges of other models by name."""
    chosen = {name: f"reference/season-{name}" for name in names} | models
    return "".join(
        f'\n[[panel]]\nname = "{name}"\nfamily = "j{name}"\nmodel = "{model}"\n' for name, model in chosen.items()
    )


def locked(path: Path, *, judges: str = panel(*JUDGES), more: str = "", who=WHO, **changes) -> RunFolder:
    """A season of six instruments that is not run yet."""
    head = "universe = 6\n" + changes.pop("head", "")
    text = season_text(head=head, **changes) + judges + more
    return begun(path / "run", f'{text}\n[market]\nsource = "{stored(path / "market", market())}"\n', who)


def played(path: Path, **changes) -> RunFolder:
    folder = locked(path, **changes)
    tracks.run_season(folder, changes.get("who", WHO), now=NOW)
    return folder


@pytest.fixture(scope="module")
def unjudged(own_copy) -> RunFolder:
    """Two agents, eleven days in three weeks. Not to be changed."""
    return RunFolder(own_copy("unjudged-season", played) / "run")


@pytest.fixture(scope="module")
def judged(unjudged, own_copy) -> RunFolder:
    """The same, graded by three judges. Not to be changed."""

    def build(path: Path) -> None:
        assert tracks.judge_season(copied(unjudged, path), WHO).made == 2 * 3 * (1 + 3) * 2 + 2 * 3

    return RunFolder(own_copy("judged-season", build) / "copy")


def copied(folder: RunFolder, path: Path) -> RunFolder:
    """A copy to be changed."""
    shutil.copytree(folder.path, path / "copy")
    return RunFolder(path / "copy")


def bytes_of(folder: RunFolder) -> dict[str, bytes]:
    return {table.name: (folder.tables / f"{table.name}.parquet").read_bytes() for table in TABLES}


@dataclass
class Spy:
    """A judge that answers as another one does, unless ``instead`` says something else of a call."""

    of: Model = WHO["reference/season-auditor"]
    instead: Callable[[CallSpec], Reply | None] = lambda _: None
    asked: list[CallSpec] = field(default_factory=list)

    async def complete(self, call: CallSpec) -> Reply:
        self.asked.append(call)
        return self.instead(call) or await self.of.complete(call)


def kind(call: CallSpec) -> str:
    """What a call asks for."""
    wanted = json.loads(call.schema.text)["properties"]
    return next(name for name in ("outcome", "author", "reasoning") if name in wanted)


def test_whole_records_and_periods_are_graded_by_every_judge(judged):
    store = Store(judged)
    grades = store.read(tracks.GRADES)
    assert tracks.GRADES.from_arrow(tracks.GRADES.to_arrow(grades)) == grades
    assert {(one.scope, one.period) for one in grades} == {
        ("whole", ""), ("period", "2024-W09"), ("period", "2024-W10"), ("period", "2024-W11")
    }  # fmt: skip
    assert len(grades) == 4 * 2 * 3
    assert all(one.score.score is not None for one in grades)
    whole = [one for one in grades if one.scope == "whole"]
    assert {(one.first, one.last, one.steps) for one in whole} == {("2024-03-01", "2024-03-15", 11)}
    assert {one.steps for one in grades if one.period == "2024-W10"} == {5}
    assert all(one.score.outcome is not None and one.score.outcome.state == "ok" for one in whole)
    assert all(one.score.outcome is None for one in grades if one.scope == "period")
    guesses = Counter((one.period, one.state) for one in store.read(tracks.GUESSES))
    assert guesses == dict.fromkeys([(period, "ok") for period in ("", "2024-W09", "2024-W10", "2024-W11")], 6)
    judgments = {(one.trajectory, one.judge): one for one in store.read(JUDGMENTS)}
    for one in grades:
        found = judgments[f"{one.agent}/{one.period}" if one.period else one.agent, one.judge]
        assert found.scores["composite"] == one.score.score.composite
    days = [f"2024-03-{day:02d}" for day in (1, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15)]
    decisions = {one.decision for one in store.read(EVIDENCE)}
    assert decisions <= {f"spring-{day}-{agent}" for day in days for agent in ("one", "two")}


def test_outcomes_are_shown_after_the_grades_and_nowhere_else(unjudged, tmp_path):
    spies = {name: Spy(WHO[name]) for name in WHO if name.startswith("reference/season-")}
    tracks.judge_season(copied(unjudged, tmp_path), WHO | spies)
    for spy in spies.values():
        kinds = [kind(call) for call in spy.asked]
        assert kinds == ["reasoning"] * 8 + ["outcome"] * 2 + ["author"] * 8
        for call in spy.asked:
            assert ("to the agent's next step" in call.messages[-1].text) == (kind(call) == "outcome")


def test_months_replicates_trials_and_no_probe(tmp_path):
    judges = panel("auditor").replace('auditor"\n\n', 'auditor"\n') + "trials = 2\n"
    more = '\n[judging]\nperiod = "month"\nauthor_probe = false\n'
    folder = played(tmp_path, judges=judges, more=more, head="replicates = 2", last="2024-03-06")
    tracks.judge_season(folder, WHO)
    found = Counter((one.scope, one.period, one.replicate, one.trial) for one in Store(folder).read(tracks.GRADES))
    assert found == dict.fromkeys(
        [
            ("whole", "", 1, 1), ("whole", "", 1, 2), ("period", "2024-03", 1, 1),
            ("replicate", "", 1, 1), ("replicate", "", 2, 1),
        ],
        2,
    )  # fmt: skip
    assert Store(folder).read(tracks.GUESSES) == []


def test_a_long_record_is_graded_in_parts(tmp_path):
    folder = played(
        tmp_path, judges=panel("reader"), more="\n[judging]\ntoken_budget = 4000\n", model="reference/steward"
    )
    told = tracks.expect_season_judging(folder, load_prices()).lines
    assert any("later parts show a judge's notes" in line for line in told)
    tracks.judge_season(folder, WHO)
    whole = {one.agent: one.score for one in Store(folder).read(tracks.GRADES) if one.scope == "whole"}
    assert [len(whole[agent].grades.parts) for agent in ("one", "two")] == [2, 1]
    assert all(one.score is not None for one in whole.values())
    assert sum(part.size for part in whole["one"].grades.parts) == 11


def test_whose_record_it_is_is_asked_where_all_agents_decided(unjudged):
    parts = tracks.season_parts(tracks.season_material(unjudged))
    season = tracks.stored_season(unjudged).season
    probes = tracks.season_probes(parts, season)
    assert Counter(period for _, period in probes) == {"": 6, "2024-W09": 6, "2024-W10": 6, "2024-W11": 6}
    fewer = [one for one in parts if (one.agent, one.period) != ("two", "2024-W10")]
    assert {period for _, period in tracks.season_probes(fewer, season)} == {"", "2024-W09", "2024-W11"}
    assert {one.options for one, _ in probes} == {("one", "two")}


def test_a_season_of_one_week_is_asked_about_once_and_an_agent_alone_is_not_guessed(tmp_path):
    folder = played(tmp_path, judges=panel("reader"), first="2024-03-04", last="2024-03-07")
    done = tracks.judge_season(folder, WHO)
    assert done.made == 2 + 2 + 2  # the week is the whole record: the same calls for both
    assert Counter(one.scope for one in Store(folder).read(tracks.GRADES)) == {"whole": 2, "period": 2}
    assert {one.period for one in Store(folder).read(tracks.GUESSES)} == {""}
    text = season_text(head="universe = 6", last="2024-03-05").split('[[agents]]\nname = "two"')[0] + panel("reader")
    single = begun(tmp_path / "alone", f'{text}\n[market]\nsource = "{tmp_path / "market"}"\n', WHO)
    tracks.run_season(single, WHO, now=NOW)
    tracks.judge_season(single, WHO)
    assert (Store(single).rows(tracks.GRADES), Store(single).read(tracks.GUESSES)) == (3, [])


@given(st.dates(date(1990, 1, 1), date(2100, 1, 1)))
def test_days_of_a_week_and_of_a_month_lie_together(day):
    monday = day - timedelta(days=day.weekday())
    assert (
        tracks.period_of(str(monday), "week")
        == tracks.period_of(str(day), "week")
        == tracks.period_of(f"{day} 10:30", "week")
    )
    assert tracks.period_of(str(day), "week") < tracks.period_of(str(day + timedelta(days=7)), "week")
    assert tracks.period_of(str(day), "month") == tracks.period_of(str(day.replace(day=1)), "month")


def test_judged_again_nothing_is_asked_and_the_bytes_are_the_same(judged, tmp_path):
    folder, wanted = copied(judged, tmp_path), bytes_of(judged)
    spies = {name: Spy() for name in WHO}
    first = tracks.judge_season(folder, spies)
    assert first.made == 0
    for table in TABLES:
        (folder.tables / f"{table.name}.parquet").unlink()
    again = tracks.judge_season(folder, spies)
    assert (again.made, again.lines) == (0, first.lines)
    assert bytes_of(folder) == wanted
    assert not any(spy.asked for spy in spies.values())


@pytest.mark.parametrize("at", [1, 5, 10])
def test_killed_and_called_again_it_goes_on(unjudged, judged, tmp_path, at):
    folder = copied(unjudged, tmp_path)

    def dies(call: CallSpec) -> Reply | None:
        if len(spy.asked) == at:
            raise RuntimeError("killed")
        return None

    spy = Spy(WHO["reference/season-reader"], dies)
    with pytest.raises(RuntimeError, match="killed"):
        tracks.judge_season(folder, WHO | {"reference/season-reader": spy})
    assert Store(folder).rows(tracks.GRADES) == 0
    before = len(spy.asked)
    spy.instead = lambda _: None
    tracks.judge_season(folder, WHO | {"reference/season-reader": spy})
    assert bytes_of(folder) == bytes_of(judged)
    assert len(spy.asked) - before <= 18 - (at - 1)


def test_a_season_that_goes_on_is_graded_anew(tmp_path):
    spy = Spy()
    who = WHO | {"test/judge": spy}
    folder = locked(tmp_path, judges=panel(sworn="test/judge"), who=who)
    tracks.step_season(folder, who, now=NOW, day=date(2024, 3, 8))
    early = tracks.judge_season(folder, who)
    assert "up to 2024-03-08; the season is not over" in early.lines[0]
    assert {one.last for one in Store(folder).read(tracks.GRADES) if one.scope == "whole"} == {"2024-03-08"}
    seen = {call.key for call in spy.asked}
    with pytest.raises(InputError, match="a sample of it is drawn when it is over"):
        frame_of(folder)
    tracks.run_season(folder, who, now=NOW)
    late = tracks.judge_season(folder, who)
    assert late.lines[0] == "spring: 2 agents graded by 1 judge up to 2024-03-15"
    assert {one.last for one in Store(folder).read(tracks.GRADES) if one.scope == "whole"} == {"2024-03-15"}
    again = [call for call in spy.asked if call.key in seen]
    assert len(again) == len(seen)  # the first week is over and is not asked about again
    fresh = [one for one in Store(folder).read(tracks.GRADES) if one.score.grades.parts[-1].call_key not in seen]
    assert {one.period for one in fresh} == {"", "2024-W10", "2024-W11"}


def states(folder: RunFolder, judge: str) -> set[str]:
    return {one.score.grades.state for one in Store(folder).read(tracks.GRADES) if one.judge == judge}


BAD = {
    "refused": (Reply(text="I will not.", model="m", finish="refusal"), "are refusals"),
    "truncated": (Reply(text='{"reasoning": {', model="m", finish="length"), "were cut off"),
    "invalid": (Reply(text="[bold]I like it.\x1b[31m", model="m"), "do not have the form that was asked for"),
}


@pytest.mark.parametrize("state", [*BAD, "huge"])
def test_a_judge_that_is_of_no_use_is_recorded_and_named(unjudged, judged, tmp_path, state):
    huge = Reply(text='{"reasoning": "' + "x" * 500_000 + '"}', model="m")
    reply, words = (huge, "(first: longer than 400000 characters") if state == "huge" else BAD[state]
    folder = copied(unjudged, tmp_path)
    done = tracks.judge_season(folder, WHO | {"reference/season-reader": Spy(instead=lambda _: reply)})
    assert states(folder, "reader") == {"invalid" if state == "huge" else state}
    line = next(one for one in done.lines if one.startswith("reader: 16 of 16 replies"))
    assert words in line
    assert "\x1b" not in line
    kept = [one for one in Store(judged).read(tracks.GRADES) if one.judge != "reader"]
    assert [one for one in Store(folder).read(tracks.GRADES) if one.judge != "reader"] == kept
    assert tracks.judge_season(folder, {}).made == 0  # recorded as they came, and not asked again


def test_a_reply_that_is_no_json_is_asked_for_once_more(unjudged, judged, tmp_path):
    folder, prose = copied(unjudged, tmp_path), Reply(text="I like it.", model="m")
    spy = Spy(WHO["reference/season-reader"], instead=lambda call: None if call.again else prose)
    done = tracks.judge_season(folder, WHO | {"reference/season-reader": spy})
    assert states(folder, "reader") == {"ok"}
    assert len(spy.asked) == 2 * len({replace(call, again=False).key for call in spy.asked})
    assert (
        "reader: 8 of 8 replies (100.0%) were no JSON; asked once more (trial 1b), 8 of them have scores" in done.lines
    )
    ours, theirs = (
        {(one.agent, one.judge, one.scope, one.period): one for one in Store(of).read(tracks.GRADES)}
        for of in (folder, judged)
    )
    for key, one in ours.items():
        assert one.score.score == theirs[key].score.score
        if one.judge == "reader":
            (part,), (before,) = one.score.grades.parts, theirs[key].score.grades.parts
            assert part.first_key == before.call_key != part.call_key
    assert tracks.judge_season(folder, {}).made == 0


def test_a_judge_that_never_answers_is_recorded_and_asked_again(tmp_path):
    def silent(_: CallSpec) -> Reply | None:
        raise ModelError("no reply within 5 s", retryable=True)

    spy = Spy(instead=silent)
    who = WHO | {"test/judge": spy}
    folder = played(tmp_path, judges=panel("reader", sworn="test/judge"), more=ENGINE, who=who)
    done = tracks.judge_season(folder, who)
    assert len(spy.asked) == 8  # no outcome and no guess is asked of a judge that gave nothing
    assert states(folder, "sworn") == {"failed"}
    assert states(folder, "reader") == {"ok"}
    assert any(line.startswith("sworn: 16 of 16 replies never came (first: the model gave no") for line in done.lines)
    spy.instead = lambda _: None
    again = tracks.judge_season(folder, who)
    assert again.made == 18
    assert states(folder, "sworn") == {"ok"}
    assert len(again.lines) == 2


def test_where_nobody_answers_nothing_is_written(tmp_path):
    def silent(_: CallSpec) -> Reply | None:
        raise ModelError("no key", retryable=False)

    who = WHO | {"test/judge": Spy(instead=silent)}
    folder = played(tmp_path, judges=panel(sworn="test/judge"), more=ENGINE, who=who, last="2024-03-05")
    with pytest.raises(ModelError, match=r"no judge answered anything .*no key"):
        tracks.judge_season(folder, who)
    assert Store(folder).rows(tracks.GRADES) == 0


def test_a_season_that_nobody_can_grade_or_somebody_is_grading_is_refused(unjudged, tmp_path, capsys):
    folder = copied(unjudged, tmp_path)
    with (
        tracks.alone(folder.path / "season" / "judging.lock", "busy"),
        pytest.raises(LedgerError, match="being judged by an"),
    ):
        tracks.judge_season(folder, WHO)
    with tracks.not_stepping(folder), pytest.raises(LedgerError, match="another step of this season is at work"):
        tracks.judge_season(folder, WHO)
    assert Store(folder).rows(tracks.GRADES) == 0
    bare = played(tmp_path / "bare", judges="", last="2024-03-05")
    with pytest.raises(InputError, match="no panel of models"):
        tracks.judge_season(bare, WHO)
    empty = locked(tmp_path / "empty")
    with pytest.raises(InputError, match="no decision was made yet; run: assaymark season run"):
        tracks.judge_season(empty, WHO)
    with pytest.raises(PlanError, match="holds no season"):
        tracks.judge_season(RunFolder(tmp_path / "nothing"), WHO)
    capsys.readouterr()
    assert main(["season", "judge", str(bare.path)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_it_will_cost_is_what_is_asked_then(unjudged, judged):
    there = {path.name for path in unjudged.path.rglob("*")}
    for folder, answered in ((unjudged, 0), (judged, 18)):
        lines = tracks.expect_season_judging(folder, load_prices()).lines
        stages = "18 calls (grades 8, outcomes 2, author identification 8)"
        assert lines[0].startswith(f"reference/season-allocator: {stages}, {answered} answered")
        assert lines[-2].startswith(f"in all 54 calls, {3 * answered} answered already")
    assert {path.name for path in unjudged.path.rglob("*")} == there


PRICES = """
format = "assaymark prices 1"
currency = "USD"

[[model]]
pattern = "paid/*"
input = 100.0
output = 1.0
as_of = 2026-01-01
source = "tests"
"""


def test_a_budget_ends_the_asking_and_a_higher_one_goes_on(tmp_path):
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES)
    spy = Spy()
    spy.instead = lambda call: replace(answered(spy.of, call), input_tokens=5_000, output_tokens=0)
    who = WHO | {"paid/judge": spy}
    few = panel("reader", sworn="paid/judge").replace('"paid/judge"', '"paid/judge"\nargs = {max_tokens = 10}')
    folder = played(tmp_path, judges=few, who=who, last="2024-03-05")
    with pytest.raises(ModelError, match=r"budget of 4\.00 USD would be passed"):
        tracks.judge_season(folder, paid_models(who, 4.0, prices))
    assert Store(folder).rows(tracks.GRADES) == 0
    assert 0 < len(spy.asked) < 10
    assert tracks.judge_season(folder, paid_models(who, 400.0, prices)).made > 0
    assert states(folder, "sworn") == {"ok"}
    assert len(spy.asked) == len({call.key for call in spy.asked})


def answered(model: Model, call: CallSpec) -> Reply:
    return Reply(text=model.answer(replace(call, args={})), model="paid")


def test_the_command_says_what_was_graded(unjudged, tmp_path, capsys):
    folder = copied(unjudged, tmp_path)
    assert main(["season", "judge", str(folder.path), "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "dry run: nothing was sent"
    assert Store(folder).rows(tracks.GRADES) == 0
    assert main(["season", "judge", str(folder.path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "spring: 2 agents graded by 3 judges up to 2024-03-15",
        "whole records 6 of 6, weeks 18 of 18, outcomes 6 of 6, author identification 24 of 24",
        f"next: assaymark season publish {folder.path} --out SITE",
    ]


PERSON = '\n[[panel]]\nname = "{}"\nfamily = "human"\nmodel = "human/table"\n'


def sheet(path: Path, rows: dict[tuple[str, str], float], *, outcome: bool = True, drop: str = "") -> Path:
    """A table of people's grades: every part of (record, grader) with the same points."""
    plan = load_scoring()
    parts = [part.name for part in (*plan.reasoning, *plan.evidence) if part.name != drop]
    lines = [",".join(["trajectory", "judge", *parts, *(["outcome"] if outcome else [])])]
    lines += [
        ",".join([record, who, *[f"{points:g}"] * len(parts), *([f"{points:g}"] if outcome else [])])
        for (record, who), points in rows.items()
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def with_people(tmp_path_factory) -> RunFolder:
    """A season of four days with one model and two people as judges, not judged yet. Not to be changed."""
    judges = panel("reader") + PERSON.format("ab") + PERSON.format("cd")
    return played(tmp_path_factory.mktemp("people"), judges=judges, last="2024-03-06")


def test_grades_of_people_are_read_and_count_like_those_of_any_judge(with_people, tmp_path, capsys):
    folder = copied(with_people, tmp_path)
    assert main(["season", "judge", str(folder.path)]) == 0
    said = capsys.readouterr().out
    assert f"no grades of people yet: ab, cd; read them with: assaymark import human FILE --out {folder.path}" in said
    file = sheet(tmp_path / "grades.csv", {("one", "ab"): 70, ("two", "ab"): 40, ("one/2024-W10", "ab"): 66.5})
    assert main(["import", "human", str(file), "--out", str(folder.path)]) == 0
    assert "3 grades by people" in capsys.readouterr().out
    assert main(["season", "judge", str(folder.path)]) == 0
    said = capsys.readouterr().out
    assert "2 agents graded by 2 judges" in said
    assert "no grades of people yet: cd;" in said
    mine = [one for one in Store(folder).read(tracks.GRADES) if one.judge == "ab"]
    assert {(one.agent, one.scope, one.period, one.family) for one in mine} == {
        ("one", "whole", "", "human"), ("two", "whole", "", "human"), ("one", "period", "2024-W10", "human"),
    }  # fmt: skip
    scores = {(one.agent, one.period): one.score.score for one in mine}
    assert (scores["two", ""].reasoning, scores["two", ""].outcome) == (40, 40)
    assert (scores["one", "2024-W10"].process, scores["one", "2024-W10"].outcome) == (66.5, None)
    # Arithmetic caps what a person says of the numbers, too.
    assert all(one.score.score.evidence <= one.score.score.reasoning for one in mine)
    assert main(["season", "judge", str(folder.path)]) == 0
    assert main(["season", "publish", str(folder.path), "--out", str(tmp_path / "site"), "--calls"]) == 0
    file = json.loads((folder.path / "verdicts.json").read_text())
    assert file["panel"]["judges"] == {"reader": "jreader", "ab": "human", "cd": "human"}
    first = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "Two judges graded each whole record blind." in first
    assert "Dots are the two judges" in first
    assert "Judge cd has graded nothing yet." in first


def test_people_grade_what_the_season_has_data_for(with_people, tmp_path):
    folder = copied(with_people, tmp_path)
    left = [part.name for part in tracks.season_material(folder).scoring.not_applicable]
    assert left == ["valuation_use", "analyst_use"]
    whole, less = sheet(tmp_path / "whole.csv", {("one", "ab"): 70}), tmp_path / "less.csv"
    head, row = (line.split(",") for line in whole.read_text().splitlines())
    graded = {name: "0" if name in left else points for name, points in zip(head, row, strict=True)}
    for file, kept in ((whole, head), (less, [name for name in head if name not in left])):
        file.write_text("\n".join([",".join(kept), ",".join(graded[name] for name in kept)]))
        import_grades(folder, file)
        tracks.judge_season(folder, WHO)
        (mine,) = [one.score.grades for one in Store(folder).read(tracks.GRADES) if one.judge == "ab"]
        assert mine.evidence == {part.name: 70.0 for part in tracks.season_material(folder).scoring.evidence}


def test_the_file_of_grades_that_the_season_names_is_read_by_judging(tmp_path):
    more = '\n[human]\ngrades = "grades.csv"\n'
    folder = played(tmp_path, judges=PERSON.format("ab"), more=more, last="2024-03-05")
    with pytest.raises(InputError, match="has no panel of models that could grade it; read what people graded with"):
        tracks.judge_season(folder, WHO)
    sheet(folder.path / "grades.csv", {("one", "ab"): 70, ("two", "ab"): 40}, outcome=False)
    tracks.judge_season(folder, WHO)
    assert {one.score.score.composite for one in Store(folder).read(tracks.GRADES) if one.agent == "two"} == {40}
    plan = load_scoring()
    rows = [  # one row a grade
        f"{agent},ab,{part.name},{points},2024-04-01T10:00:00Z"
        for agent, points in (("one", 70), ("two", 50))
        for part in (*plan.reasoning, *plan.evidence)
    ]
    (folder.path / "grades.csv").write_text("\n".join(["trajectory,grader,dimension,grade,time", *rows]) + "\n")
    tracks.judge_season(folder, WHO)
    assert {one.score.score.composite for one in Store(folder).read(tracks.GRADES) if one.agent == "two"} == {50}


def test_grades_that_are_none_are_refused_with_every_problem(with_people, unjudged, tmp_path):
    folder = copied(with_people, tmp_path)
    rows = {("one", "ab"): 101, ("three", "ab"): 50, ("one/2024-W33", "cd"): 50, ("two", "ef"): 50}
    with pytest.raises(InputError) as found:
        import_grades(folder, sheet(tmp_path / "bad.csv", rows))
    said = "\n".join(map(str, found.value.problems))
    assert "must be a finite number from 0 to 100 (got '101')" in said
    assert "no such record among those that there are (got 'three')" in said
    assert "no such record among those that there are (got 'one/2024-W33')" in said
    assert "unknown human grader of the plan 'ef'" in said
    with pytest.raises(InputError, match="no column 'claim_support'"):
        import_grades(folder, sheet(tmp_path / "part.csv", {("one", "ab"): 60}, drop="claim_support"))
    (tmp_path / "twice.csv").write_text(
        "trajectory,grader,dimension,grade\none,ab,claim_support,5\none,ab,claim_support,6\n"
    )
    with pytest.raises(InputError, match="'ab' graded 'claim_support' of 'one' twice"):
        import_grades(folder, tmp_path / "twice.csv")
    with pytest.raises(InputError, match="no judge of the panel is a person"):
        import_grades(unjudged, sheet(tmp_path / "good.csv", {("one", "ab"): 60}))


# People beside the panel


def labels(path: Path, grades: dict[tuple[str, str], object], *, dimension: str = "aggregate",
           at: str = "2100-01-02T10:00:00Z") -> Path:  # fmt: skip
    """What people outside the panel gave: by (record, grader)."""
    rows = [f"{record},{who},{dimension},{points},{at}" for (record, who), points in grades.items()]
    path.write_text("\n".join(["trajectory,grader,dimension,grade,time", *rows]) + "\n")
    return path


def said_by(capsys, *words: object, status: int = 0) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == status
    both = capsys.readouterr()
    return " ".join((both.err if status else both.out).split())


@pytest.fixture(scope="module")
def beside_people(judged, own_copy) -> RunFolder:
    """The judged season with all of its weeks drawn, to be graded by two people, and published. Not to be changed."""

    def build(path: Path) -> None:
        folder = copied(judged, path)
        assert main(["draw", str(folder.path), "--sample", "3", "--double", "1"]) == 0
        assert main(["season", "publish", str(folder.path), "--out", str(path / "site")]) == 0

    return RunFolder(own_copy("season-beside-people", build) / "copy")


WEEKS = ("2024-W09", "2024-W10", "2024-W11")


def test_judges_of_a_season_are_held_against_people(beside_people, tmp_path, capsys):
    folder, site = copied(beside_people, tmp_path), tmp_path / "site"
    before, decided = bytes_of(folder), json.loads((folder.path / "verdicts.json").read_text())
    given = {(f"{agent}/{week}", who): 40 + 9 * k + 20 * (agent == "one") + 3 * (who == "cd")
             for agent in ("one", "two") for k, week in enumerate(WEEKS) for who in ("ab", "cd")}  # fmt: skip
    said = said_by(capsys, "import", "human", labels(tmp_path / "g.csv", given), "--out", folder.path)
    assert "12 grades by people" in said
    said = said_by(capsys, "season", "judge", folder.path)
    assert "people beside the panel: 12 grades by 2 people, 3 of 3 weeks drawn" in said
    assert bytes_of(folder) == before
    assert main(["season", "publish", str(folder.path), "--out", str(site)]) == 0
    file = json.loads((folder.path / "verdicts.json").read_text())
    for verdicts in (file["verdicts"], decided["verdicts"]):
        for one in verdicts:
            del one["measurements"]  # of orders, now also the sample
    assert all(file[name] == decided[name] for name in ("plan_hash", "tally", "places", "verdicts"))
    found = {one["name"] + one["labels"].get("judge", ""): one for one in file["measurements"].values()}
    sample, agreed = found["human.sample"], found["human.agreement"]
    assert (sample["value"], sample["n"], sample["detail"]["graders"]) == (1.0, 3, ["ab", "cd"])
    assert agreed["state"] == "not measurable: 6 records were graded by two people, needs 20"
    for judge in JUDGES:
        mine = [(f"{one.agent}/{one.period}", one.score.score.composite) for one in Store(folder).read(tracks.GRADES)
                if one.judge == judge and one.scope == "period"]  # fmt: skip
        gaps = [points - (given[record, "ab"] + given[record, "cd"]) / 2 for record, points in mine]
        row = found[f"human.judge{judge}"]
        assert row["n"] == 6
        assert row["detail"]["bias"]["estimate"] == pytest.approx(sum(gaps) / 6)
        assert row["detail"]["pass"] == 62.5
    for path, words in (("panel.html", "What do people say?"), ("de/panel.html", "Was sagen Menschen?")):
        page = (site / path).read_text(encoding="utf-8")
        assert words in page.partition('id="people"')[2].partition("</section>")[0]
    assert main(["verify", str(folder.path)]) == 0
    assert "graded 6 records, 20 are needed" in (site / "panel.html").read_text(encoding="utf-8")
    assert "6 Aufzeichnungen bewertet, nötig sind 20" in (site / "de" / "panel.html").read_text(encoding="utf-8")


def test_grades_that_are_no_sample_of_a_season_correct_nothing(beside_people, tmp_path, capsys):
    folder = copied(beside_people, tmp_path)
    early = labels(tmp_path / "early.csv", {("one/2024-W10", "ab"): 60, ("two/2024-W10", "ab"): 50},
                   at="2024-01-02T10:00:00Z")  # fmt: skip
    assert main(["import", "human", str(early), "--out", str(folder.path)]) == 0
    assert main(["season", "publish", str(folder.path), "--out", str(tmp_path / "site")]) == 0
    found = json.loads((folder.path / "verdicts.json").read_text())["measurements"]
    sample = found["human.sample[dimension=aggregate]"]
    assert sample["value"] is None
    assert "not later than the draw" in sample["state"]
    assert "no random sample of this season" in (tmp_path / "site" / "panel.html").read_text(encoding="utf-8")
    said = said_by(capsys, "draw", folder.path, "--sample", 2, status=1)
    assert "a second draw would choose among labels" in said


def test_the_file_that_a_season_names_has_grades_of_people_in_and_beside_the_panel(tmp_path, capsys):
    more = '\n[human]\ngrades = "grades.csv"\n'
    folder = played(tmp_path, judges=panel("reader") + PERSON.format("ab"), more=more, last="2024-03-05")
    said_by(capsys, "season", "judge", folder.path)
    said = said_by(capsys, "draw", folder.path, "--sample", 2, "--double", 0)
    assert "with AGENT/PERIOD as trajectory, aggregate as dimension and grades from 0 to 100" in said
    beside = {(f"{agent}/{week}", "gh"): 60 for agent in ("one", "two") for week in WEEKS[:2]}
    labels(folder.path / "grades.csv", beside)
    assert "people beside the panel: 4 grades by 1 person" in said_by(capsys, "season", "judge", folder.path)
    # Grades of the panel that came since: the season is to be judged anew, and the sample is read all the same.
    assert (
        main(["import", "human", str(sheet(tmp_path / "p.csv", {("one", "ab"): 60})), "--out", str(folder.path)]) == 0
    )
    assert "2 agents graded by 2 judges" in said_by(capsys, "season", "judge", folder.path)
    parts = [part.name for part in (*load_scoring().reasoning, *load_scoring().evidence)]
    rows = [f"one,ab,{name},70,2100-01-02T10:00:00Z" for name in parts]
    (folder.path / "grades.csv").write_text("\n".join(["trajectory,grader,dimension,grade,time", *rows]))
    said = said_by(capsys, "season", "judge", folder.path)
    assert "2 agents graded by 2 judges" in said
    assert "people beside the panel: 4 grades by 1 person" in said


def test_what_cannot_be_drawn_or_read_of_a_season_is_refused(beside_people, unjudged, tmp_path, capsys):
    folder = copied(beside_people, tmp_path)
    assert "must be 1 to 3" in said_by(capsys, "draw", folder.path, "--sample", 4, status=1)
    assert "assaymark season judge" in said_by(capsys, "draw", unjudged.path, "--sample", 1, status=1)
    assert "graded elsewhere" in said_by(capsys, "label", folder.path, "--file", tmp_path / "x.html", status=1)
    wrong = {("one", "ab"): 60, ("one/2024-W10", "ab"): 101, ("one/2024-W33", "ab"): 50}
    said = said_by(capsys, "import", "human", labels(tmp_path / "g.csv", wrong), "--out", folder.path, status=1)
    assert "no such record among those that there are (got 'one')" in said
    assert "no such record among those that there are (got 'one/2024-W33')" in said
    assert "from 0 to 100 (got '101')" in said
    early = labels(tmp_path / "e.csv", {("one/2024-W10", "ab"): 60})
    said = said_by(capsys, "import", "human", early, "--out", unjudged.path, status=1)
    assert "first draw what these grade (assaymark draw)" in said
    bad = labels(tmp_path / "d.csv", {("one/2024-W10", "ab"): 60}, dimension="claim_support", at="2100-01-02")
    said = said_by(capsys, "import", "human", bad, "--out", folder.path, status=1)
    assert "unknown dimension 'claim_support'" in said
    assert "time" in said
