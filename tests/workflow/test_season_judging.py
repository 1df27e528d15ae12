"""Judging a season: its calls, its records, and resuming it."""

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
from season_runs import NOW, begun, panel, rows, season_text, small

from assaymark.agents import reference_agents
from assaymark.cli import main
from assaymark.engine import CallSpec, Model, Reply, load_prices
from assaymark.errors import InputError, LedgerError, ModelError, PlanError
from assaymark.judging import load_scoring, reference_season_judges
from assaymark.workflow import EVIDENCE, JUDGMENTS, RunFolder, Store, frame_of, import_grades, paid_models
from assaymark.workflow import tracks

JUDGES = ("auditor", "reader", "allocator")
WEEKS = ("2024-W09", "2024-W10", "2024-W11")
TABLES = (tracks.GRADES, tracks.GUESSES, tracks.REPLACED, EVIDENCE, JUDGMENTS)
ENGINE = "\n[engine]\nattempts = 1\nbackoff_s = 0\ndeadline_s = 5\n"
WHO: dict[str, Model] = {**reference_agents(), **reference_season_judges()}
PARTS = [part.name for part in (*load_scoring().reasoning, *load_scoring().evidence)]


def locked(path: Path, *, judges: str = panel(*JUDGES), more: str = "", who=WHO, **changes) -> RunFolder:
    """A season of six instruments that is not run yet."""
    return small(path, who, more=judges + more, **changes)


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
    """The same, graded by three judges, who see outcomes only after grading. Not to be changed."""

    def build(path: Path) -> None:
        spies = {name: Spy(of) for name, of in WHO.items() if name.startswith("reference/season-")}
        assert tracks.judge_season(copied(unjudged, path), WHO | spies).done == 2 * 3 * (1 + 3) * 2 + 2 * 3
        for spy in spies.values():
            forms = [json.loads(call.schema.text)["properties"].keys() for call in spy.asked]
            for asked, names in (("reasoning", slice(8)), ("outcome", slice(8, 10)), ("author", slice(10, 18))):
                assert all(asked in form for form in forms[names])
            shown = ["to the agent's next step" in call.messages[-1].text for call in spy.asked]
            assert shown == [False] * 8 + [True] * 2 + [False] * 8

    return RunFolder(own_copy("judged-season", build) / "copy")


def copied(folder: RunFolder, path: Path) -> RunFolder:
    """A copy to be changed."""
    return RunFolder(Path(shutil.copytree(folder.path, path / "copy")))


def bytes_of(folder: RunFolder) -> dict[str, bytes]:
    return {table.name: (folder.tables / f"{table.name}.parquet").read_bytes() for table in TABLES}


def grades(folder: RunFolder, **wanted: str) -> list[tracks.SeasonGrade]:
    return rows(folder, tracks.GRADES, **wanted)


@dataclass
class Spy:
    """A judge that answers as another one does, unless ``instead`` returns something else for a call."""

    of: Model = WHO["reference/season-auditor"]
    instead: Callable[[CallSpec], Reply | None] = lambda _: None
    asked: list[CallSpec] = field(default_factory=list)

    async def complete(self, call: CallSpec) -> Reply:
        self.asked.append(call)
        return self.instead(call) or await self.of.complete(call)


def silent(_: CallSpec) -> Reply | None:
    raise ModelError("no reply within 5 s", retryable=True)


def test_whole_records_and_periods_are_graded_by_every_judge(judged):
    store, found = Store(judged), grades(judged)
    assert tracks.GRADES.from_arrow(tracks.GRADES.to_arrow(found)) == found
    assert Counter((one.scope, one.period) for one in found) == {("whole", ""): 6} | {("period", at): 6 for at in WEEKS}
    assert all(one.score.score is not None for one in found)
    for one in found:
        whole = one.scope == "whole"
        assert (one.score.outcome is not None and one.score.outcome.state == "ok") == whole
        assert not whole or (one.first, one.last, one.steps) == ("2024-03-01", "2024-03-15", 11)
        assert one.period != "2024-W10" or one.steps == 5
    guesses = Counter((one.period, one.state) for one in store.read(tracks.GUESSES))
    assert guesses == {(period, "ok"): 6 for period in ("", *WEEKS)}
    parts = tracks.season_parts(tracks.season_material(judged))
    fewer = [one for one in parts if (one.agent, one.period) != ("two", "2024-W10")]  # all agents have to have decided
    probes = tracks.season_probes(fewer, tracks.stored_season(judged).season)
    shown = {(period, *one.about[1]) for one, period in probes}
    assert shown == {(at, "one", "two") for at in ("", WEEKS[0], WEEKS[2])}
    judgments = {(one.trajectory, one.judge): one for one in store.read(JUDGMENTS)}
    for one in found:
        judgment = judgments[f"{one.agent}/{one.period}" if one.period else one.agent, one.judge]
        assert judgment.scores["composite"] == one.score.score.composite
    days = [f"2024-03-{day:02d}" for day in (1, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15)]
    decisions = {f"spring-{day}-{agent}" for day in days for agent in ("one", "two")}
    assert {one.decision for one in store.read(EVIDENCE)} <= decisions


def test_months_replicates_trials_and_no_probe(tmp_path):
    more = '\n[judging]\nperiod = "month"\nauthor_probe = false\n'
    judges = panel("auditor", more="trials = 2\n")
    folder = played(tmp_path, judges=judges, more=more, head="replicates = 2", last="2024-03-06")
    tracks.judge_season(folder, WHO)
    assert Counter((one.scope, one.period, one.replicate, one.trial) for one in grades(folder)) == dict.fromkeys(
        [("whole", "", 1, 1), ("whole", "", 1, 2), ("period", "2024-03", 1, 1), ("replicate", "", 1, 1),
         ("replicate", "", 2, 1)], 2,
    )  # fmt: skip
    assert Store(folder).read(tracks.GUESSES) == []


def test_a_long_record_is_graded_in_parts(tmp_path):
    more = "\n[judging]\ntoken_budget = 4000\n"
    folder = played(tmp_path, judges=panel("reader"), more=more, model="reference/steward")
    told = tracks.expect_season_judging(folder, load_prices()).lines
    assert any("later parts show a judge's notes" in line for line in told)
    tracks.judge_season(folder, WHO)
    whole = {one.agent: one.score for one in grades(folder, scope="whole")}
    assert [len(whole[agent].grades.parts) for agent in ("one", "two")] == [2, 1]
    assert all(one.score is not None for one in whole.values())
    assert sum(part.size for part in whole["one"].grades.parts) == 11


def test_a_season_of_one_week_is_asked_about_once_and_an_agent_alone_is_not_guessed(tmp_path):
    folder = played(tmp_path, judges=panel("reader"), first="2024-03-04", last="2024-03-07")
    assert tracks.judge_season(folder, WHO).done == 2 + 2 + 2  # the week is the whole record: the same calls for both
    assert Counter(one.scope for one in grades(folder)) == {"whole": 2, "period": 2}
    assert {one.period for one in Store(folder).read(tracks.GUESSES)} == {""}
    text = season_text(head="universe = 6", last="2024-03-05").split('[[agents]]\nname = "two"')[0] + panel("reader")
    single = begun(tmp_path / "alone", f'{text}\n[market]\nsource = "{tmp_path / "market"}"\n', WHO)
    tracks.run_season(single, WHO, now=NOW)
    tracks.judge_season(single, WHO)
    assert (Store(single).rows(tracks.GRADES), Store(single).read(tracks.GUESSES)) == (3, [])


@given(st.dates(date(1990, 1, 1), date(2100, 1, 1)))
def test_days_of_a_week_and_of_a_month_lie_together(day):
    monday, week = day - timedelta(days=day.weekday()), tracks.period_of(str(day), "week")
    assert tracks.period_of(str(monday), "week") == week == tracks.period_of(f"{day} 10:30", "week")
    assert week < tracks.period_of(str(day + timedelta(days=7)), "week")
    assert tracks.period_of(str(day), "month") == tracks.period_of(str(day.replace(day=1)), "month")


def test_judged_again_nothing_is_asked_and_the_bytes_are_the_same(judged, tmp_path):
    folder, spies = copied(judged, tmp_path), {name: Spy() for name in WHO}
    first = tracks.judge_season(folder, spies)
    assert first.done == 0
    for table in TABLES:
        (folder.tables / f"{table.name}.parquet").unlink()
    again = tracks.judge_season(folder, spies)
    assert (again.done, again.lines, bytes_of(folder)) == (0, first.lines, bytes_of(judged))
    assert not any(spy.asked for spy in spies.values())


@pytest.mark.parametrize("kills", [(1, 5), (10,)])
def test_killed_again_and_again_it_goes_on(unjudged, judged, tmp_path, kills):
    folder, left = copied(unjudged, tmp_path), [0]

    def dies(_: CallSpec) -> Reply | None:
        left[0] -= 1
        if left[0] == 0:
            raise RuntimeError("killed")
        return None

    spy = Spy(WHO["reference/season-reader"], dies)
    who = WHO | {"reference/season-reader": spy}
    for left[0] in kills:
        with pytest.raises(RuntimeError, match="killed"):
            tracks.judge_season(folder, who)
        assert Store(folder).rows(tracks.GRADES) == 0
    tracks.judge_season(folder, who)
    assert bytes_of(folder) == bytes_of(judged)
    assert len(spy.asked) <= 18 + len(kills)  # what was answered is not asked again


def test_a_season_that_goes_on_is_graded_anew(tmp_path):
    spy = Spy()
    who = WHO | {"test/judge": spy}
    folder = locked(tmp_path, judges=panel(sworn="test/judge"), who=who)
    tracks.step_season(folder, who, now=NOW, day=date(2024, 3, 8))
    assert "up to 2024-03-08; the season is not over" in tracks.judge_season(folder, who).lines[0]
    assert {one.last for one in grades(folder, scope="whole")} == {"2024-03-08"}
    seen = {call.key for call in spy.asked}
    with pytest.raises(InputError, match="its sample is drawn when it is over"):
        frame_of(folder)
    tracks.run_season(folder, who, now=NOW)
    assert tracks.judge_season(folder, who).lines[0] == "spring: 2 agents graded by 1 judge up to 2024-03-15"
    assert {one.last for one in grades(folder, scope="whole")} == {"2024-03-15"}
    # the first week is over and is not asked about again
    assert sum(call.key in seen for call in spy.asked) == len(seen)
    fresh = {one.period for one in grades(folder) if one.score.grades.parts[-1].call_key not in seen}
    assert fresh == {"", "2024-W10", "2024-W11"}


def states(folder: RunFolder, judge: str) -> set[str]:
    return {one.score.grades.state for one in grades(folder, judge=judge)}


BAD = {
    "refused": (Reply(text="I will not.", model="m", finish="refusal"), "are refusals"),
    "truncated": (Reply(text='{"reasoning": {', model="m", finish="length"), "were cut off"),
    "invalid": (Reply(text="[bold]I like it.\x1b[31m", model="m"), "do not have the required form"),
    "huge": (Reply(text='{"reasoning": "' + "x" * 500_000 + '"}', model="m"), "(first: longer than 400000 characters"),
}


@pytest.mark.parametrize("bad", [("refused", "truncated"), ("invalid", "huge")])
def test_a_judge_that_is_of_no_use_is_recorded_and_named(unjudged, judged, tmp_path, bad):
    folder = copied(unjudged, tmp_path)
    judges = dict(zip(("reader", "auditor"), bad, strict=True))
    spies = {f"reference/season-{judge}": Spy(instead=lambda _, of=of: BAD[of][0]) for judge, of in judges.items()}
    done = tracks.judge_season(folder, WHO | spies)
    for judge, state in judges.items():
        assert states(folder, judge) == {"invalid" if state == "huge" else state}
        (line,) = [one for one in done.lines if one.startswith(f"{judge}: 16 of 16 replies")]
        assert (BAD[state][1] in line, "\x1b" in line) == (True, False)
    assert grades(folder, judge="allocator") == grades(judged, judge="allocator")
    assert tracks.judge_season(folder, {}).done == 0  # recorded as they came, and not asked again


def test_a_reply_that_is_no_json_is_asked_for_once_more(unjudged, judged, tmp_path):
    folder, prose = copied(unjudged, tmp_path), Reply(text="I like it.", model="m")
    spy = Spy(WHO["reference/season-reader"], instead=lambda call: None if call.again else prose)
    done = tracks.judge_season(folder, WHO | {"reference/season-reader": spy})
    assert states(folder, "reader") == {"ok"}
    assert len(spy.asked) == 2 * len({replace(call, again=False).key for call in spy.asked})
    said = "reader: 8 of 8 replies (100.0%) were no JSON; asked once more (trial 1b), 8 of them have scores"
    assert said in done.lines
    for ours, theirs in zip(grades(folder), grades(judged), strict=True):
        assert (replace(ours, score=theirs.score), ours.score.score) == (theirs, theirs.score.score)
        if ours.judge == "reader":
            (part,), (before,) = ours.score.grades.parts, theirs.score.grades.parts
            assert part.first_key == before.call_key != part.call_key
    assert tracks.judge_season(folder, {}).done == 0


def test_a_judge_that_never_answers_is_recorded_and_asked_again_and_where_nobody_does_nothing_is_written(tmp_path):
    spy, other = Spy(instead=silent), Spy(WHO["reference/season-reader"], silent)
    who = WHO | {"test/judge": spy, "test/other": other}
    folder = played(tmp_path, judges=panel(reader="test/other", sworn="test/judge"), more=ENGINE, who=who)
    with pytest.raises(ModelError, match=r"no judge replied .*no reply within 5 s"):
        tracks.judge_season(folder, who)
    assert Store(folder).rows(tracks.GRADES) == 0
    other.instead = lambda _: None
    spy.asked.clear()
    done = tracks.judge_season(folder, who)
    assert len(spy.asked) == 8  # no outcome and no guess is asked of a judge that gave nothing
    assert (states(folder, "sworn"), states(folder, "reader")) == ({"failed"}, {"ok"})
    assert any(line.startswith("sworn: 16 of 16 replies never came (first: the model gave no") for line in done.lines)
    spy.instead = lambda _: None
    again = tracks.judge_season(folder, who)
    assert (again.done, states(folder, "sworn"), len(again.lines)) == (18, {"ok"}, 2)


def test_a_season_that_nobody_can_grade_or_somebody_is_grading_is_refused(unjudged, tmp_path, refused):
    folder = copied(unjudged, tmp_path)
    at_work = tracks.guard(folder.path / "season" / "judging.lock", "busy")
    with at_work, pytest.raises(LedgerError, match="being judged by an"):
        tracks.judge_season(folder, WHO)
    with tracks.steps_blocked(folder), pytest.raises(LedgerError, match="another step of this season is running"):
        tracks.judge_season(folder, WHO)
    assert Store(folder).rows(tracks.GRADES) == 0
    bare = played(tmp_path / "bare", judges="", last="2024-03-05")
    person = locked(tmp_path / "person", judges=PERSON.format("ab"), more=NAMED)
    tracks.step_season(person, WHO, now=NOW)
    for one, error, words in (
        (bare, InputError, "no panel of models"),
        (person, InputError, "has no panel of models that could grade it; read what people graded with"),
        (locked(tmp_path / "empty"), InputError, "no decision was made yet; run: assaymark season run"),
        (RunFolder(tmp_path / "nothing"), PlanError, "contains no season"),
    ):
        with pytest.raises(error, match=words):
            tracks.judge_season(one, WHO)
    said = refused("season", "publish", bare.path, "--out", tmp_path / "site")
    assert "no panel of models that could grade it; name judges" in said
    assert len(refused("season", "judge", bare.path).splitlines()) == 1


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

    def answered(call: CallSpec) -> Reply:
        return Reply(text=spy.of.answer(replace(call, args={})), model="paid", input_tokens=5_000, output_tokens=0)

    spy.instead = answered
    who = WHO | {"paid/judge": spy}
    few = panel("reader", sworn="paid/judge").replace('"paid/judge"', '"paid/judge"\nargs = {max_tokens = 10}')
    folder = played(tmp_path, judges=few, who=who, last="2024-03-05")
    with pytest.raises(ModelError, match=r"budget of 4\.00 USD would be exceeded"):
        tracks.judge_season(folder, paid_models(who, 4.0, prices))
    assert Store(folder).rows(tracks.GRADES) == 0
    assert 0 < len(spy.asked) < 10
    assert tracks.judge_season(folder, paid_models(who, 400.0, prices)).done > 0
    assert states(folder, "sworn") == {"ok"}
    assert len(spy.asked) == len({call.key for call in spy.asked})


def test_the_command_says_what_it_will_cost_and_what_was_graded(unjudged, judged, tmp_path, ran):
    folder = copied(unjudged, tmp_path)
    there = {path.name for path in folder.path.rglob("*")}
    for one, answered in ((folder, 0), (judged, 18)):
        lines = tracks.expect_season_judging(one, load_prices()).lines
        stages = "18 calls (grades 8, outcomes 2, author identification 8)"
        assert lines[0].startswith(f"reference/season-allocator: {stages}, {answered} answered")
        assert lines[-2].startswith(f"in all 54 calls, {3 * answered} answered already")
    assert ran("season", "judge", folder.path, "--dry-run").endswith("dry run: nothing was sent\n")
    assert {path.name for path in folder.path.rglob("*")} == there
    assert ran("season", "judge", folder.path).splitlines() == [
        "spring: 2 agents graded by 3 judges up to 2024-03-15",
        "whole records 6 of 6, weeks 18 of 18, outcomes 6 of 6, author identification 24 of 24",
        f"next: assaymark season publish {folder.path} --out SITE",
    ]


# People in the panel


PERSON = '\n[[panel]]\nname = "{}"\nfamily = "human"\nmodel = "human/table"\n'
NAMED = '\n[human]\ngrades = "grades.csv"\n'


def sheet(path: Path, rows: dict[tuple[str, str], float], *, outcome: bool = True, drop: str = "") -> Path:
    """A table of people's grades: every part of (record, grader) with the same points."""
    columns = [name for name in PARTS if name != drop] + ["outcome"] * outcome
    lines = [",".join([record, who, *[f"{points:g}"] * len(columns)]) for (record, who), points in rows.items()]
    path.write_text("\n".join([",".join(["trajectory", "judge", *columns]), *lines]) + "\n")
    return path


def long(path: Path, *rows: tuple[object, ...]) -> Path:
    """A table of grades with a row for each: record, grader, dimension, points and when."""
    lines = [",".join(map(str, row)) for row in rows]
    path.write_text("\n".join(["trajectory,grader,dimension,grade,time", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def with_people(tmp_path_factory) -> RunFolder:
    """A season of four days with one model and two people as judges, not judged yet. Not to be changed."""
    judges = panel("reader") + PERSON.format("ab") + PERSON.format("cd")
    return played(tmp_path_factory.mktemp("people"), judges=judges, last="2024-03-06")


def test_grades_of_people_are_read_and_count_like_those_of_any_judge(with_people, tmp_path, ran):
    folder = copied(with_people, tmp_path)
    said = ran("season", "judge", folder.path)
    assert f"no grades of people yet: ab, cd; read them with: assaymark import human FILE --out {folder.path}" in said
    file = sheet(tmp_path / "grades.csv", {("one", "ab"): 70, ("two", "ab"): 40, ("one/2024-W10", "ab"): 66.5})
    assert "3 grades by people" in ran("import", "human", file, "--out", folder.path)
    said = ran("season", "judge", folder.path)
    assert "2 agents graded by 2 judges" in said
    assert "no grades of people yet: cd;" in said
    mine = {(one.agent, one.scope, one.period): one for one in grades(folder, judge="ab")}
    assert mine.keys() == {("one", "whole", ""), ("two", "whole", ""), ("one", "period", "2024-W10")}
    assert {one.family for one in mine.values()} == {"human"}
    two, week = mine["two", "whole", ""].score.score, mine["one", "period", "2024-W10"].score.score
    assert (two.reasoning, two.outcome, week.process, week.outcome) == (40, 40, 66.5, None)
    # Arithmetic caps what a person says of the numbers, too.
    assert all(one.score.score.evidence <= one.score.score.reasoning for one in mine.values())
    ran("season", "publish", folder.path, "--out", tmp_path / "site", "--calls")
    file = json.loads((folder.path / "verdicts.json").read_text())
    assert file["panel"]["judges"] == {"reader": "jreader", "ab": "human", "cd": "human"}
    first = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    for words in ("Two judges graded each whole record blind.", "Dots are the two judges",
                  "Judge cd has graded nothing yet."):  # fmt: skip
        assert words in first


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
        (mine,) = [one.score.grades for one in grades(folder, judge="ab")]
        assert mine.evidence == {part.name: 70.0 for part in tracks.season_material(folder).scoring.evidence}


def test_grades_that_are_none_are_refused_with_every_problem(with_people, unjudged, tmp_path):
    folder = copied(with_people, tmp_path)
    rows = {("one", "ab"): 101, ("three", "ab"): 50, ("one/2024-W33", "cd"): 50, ("two", "ef"): 50}
    with pytest.raises(InputError) as found:
        import_grades(folder, sheet(tmp_path / "bad.csv", rows))
    said, none = "\n".join(map(str, found.value.problems)), "no such record among those that there are (got '{}')"
    for words in ("must be a finite number from 0 to 100 (got '101')", "unknown human grader of the plan 'ef'",
                  none.format("three"), none.format("one/2024-W33")):  # fmt: skip
        assert words in said
    good = {("one", "ab"): 60}
    twice = long(tmp_path / "twice.csv", *(("one", "ab", "claim_support", points, "") for points in (5, 6)))
    for run, file, words in (
        (folder, sheet(tmp_path / "part.csv", good, drop="claim_support"), "no column 'claim_support'"),
        (folder, twice, "'ab' graded 'claim_support' of 'one' twice"),
        (unjudged, sheet(tmp_path / "good.csv", good), "no judge of the panel is a person"),
    ):
        with pytest.raises(InputError, match=words):
            import_grades(run, file)


# People beside the panel


def labels(path: Path, given: dict[tuple[str, str], object], *, dimension: str = "aggregate",
           at: str = "2100-01-02T10:00:00Z") -> Path:  # fmt: skip
    """Write labels of people outside the panel, given by (record, grader)."""
    return long(path, *((record, who, dimension, points, at) for (record, who), points in given.items()))


@pytest.fixture(scope="module")
def beside_people(judged, own_copy) -> RunFolder:
    """The judged season with all of its weeks drawn, to be graded by two people, and published. Not to be changed."""

    def build(path: Path) -> None:
        folder = copied(judged, path)
        assert main(["draw", str(folder.path), "--sample", "3", "--double", "1"]) == 0
        assert main(["season", "publish", str(folder.path), "--out", str(path / "site"), "--language", "en"]) == 0

    return RunFolder(own_copy("season-beside-people", build) / "copy")


def test_judges_of_a_season_are_held_against_people(beside_people, tmp_path, ran):
    folder, site = copied(beside_people, tmp_path), tmp_path / "site"
    before, decided = bytes_of(folder), json.loads(folder.verdicts.read_text())
    given = {(f"{agent}/{week}", who): 40 + 9 * k + 20 * (agent == "one") + 3 * (who == "cd")
             for agent in ("one", "two") for k, week in enumerate(WEEKS) for who in ("ab", "cd")}  # fmt: skip
    said = ran("import", "human", labels(tmp_path / "g.csv", given), "--out", folder.path)
    assert "12 grades by people" in said
    said = ran("season", "judge", folder.path)
    assert "people beside the panel: 12 grades by 2 people, 3 of 3 weeks drawn" in said
    assert bytes_of(folder) == before
    ran("season", "publish", folder.path, "--out", site)
    file = json.loads(folder.verdicts.read_text())
    for one in (*file["verdicts"], *decided["verdicts"]):
        del one["measurements"]  # of orders, now also the sample
    assert all(file[name] == decided[name] for name in ("plan_hash", "tally", "places", "verdicts"))
    found = {one["name"] + one["labels"].get("judge", ""): one for one in file["measurements"].values()}
    sample, agreed = found["human.sample"], found["human.agreement"]
    assert (sample["value"], sample["n"], sample["detail"]["graders"]) == (1.0, 3, ["ab", "cd"])
    assert agreed["state"] == "not measurable: 6 records were graded by two people, needs 20"
    for judge in JUDGES:
        mine = {f"{one.agent}/{one.period}": one.score.score.composite
                for one in grades(folder, judge=judge, scope="period")}  # fmt: skip
        gaps = [points - (given[record, "ab"] + given[record, "cd"]) / 2 for record, points in mine.items()]
        row = found[f"human.judge{judge}"]
        assert (row["n"], row["detail"]["pass"]) == (6, 62.5)
        assert row["detail"]["bias"]["estimate"] == pytest.approx(sum(gaps) / 6)
    for path, asked, counted in (
        ("panel.html", "What do people say?", "graded 6 records, 20 are needed"),
        ("de/panel.html", "Was sagen Menschen?", "6 Aufzeichnungen bewertet, nötig sind 20"),
    ):
        page = (site / path).read_text(encoding="utf-8")
        assert asked in page.partition('id="people"')[2].partition("</section>")[0]
        assert counted in page
    ran("verify", folder.path)


def test_grades_that_are_no_sample_of_a_season_correct_nothing(beside_people, tmp_path, ran, refused):
    folder, given = copied(beside_people, tmp_path), {("one/2024-W10", "ab"): 60, ("two/2024-W10", "ab"): 50}
    early = labels(tmp_path / "early.csv", given, at="2024-01-02T10:00:00Z")
    ran("import", "human", early, "--out", folder.path)
    (past,) = folder.publications.iterdir()  # what was published of a later day is no earlier publication
    (folder.publications / "2099-01-01.json").write_text(past.read_text().replace(past.stem, "2099-01-01"))
    ran("season", "publish", folder.path, "--out", tmp_path / "site", "--language", "en")
    assert [path.name for path in (tmp_path / "site" / "archive").iterdir()] == [f"001-{past.stem[:10]}.json"]
    sample = json.loads(folder.verdicts.read_text())["measurements"]["human.sample[dimension=aggregate]"]
    assert sample["value"] is None
    assert "not later than the draw" in sample["state"]
    assert "no random sample of this season" in (tmp_path / "site" / "panel.html").read_text(encoding="utf-8")
    said = refused("draw", folder.path, "--sample", 2)
    assert "a second draw would choose among labels" in said


def test_the_file_that_a_season_names_has_grades_of_people_in_and_beside_the_panel(tmp_path, ran):
    folder = played(tmp_path, judges=panel("reader") + PERSON.format("ab"), more=NAMED, last="2024-03-05")
    ran("season", "judge", folder.path)
    said = ran("draw", folder.path, "--sample", 2, "--double", 0)
    assert "with AGENT/PERIOD as trajectory, aggregate as dimension and grades from 0 to 100" in said
    beside = {(f"{agent}/{week}", "gh"): 60 for agent in ("one", "two") for week in WEEKS[:2]}
    file = labels(folder.path / "grades.csv", beside)
    assert "people beside the panel: 4 grades by 1 person" in ran("season", "judge", folder.path)
    # Grades of the panel that came since: the season is to be judged anew, and the sample is read all the same.
    ran("import", "human", sheet(tmp_path / "p.csv", {("one", "ab"): 60}), "--out", folder.path)
    assert "2 agents graded by 2 judges" in ran("season", "judge", folder.path)
    long(file, *(("one", "ab", name, 70, "2100-01-02T10:00:00Z") for name in PARTS))
    said = ran("season", "judge", folder.path)
    assert "2 agents graded by 2 judges" in said
    assert "people beside the panel: 4 grades by 1 person" in said
    assert {one.score.score.composite for one in grades(folder, judge="ab")} == {70}


def test_what_cannot_be_drawn_or_read_of_a_season_is_refused(beside_people, unjudged, tmp_path, refused):
    folder = copied(beside_people, tmp_path).path
    week = {("one/2024-W10", "ab"): 60}
    wrong = labels(tmp_path / "g.csv", {("one", "ab"): 60, ("one/2024-W10", "ab"): 101})
    bad = labels(tmp_path / "d.csv", week, dimension="claim_support", at="2100-01-02")
    for words, told in (
        (("draw", folder, "--sample", 4), ["must be 1 to 3"]),
        (("draw", unjudged.path, "--sample", 1), ["assaymark season judge"]),
        (("label", folder, "--file", tmp_path / "x.html"), ["graded elsewhere"]),
        (("import", "human", wrong, "--out", folder), ["there are (got 'one')", "from 0 to 100 (got '101')"]),
        (("import", "human", labels(tmp_path / "e.csv", week), "--out", unjudged.path),
         ["first draw what these grade (assaymark draw)"]),
        (("import", "human", bad, "--out", folder), ["unknown dimension 'claim_support'", "time"]),
    ):  # fmt: skip
        said = refused(*words)
        assert [one for one in told if one not in said] == []
