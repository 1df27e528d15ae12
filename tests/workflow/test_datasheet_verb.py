"""`assaymark datasheet`: built-in judges with known flaws, and every error."""

# ruff: noqa: I001

from __future__ import annotations

import io
import json
import re
import shutil
from collections import Counter, defaultdict
from contextlib import redirect_stdout
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from datasheet_runs import (
    CLEAN, JUDGES, SIMPLE, THREE, attempts, chips, datasheet, drift, measured, said, sheet_of, two_tasks, write_log,
)  # fmt: skip
from made_records import STUDY
from repetitions import over_seeds
from scipy.stats import binom
from sklearn.metrics import cohen_kappa_score

from assaymark import workflow
from assaymark.cli import main, models
from assaymark.engine import CallSpec, Model, Reply
from assaymark.errors import InputError, ModelError
from assaymark.judging import load_rubric
from assaymark.protocol import JudgeSpec, RubricChoice, Study
from assaymark.records import canonical_json
from assaymark.workflow import PAIRS, RunFolder, Store
from assaymark.workflow import tracks


@pytest.fixture(scope="module")
def three(own_copy) -> Path:
    """The three reference judges under both instructions, without pages. Not to be changed."""

    def build(folder: Path) -> None:
        tracks.measure_judges(RunFolder(folder / "run"), [reference(judge) for judge in JUDGES], models(), pages=False)

    return own_copy("three-datasheets", build) / "run"


@pytest.fixture(scope="module")
def small(tasks) -> list[str]:
    """Options for a run of 180 calls."""
    return [*CLEAN, "--tasks", str(tasks)]


@pytest.fixture(scope="module")
def asked(small, own_copy) -> Path:
    """Such a run. Not to be changed."""
    return own_copy("small-datasheet", lambda folder: datasheet(folder / "run", *small)) / "run"


@pytest.fixture(scope="module")
def few(asked, small, own_copy) -> Path:
    """The three judges in such a run, one of them compared with its datasheet. Not to be changed."""

    def build(folder: Path) -> None:
        with redirect_stdout(io.StringIO()) as screen:
            words = [*THREE, *small[2:], "--compare", asked / "datasheets" / "checklist.json"]
            assert datasheet(folder / "run", *words) == 0
        (folder / "screen.txt").write_text(screen.getvalue(), encoding="utf-8")

    return own_copy("few-datasheets", build) / "run"


@pytest.fixture
def again(asked, tmp_path) -> Path:
    """A copy of the run of one judge, to resume."""
    return Path(shutil.copytree(asked, tmp_path / "again"))


def reference(name: str, **args: float) -> JudgeSpec:
    return JudgeSpec(name=name, model=f"reference/{name}", family="reference", args=args)


def test_three_judges_tell_the_three_stories_that_were_planted(three):
    assert {judge: chips(sheet_of(three, judge)) for judge in JUDGES} == {
        judge: [f"vacuum: {vacuum}", f"equal texts: {equal}", f"target: {target}", "strict prompt: moves the criterion"]
        for judge, vacuum, equal, target in (
            ("slot-biased", "leaky", "position-led", "needs 4 requirements"),
            ("surface-swayed", "clean", "mixed", "sensitive below one requirement"),
            ("checklist", "clean", "quiet", "sensitive below one requirement"),
        )
    }


def test_the_datasheet_says_what_was_run_and_all_of_it_is_written(few):
    manifest = json.loads((few / "stimuli.json").read_text())["manifest"]
    comparison = (few / "report" / "datasheets.html").read_text(encoding="utf-8")
    calls = Store(RunFolder(few)).read(PAIRS)
    for judge in JUDGES:
        sheet = sheet_of(few, judge)
        assert (sheet.judge, sheet.model, sheet.source, sheet.tasks, sheet.arms) == (
            judge, f"reference/{judge}", "run", manifest["tasks"], ("tie-allowed",),
        )  # fmt: skip
        assert sheet.calls == {"all": manifest["calls"], "ok": manifest["calls"], "invalid": 0}
        assert (sheet.manifest, set(sheet.prompts)) == (manifest["sha256"], set(sheet.arms))
        assert sheet.fingerprint
        assert f'href="datasheet/{judge}.html"' in comparison
        assert judge in (few / "report" / "datasheet" / f"{judge}.html").read_text(encoding="utf-8")
        assert ElementTree.parse(few / "report" / "datasheet" / f"{judge}.svg").getroot().tag.endswith("svg")
        assert canonical_json(sheet) + "\n" == (few / "datasheets" / f"{judge}.json").read_text(encoding="utf-8")
        found = {f"{c.pair}|{c.order}|{c.prompt}|{c.trial}": c.verdict for c in calls if c.judge == judge}
        assert found == sheet.anchors  # every answer is in the table of pairs
        assert sum(call.judge == judge for call in calls) == sheet.calls["all"]


def test_agreement_of_judges_is_that_of_scikit_learn(few):
    shown = said((few.parent / "screen.txt").read_text(encoding="utf-8"))
    answers: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for call in Store(RunFolder(few)).read(PAIRS):
        answers[call.judge][call.pair, call.order] = call.verdict
    assert "checklist: null pairs: no preference; equal texts: no preference; difference noticed: below" in shown
    for a, b in combinations(JUDGES, 2):
        common = sorted(answers[a].keys() & answers[b].keys())
        kappa = cohen_kappa_score([answers[a][key] for key in common], [answers[b][key] for key in common])
        by_content = f"kappa of {a} and {b} by content, orders averaged: "
        assert shown.index(by_content) < shown.index(f"kappa of {a} and {b} by position, call by call: {kappa:.2f} (")


def test_a_second_run_asks_nothing_and_a_further_arm_only_what_is_new(small, again):
    sheet = sheet_of(again, "checklist")
    assert (sheet.tasks, sheet.calls["all"], attempts(again)) == (2, 180, 180)
    assert len({pair.task for pair in sheet.pairs.values()}) == 2
    shift = measured(sheet, "criterion.shift", condition="same_subset")
    assert shift.state == "not measured: strict arm was not run"
    files_of = [again / "stimuli.json", *again.glob("datasheets/*"), *(again / "report").rglob("*.*")]
    first = {path: path.read_bytes() for path in files_of}
    # The answers of the judge, its calls, and the texts that these showed among them.
    assert len([path for path in first if "figures" not in path.parts]) == 10
    assert datasheet(again, *small) == 0
    assert (attempts(again), {path: path.read_bytes() for path in first}) == (180, first)
    assert datasheet(again, *(word for word in small if word != "--no-strict")) == 0
    assert attempts(again) == 2 * 180
    assert measured(sheet_of(again, "checklist"), "criterion.shift", condition="same_subset").state == "ok"


def test_stimuli_depend_on_the_seed_and_datasheets_on_other_stimuli_are_not_compared(
    small, asked, few, tmp_path, capsys
):
    old = asked / "datasheets" / "checklist.json"
    assert datasheet(tmp_path / "other", *small, "--seed", "8", "--compare", old) == 0
    assert "The two datasheets cannot be compared: the texts differ" in said(capsys.readouterr().out)
    verdict = drift(sheet_of(tmp_path / "other", "checklist"))
    assert (verdict.value, verdict.detail["verdict"]) == (None, "not comparable")
    assert "another manifest" in verdict.state
    verdict = drift(sheet_of(few, "checklist"))
    assert (verdict.value, verdict.detail["verdict"], verdict.detail["shifted"]) == (0.0, "same instrument", [])
    assert "checklist: No shift was found (" in said((few.parent / "screen.txt").read_text("utf-8"))
    assert "no shift" in (few / "report" / "datasheet" / "checklist.html").read_text()
    for judge in JUDGES[1:]:  # each is compared with its own earlier datasheet
        assert "drift.verdict" not in {item.name for item in sheet_of(few, judge).measurements}
    first, same, other = ((out / "stimuli.json").read_bytes() for out in (asked, few, tmp_path / "other"))
    assert first == same
    assert json.loads(first)["manifest"]["sha256"] != json.loads(other)["manifest"]["sha256"]


FIXED_BY_THE_PLANT = (
    "dark_current", "graded_vacuum", "delta0.stable", "delta0.positional", "delta0.one_sided", "sensitivity",
    "filler.preference", "threshold",
)  # fmt: skip


def test_planted_values_lie_in_their_intervals_at_about_the_stated_rate(tmp_path):
    judges, known = [reference(judge) for judge in JUDGES], models()

    def made(seed: int) -> list[bool]:
        held = []
        folder = RunFolder(tmp_path / str(seed))
        for sheet in tracks.measure_judges(folder, judges, known, seed=seed, strict=False, pages=False).sheets:
            items = {item.id: item for item in sheet.measurements}
            assert sheet.planted is not None
            for name, value in sheet.planted.items():
                item = items[name]
                # A share planted at 0 or 1 is measured exactly and says nothing about the width.
                if item.name in FIXED_BY_THE_PLANT and "variant" not in item.labels and 0 < value != 1:
                    held.append(item.low - 1e-9 <= value <= item.high + 1e-9)
        return held

    held = [one for ones in over_seeds(made, (1, 2, 3)) for one in ones]
    low, high = binom.interval(0.999, len(held), 0.95)
    assert len(held) > 120
    assert low <= sum(held) <= high


def test_trials_measure_whether_asking_again_changes_anything(small, tmp_path):
    words = ["--judge", "reference/slot-biased", *small[2:], "--trials", "3"]
    assert datasheet(tmp_path / "run", *words) == 0
    stability = measured(sheet_of(tmp_path / "run", "slot-biased"), "repeat.stability")
    by_question: dict[tuple[str, str], list[str]] = defaultdict(list)
    for call in Store(RunFolder(tmp_path / "run")).read(PAIRS):
        by_question[call.pair, call.order].append(call.verdict)
    shares = [sum(a == b for a, b in combinations(verdicts, 2)) / 3 for verdicts in by_question.values()]
    assert stability.value == pytest.approx(sum(shares) / len(shares))
    assert stability.n == len(shares) == 180
    assert 0.9 < sum(shares) / len(shares) < 1  # nine questions of ten are steady, the others agree by chance


def test_a_judge_that_changed_has_shifted_where_it_changed(tmp_path):
    """A single judge is compared under whatever name it had before."""
    before = reference("checklist", dark_current=0.4).model_copy(update={"name": "before"})
    tracks.measure_judges(RunFolder(tmp_path / "old"), [before], models(), strict=False, pages=False)
    assert datasheet(tmp_path / "new", *CLEAN, "--compare", tmp_path / "old" / "datasheets" / "before.json") == 0
    sheet = sheet_of(tmp_path / "new", "checklist")
    assert (drift(sheet).value, drift(sheet).detail["verdict"]) == (1.0, "shifted")
    assert drift(sheet).detail["shifted"] == ["dark_current"]
    moved = measured(sheet, "drift", of="dark_current")
    assert moved.detail["new"] == 0.0
    assert moved.detail["old"] == pytest.approx(0.4, abs=0.15)
    assert moved.value == pytest.approx(-float(moved.detail["old"]))  # type: ignore[arg-type]


def test_a_rubric_judge_is_shown_single_texts_and_no_pairs_beside_a_judge_of_pairs(small, again):
    assert datasheet(again, *small, "--judge", "reference/auditor") == 0
    assert sheet_of(again, "checklist").calls["all"] == 180
    sheet = sheet_of(again, "auditor")
    assert {item.name for item in sheet.measurements} == {
        "point.vacuum_score", "point.slope", "point.order", "point.verbosity"
    }  # fmt: skip
    assert sheet.calls["all"] == 2 * (2 + 6 + 4)
    assert measured(sheet, "point.verbosity", dimension="aggregate").detail["pairs"] == 2 * 4
    assert 1 <= measured(sheet, "point.vacuum_score", dimension="aggregate").value < 2
    assert (again / "report" / "datasheet" / "auditor.html").is_file()


@pytest.mark.parametrize("by", ["rubric", "plan"])
def test_the_weights_of_a_rubric_or_of_a_plan_weigh_its_dimensions(by, tasks, tmp_path):
    rubric = load_rubric("v1.0")
    judge = reference("auditor", slope=0.5, pivot=120.0)
    weights = dict.fromkeys(rubric.names, 0.0) | {"risk_alignment": 2.0, "position_sizing": 1.0}
    if by == "rubric":
        weighted = tuple(each.model_copy(update={"weight": weights[each.name]}) for each in rubric.dimensions)
        rubric = rubric.model_copy(update={"dimensions": weighted})
    else:
        rubric = workflow.tested_by(
            Study(name="weighted", seed=1, judges=(judge,), rubric=RubricChoice(weights=weights))
        )
    assert rubric.text == load_rubric("v1.0").text
    (sheet,) = tracks.measure_judges(
        RunFolder(tmp_path / "run"), [judge], models(), tasks=tasks, pointwise=True, rubric=rubric, pages=False
    ).sheets
    for name in ("point.slope", "point.verbosity"):
        whole, risk, size = (
            measured(sheet, name, dimension=each).value for each in ("aggregate", "risk_alignment", "position_sizing")
        )
        assert risk != size
        assert whole == pytest.approx((2 * risk + size) / 3)


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["--judge", "reference/chekclist"], 1, "Did you mean 'reference/checklist'?"),
        (["--judge", "reference/momentum"], 1, "cannot judge texts; built-in judges that can: reference/allocator, "),
        (["--judge", "checklist"], 1, "checklist: a model is named provider/name (got no slash)"),
        (["--judge", "reference/"], 1, "a model is named provider/name"),
        ([*CLEAN, *CLEAN], 1, "checklist: is named twice"),
        ([*CLEAN, "--comparator", "nobody/there", "--dry-run"], 1, "unknown model 'nobody/there'"),
        ([*CLEAN, "--tasks", "no-such.toml"], 1, "no-such.toml: no such task file"),
        ([*CLEAN, "--tasks", "wrong.toml"], 1,
         "wrong.toml: 3 problems task copper-breakout, position size: partly must name 'position size'"),
        ([*CLEAN, "--tasks", "wrong.toml"], 1, "partly must hold no value"),
        ([*CLEAN, "--compare", "no-such.json"], 1, "no-such.json: no such datasheet"),
        ([*CLEAN, "--compare", "bare.json"], 1, "measurements: is missing"),
        ([*CLEAN, *2 * ["--compare", "checklist.json"]], 1, "is a second datasheet of 'checklist'"),
        ([*THREE[2:], *2 * ["--compare", "checklist.json"]], 1,
         "checklist.json: is of 'checklist'; measured here: slot-biased, surface"),
        ([*CLEAN, "--seed", "-1"], 1, "--seed: must be 0 or more (got -1)"),
        ([*CLEAN, "--trials", "0"], 2, "--trials"),
        ([*CLEAN, "--from", "log.csv"], 2, "or --from LOG, and one of them only"),
        ([], 2, "give --judge MODEL"),
    ],
)  # fmt: skip
def test_what_is_refused_leaves_nothing_behind(asked, tmp_path, capsys, monkeypatch, words, status, told):
    monkeypatch.chdir(tmp_path)
    wrong = re.sub(r'partly = "The position size.*', 'partly = "It is 4 % of everything."', two_tasks(), count=1)
    Path("wrong.toml").write_text(wrong, encoding="utf-8")
    Path("bare.json").write_text('{"judge": "checklist"}')
    shutil.copy(asked / "datasheets" / "checklist.json", "checklist.json")
    assert datasheet(tmp_path / "deep" / "run", *words) == status
    assert told in said(capsys.readouterr().err)
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize("words", [CLEAN, ["--from", "log.csv"]], ids=["judge", "log"])
def test_the_folder_of_a_study_keeps_its_pages(tmp_path, capsys, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "log.csv", SIMPLE)
    page = tmp_path / "run" / "report" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("a verdict page")
    (tmp_path / "run" / "study.lock").write_text("{}")
    assert datasheet(tmp_path / "run", *words) == 1
    assert "this is the folder of a study; datasheets need their own folder" in capsys.readouterr().err
    assert page.read_text() == "a verdict page"


class Refusing:
    """A judge that answers as another does, and fails after so many calls."""

    def __init__(self, inner: Model, answers: int) -> None:
        self.inner, self.left = inner, answers

    async def complete(self, call: CallSpec) -> Reply:
        self.left -= 1
        if self.left < 0:
            raise ModelError("the account is empty", retryable=False)
        return await self.inner.complete(call)


def test_replies_that_were_paid_for_survive_a_failure_in_a_new_folder(tasks, tmp_path):
    judge, healthy, out = reference("checklist"), models(), RunFolder(tmp_path / "run")
    failing = {**healthy, judge.model: Refusing(healthy[judge.model], 100)}
    with pytest.raises(ModelError, match=r"80 of 180 calls of checklist failed .*the account is empty.*is kept in"):
        tracks.measure_judges(out, [judge], failing, tasks=tasks, strict=False)
    assert not out.datasheets.exists()
    rest = Refusing(healthy[judge.model], 80)
    made = tracks.measure_judges(out, [judge], {**healthy, judge.model: rest}, tasks=tasks, strict=False)
    assert (rest.left, [sheet.calls["all"] for sheet in made.sheets]) == (0, [180])
    with pytest.raises(InputError, match="slot_bias must be a number from 0 to 1"):
        tracks.measure_judges(RunFolder(tmp_path / "wrong"), [reference("checklist", slot_bias=2)], healthy)


LIMITS = """
[datasheets]
vacuum_score = 2.0
verbosity = 0.15
on_failure = "no-claim"
"""


def test_a_study_that_demands_datasheets_of_its_judges_measures_and_shows_them(imported, tmp_path):
    """Planted: the auditor gives half a point for every 100 tokens."""
    path = tmp_path / "s.toml"
    fond = ('model = "reference/auditor"', 'model = "reference/auditor"\nargs = { slope = 0.5, pivot = 120.0 }')
    assert fond[0] in STUDY.read_text()
    path.write_text(STUDY.read_text().replace(*fond) + LIMITS)

    def done(verb: str, *words: object) -> dict:
        assert main([verb, *map(str, words)]) == 0
        file = imported / "verdicts.json"
        return json.loads(file.read_text()) if file.exists() else {}

    done("lock", path, "--out", imported)
    for verb in ("judge", "measure", "claim"):
        file = done(verb, imported)
    assert file["tally"]["no-claim"] == len(file["verdicts"])
    assert any("no datasheet of this judge" in reason for reason in file["verdicts"][0]["reasons"])
    file = done("run", path, "--out", imported)
    sheets = {one.name: one.read_bytes() for one in (imported / "datasheets").iterdir()}
    assert sheets.keys() == {"auditor.json", "reader.json", "allocator.json", "outsider.json"}
    gates = {name: one for name, one in file["measurements"].items() if name.startswith("datasheet.gate")}
    assert Counter(one["state"] for one in gates.values()) == {"ok": 3}
    failed = {name for name, one in gates.items() if any("verbosity" in text for text in one["detail"]["failed"])}
    assert failed == {"datasheet.gate[judge=auditor]"}
    assert "datasheets" in file["verdicts"][0]["binding"]
    report = imported / "report"
    assert (report / "datasheets.html").is_file()
    assert (report / "datasheet" / "auditor.html").is_file()
    assert 'href="datasheets.html"' in (report / "index.html").read_text()
    # One that is lost is made again from the ledger.
    (imported / "datasheets" / "reader.json").unlink()
    assert done("run", path, "--out", imported) == file
    assert {one.name: one.read_bytes() for one in (imported / "datasheets").iterdir()} == sheets
