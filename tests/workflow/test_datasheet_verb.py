"""`assaymark datasheet`: reference judges whose flaws are known, and everything wrong."""

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
from repetitions import over_seeds
from scipy.stats import binom
from sklearn.metrics import cohen_kappa_score

from assaymark.cli import models
from assaymark.engine import CallSpec, Model, Reply
from assaymark.errors import InputError, ModelError
from assaymark.protocol import JudgeSpec
from assaymark.records import canonical_json
from assaymark.workflow import PAIRS, RunFolder, Store
from assaymark.workflow import tracks


@pytest.fixture(scope="module")
def three(own_copy) -> Path:
    """The three reference judges under both instructions. Not to be changed."""

    def build(folder: Path) -> None:
        with redirect_stdout(io.StringIO()) as screen:
            assert datasheet(folder / "three", *THREE) == 0
        (folder / "screen.txt").write_text(screen.getvalue(), encoding="utf-8")

    return own_copy("three-datasheets", build) / "three"


@pytest.fixture(scope="module")
def small(tasks) -> list[str]:
    """Words for a run of 180 calls."""
    return [*CLEAN, "--tasks", str(tasks)]


@pytest.fixture(scope="module")
def asked(small, own_copy) -> Path:
    """Such a run. Not to be changed."""
    return own_copy("small-datasheet", lambda folder: datasheet(folder / "run", *small)) / "run"


@pytest.fixture
def again(asked, tmp_path) -> Path:
    """A copy of it, to go on with."""
    return Path(shutil.copytree(asked, tmp_path / "again"))


def test_three_judges_tell_the_three_stories_that_were_planted(three):
    found = {judge: chips(sheet_of(three, judge)) for judge in JUDGES}
    assert found["slot-biased"][:3] == ["vacuum: leaky", "equal texts: position-led", "target: needs 4 requirements"]
    assert found["surface-swayed"][:3] == [
        "vacuum: clean", "equal texts: mixed", "target: sensitive below one requirement",
    ]  # fmt: skip
    assert found["checklist"][:3] == ["vacuum: clean", "equal texts: quiet", "target: sensitive below one requirement"]
    assert {words[3] for words in found.values()} == {"strict prompt: moves the criterion"}


def test_the_datasheet_says_what_was_run_and_all_of_it_is_written(three):
    sheet = sheet_of(three, "slot-biased")
    manifest = json.loads((three / "stimuli.json").read_text())["manifest"]
    assert (sheet.model, sheet.source, sheet.tasks, sheet.arms) == (
        "reference/slot-biased", "run", manifest["tasks"], ("tie-allowed", "strict"),
    )  # fmt: skip
    assert sheet.calls == {"all": 2 * manifest["calls"], "ok": 2 * manifest["calls"], "invalid": 0}
    assert sheet.manifest == manifest["sha256"]
    assert sheet.fingerprint
    assert set(sheet.prompts) == set(sheet.arms)
    comparison = (three / "report" / "datasheets.html").read_text(encoding="utf-8")
    calls = Store(RunFolder(three)).read(PAIRS)
    assert Counter(call.judge for call in calls) == {judge: sheet_of(three, judge).calls["all"] for judge in JUDGES}
    for judge in JUDGES:
        assert f'href="datasheet/{judge}.html"' in comparison
        assert judge in (three / "report" / "datasheet" / f"{judge}.html").read_text(encoding="utf-8")
        assert ElementTree.parse(three / "report" / "datasheet" / f"{judge}.svg").getroot().tag.endswith("svg")
        sheet = sheet_of(three, judge)
        assert sheet.judge == judge
        assert canonical_json(sheet) + "\n" == (three / "datasheets" / f"{judge}.json").read_text(encoding="utf-8")
        found = {f"{c.pair}|{c.order}|{c.prompt}|{c.trial}": c.verdict for c in calls if c.judge == judge}
        assert found == sheet.anchors  # every answer is in the table of pairs


def test_agreement_of_judges_is_that_of_scikit_learn(three):
    shown = said((three.parent / "screen.txt").read_text(encoding="utf-8"))
    answers: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for call in Store(RunFolder(three)).read(PAIRS):
        if call.prompt == "tie-allowed":
            answers[call.judge][call.pair, call.order] = call.verdict
    for a, b in combinations(JUDGES, 2):
        common = sorted(answers[a].keys() & answers[b].keys())
        kappa = cohen_kappa_score([answers[a][key] for key in common], [answers[b][key] for key in common])
        by_content = f"kappa of {a} and {b} by content, orders averaged: "
        assert shown.index(by_content) < shown.index(f"kappa of {a} and {b} by position, call by call: {kappa:.2f} (")


def test_a_second_run_asks_nothing_and_says_the_same(small, again):
    out, sheet = again, sheet_of(again, "checklist")
    assert (sheet.tasks, sheet.calls["all"], attempts(out)) == (2, 180, 180)
    assert len({pair.task for pair in sheet.pairs.values()}) == 2
    files_of = [out / "stimuli.json", *out.glob("datasheets/*"), *(out / "report").rglob("*.*")]
    first = {path: path.read_bytes() for path in files_of}
    # The answers of the judge, its calls, and the texts that these showed among them.
    assert len([path for path in first if "figures" not in path.parts]) == 10
    assert datasheet(out, *small) == 0
    assert attempts(out) == 180
    assert {path: path.read_bytes() for path in first} == first


def test_a_further_arm_asks_only_what_is_new(small, again):
    out = again
    shift = measured(sheet_of(out, "checklist"), "criterion.shift", condition="same_subset")
    assert shift.state == "not measured: strict arm was not run"
    assert datasheet(out, *(word for word in small if word != "--no-strict")) == 0
    assert attempts(out) == 2 * 180
    assert measured(sheet_of(out, "checklist"), "criterion.shift", condition="same_subset").state == "ok"


def test_stimuli_depend_on_the_seed_and_on_nothing_else(small, asked, tmp_path):
    for name, words in {"same": ["--judge", "reference/slot-biased", *small], "other": [*small, "--seed", "8"]}.items():
        assert datasheet(tmp_path / name, *words) == 0
    first, same, other = (
        (path / "stimuli.json").read_bytes() for path in (asked, tmp_path / "same", tmp_path / "other")
    )
    assert first == same
    assert json.loads(first)["manifest"]["sha256"] != json.loads(other)["manifest"]["sha256"]


FIXED_BY_THE_PLANT = (
    "dark_current", "graded_vacuum", "delta0.stable", "delta0.positional", "delta0.one_sided", "sensitivity",
    "filler.preference", "threshold",
)  # fmt: skip


def test_planted_values_lie_in_their_intervals_at_about_the_stated_rate(tmp_path):
    held = []
    seeds = (1, 2, 3)
    made = over_seeds(lambda seed: datasheet(tmp_path / str(seed), *THREE, "--no-strict", "--seed", str(seed)), seeds)
    assert made == [0, 0, 0]
    for seed in seeds:
        out = tmp_path / str(seed)
        for sheet in (sheet_of(out, judge) for judge in JUDGES):
            known = {item.id: item for item in sheet.measurements}
            assert sheet.planted is not None
            for name, value in sheet.planted.items():
                item = known[name]
                # A share planted at 0 or 1 is measured exactly and says nothing about the width.
                if item.name in FIXED_BY_THE_PLANT and "variant" not in item.labels and 0 < value != 1:
                    held.append(item.low - 1e-9 <= value <= item.high + 1e-9)
    low, high = binom.interval(0.999, len(held), 0.95)
    assert len(held) > 120
    assert low <= sum(held) <= high


def test_trials_measure_whether_asking_again_changes_anything(small, tmp_path):
    words = ["--judge", "reference/slot-biased", *small[2:], "--trials", "3"]
    assert datasheet(tmp_path / "run", *words) == 0
    sheet = sheet_of(tmp_path / "run", "slot-biased")
    stability = measured(sheet, "repeat.stability")
    by_question: dict[tuple[str, str], list[str]] = defaultdict(list)
    for call in Store(RunFolder(tmp_path / "run")).read(PAIRS):
        by_question[call.pair, call.order].append(call.verdict)
    shares = [sum(a == b for a, b in combinations(verdicts, 2)) / 3 for verdicts in by_question.values()]
    assert stability.value == pytest.approx(sum(shares) / len(shares))
    assert stability.n == len(shares) == 180
    assert 0.9 < sum(shares) / len(shares) < 1  # nine questions of ten are steady, the others agree by chance


def args_changed(out: Path, seed: int = 7, **args: float) -> Path:
    """The datasheet of a checklist judge with other parameters, as a file."""
    judge = JudgeSpec(name="checklist", model="reference/checklist", family="reference", args=args)
    tracks.measure_judges(RunFolder(out), [judge], models(), seed=seed, strict=False)
    return out / "datasheets" / "checklist.json"


def test_a_judge_that_changed_has_shifted_where_it_changed(tmp_path):
    old = args_changed(tmp_path / "old", dark_current=0.4)
    assert datasheet(tmp_path / "new", *CLEAN, "--compare", old) == 0
    sheet = sheet_of(tmp_path / "new", "checklist")
    assert (drift(sheet).value, drift(sheet).detail["verdict"]) == (1.0, "shifted")
    assert drift(sheet).detail["shifted"] == ["dark_current"]
    moved = measured(sheet, "drift", of="dark_current")
    assert moved.detail["new"] == 0.0
    assert moved.detail["old"] == pytest.approx(0.4, abs=0.15)
    assert moved.value == pytest.approx(-float(moved.detail["old"]))  # type: ignore[arg-type]


def test_what_cannot_be_compared_is_said_or_refused(three, tmp_path, capsys):
    """A single judge is compared under whatever name it had; other stimuli, or a datasheet of nobody here, are not."""
    old = {judge: three / "datasheets" / f"{judge}.json" for judge in JUDGES}
    assert datasheet(tmp_path / "one", *CLEAN, "--compare", old["slot-biased"]) == 0
    verdict = drift(sheet_of(tmp_path / "one", "checklist")).detail
    assert verdict["verdict"] == "shifted"
    assert {"dark_current", "delta0.positional[condition=same_subset]"} <= set(verdict["shifted"])
    assert datasheet(tmp_path / "other", *CLEAN, "--seed", "8", "--compare", old["checklist"]) == 0
    verdict = drift(sheet_of(tmp_path / "other", "checklist"))
    assert (verdict.value, verdict.detail["verdict"]) == (None, "not comparable")
    assert "another manifest" in verdict.state
    assert "drift not comparable" in said(capsys.readouterr().out)
    (tmp_path / "bare.json").write_text('{"judge": "checklist"}')
    swayed = old["surface-swayed"]
    for words, told in (
        ([*THREE[:4], *2 * ["--compare", swayed]], f"{swayed}: is of 'surface-swayed'; measured here: checklist, slot"),
        ([*CLEAN, *2 * ["--compare", old["checklist"]]], "is a second datasheet of 'checklist'"),
        ([*CLEAN, "--compare", tmp_path / "bare.json"], "measurements: is missing"),
    ):
        assert datasheet(tmp_path / "run", *words) == 1
        assert told in capsys.readouterr().err
        assert not (tmp_path / "run").exists()


def test_each_judge_is_compared_with_its_own_earlier_datasheet(three, tmp_path, capsys):
    old = [word for judge in JUDGES[:2] for word in ("--compare", str(three / "datasheets" / f"{judge}.json"))]
    assert datasheet(tmp_path / "run", *THREE, "--no-strict", *old) == 0
    sheets = {judge: sheet_of(tmp_path / "run", judge).measurements for judge in JUDGES}
    verdicts = {
        judge: [item.detail["verdict"] for item in sheet if item.name == "drift.verdict"]
        for judge, sheet in sheets.items()
    }
    assert verdicts == {"checklist": ["same instrument"], "slot-biased": ["same instrument"], "surface-swayed": []}
    verdict = drift(sheet_of(tmp_path / "run", "checklist"))
    assert (verdict.value, verdict.detail["shifted"]) == (0.0, [])
    assert "checklist: same instrument (nothing shifted" in said(capsys.readouterr().out)
    assert "same instrument" in (tmp_path / "run" / "report" / "datasheet" / "checklist.html").read_text()


def test_wrong_tasks_are_named_and_nothing_is_asked(tmp_path, capsys):
    wrong = re.sub(r'partly = "The position size.*', 'partly = "It is 4 % of everything."', two_tasks(), count=1)
    (tmp_path / "mine.toml").write_text(wrong, encoding="utf-8")
    assert datasheet(tmp_path / "run", *CLEAN, "--tasks", tmp_path / "mine.toml") == 1
    err = capsys.readouterr().err
    assert "mine.toml: " in err
    assert "task copper-breakout, position size: partly must name 'position size'" in err
    assert "partly must hold no value" in err
    assert not (tmp_path / "run").exists()


def test_a_rubric_judge_is_shown_single_texts_and_no_pairs_beside_a_judge_of_pairs(small, again):
    assert datasheet(again, *small, "--judge", "reference/auditor") == 0
    assert sheet_of(again, "checklist").calls["all"] == 180
    sheet = sheet_of(again, "auditor")
    assert {item.name for item in sheet.measurements} == {
        "point.vacuum_score", "point.slope", "point.order", "point.verbosity"
    }  # fmt: skip
    assert sheet.calls["all"] == 2 * (2 + 6 + 4)
    assert measured(sheet, "point.verbosity", dimension="aggregate").detail["pairs"] == 2 * 4
    nothing = measured(sheet, "point.vacuum_score", dimension="aggregate")
    assert nothing.value is not None
    assert 1 <= nothing.value < 2
    assert (again / "report" / "datasheet" / "auditor.html").is_file()


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["--judge", "reference/chekclist"], 1, "Did you mean 'reference/checklist'?"),
        (["--judge", "checklist"], 1, "checklist: a model is named provider/name (got no slash)"),
        (["--judge", "reference/"], 1, "a model is named provider/name"),
        ([*CLEAN, *CLEAN], 1, "checklist: is named twice"),
        ([*CLEAN, "--comparator", "nobody/there"], 1, "unknown model 'nobody/there'"),
        ([*CLEAN, "--tasks", "no-such.toml"], 1, "no-such.toml: no such task file"),
        ([*CLEAN, "--compare", "no-such.json"], 1, "no-such.json: no such datasheet"),
        ([*CLEAN, "--seed", "-1"], 1, "--seed: must be 0 or more (got -1)"),
        ([*CLEAN, "--trials", "0"], 2, "--trials"),
        ([*CLEAN, "--from", "log.csv"], 2, "give --judge MODEL"),
        ([], 2, "give --judge MODEL"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(tmp_path, capsys, monkeypatch, words, status, told):
    monkeypatch.chdir(tmp_path)
    assert datasheet(tmp_path / "deep" / "run", *words) == status
    assert told in said(capsys.readouterr().err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [CLEAN, ["--from", "log.csv"]], ids=["judge", "log"])
def test_the_folder_of_a_study_keeps_its_pages(tmp_path, capsys, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "log.csv", SIMPLE)
    page = tmp_path / "run" / "report" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("a verdict page")
    (tmp_path / "run" / "study.lock").write_text("{}")
    assert datasheet(tmp_path / "run", *words) == 1
    assert "this is the folder of a study; datasheets need one of their own" in capsys.readouterr().err
    assert page.read_text() == "a verdict page"


class Refusing:
    """A judge that answers as another does, until it has answered so many calls."""

    def __init__(self, inner: Model, answers: int) -> None:
        self.inner, self.left = inner, answers

    async def complete(self, call: CallSpec) -> Reply:
        self.left -= 1
        if self.left < 0:
            raise ModelError("the account is empty", retryable=False)
        return await self.inner.complete(call)


def test_replies_that_were_paid_for_survive_a_failure_in_a_new_folder(small, tmp_path):
    tasks = Path(small[-1])
    judge = JudgeSpec(name="checklist", model="reference/checklist", family="reference")
    healthy = models()
    out = RunFolder(tmp_path / "run")
    failing = {**healthy, judge.model: Refusing(healthy[judge.model], 100)}
    with pytest.raises(ModelError, match=r"80 of 180 calls of checklist failed .*the account is empty.*is kept in"):
        tracks.measure_judges(out, [judge], failing, tasks=tasks, strict=False)
    assert not out.datasheets.exists()
    rest = Refusing(healthy[judge.model], 80)
    made = tracks.measure_judges(out, [judge], {**healthy, judge.model: rest}, tasks=tasks, strict=False)
    assert (rest.left, made.calls) == (0, 180)
    wrong = JudgeSpec(name="x", model="reference/checklist", family="reference", args={"slot_bias": 2})
    with pytest.raises(InputError, match="slot_bias must be a number from 0 to 1"):
        tracks.measure_judges(RunFolder(tmp_path / "wrong"), [wrong], healthy)
