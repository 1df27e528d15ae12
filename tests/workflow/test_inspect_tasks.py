"""The tasks that Inspect finds: the prompts of a study, and replies read by the strict parsers."""

from __future__ import annotations

import json
import math
from importlib.metadata import EntryPoint

import pytest

from assaymark import workflow
from assaymark.errors import InputError, UnknownNameError
from assaymark.judging import load_rubric, pairs

NAMES = load_rubric("v1.0").names
GOOD = json.dumps({"scores": dict.fromkeys(NAMES, 4), "evidence": [], "lookahead_check": "pass", "comment": None})
LED = f"Here it is: {GOOD}"


@pytest.fixture(scope="module")
def ai():
    return pytest.importorskip("inspect_ai", reason="inspect-ai is not installed (the extra [inspect])")


def test_a_reply_of_the_right_form_has_its_scores_and_any_other_has_none_and_says_why():
    assert workflow.graded_value(GOOD, "stop", "v1.0") == ({"usable": 1.0, **dict.fromkeys(NAMES, 4.0)}, None)
    for text, stop, why in (
        (LED, "stop", "not one JSON object"), (GOOD, "max_tokens", "cut off at the length limit"),
        (GOOD, "model_length", "cut off at the length limit"), (GOOD, "content_filter", "the model refused to answer"),
        ("", "unknown", "not one JSON object"),
    ):  # fmt: skip
        value, reason = workflow.graded_value(text, stop, "v1.0")
        assert value["usable"] == 0.0
        assert all(math.isnan(value[name]) for name in NAMES)
        assert why in reason


def test_what_a_verdict_on_a_pair_is_worth():
    for verdict, better, first, right in (
        ("1", "1", 1.0, 1.0), ("2", "1", 0.0, 0.0), ("tie", "1", math.nan, 0.0), ("1", "", 1.0, math.nan),
        ("abstain", "", math.nan, math.nan),
    ):  # fmt: skip
        text = json.dumps({"verdict": verdict, "reason": "It names a stop."})
        value, reason = workflow.preferred_value(text, "stop", better)
        assert value == pytest.approx({"usable": 1.0, "first": first, "right": right}, nan_ok=True)
        assert reason is None
    value, reason = workflow.preferred_value('{"verdict": "1", "reason": "x"}', "max_tokens", "1")
    assert (value["usable"], reason) == (0.0, "the reply ended by length")


def test_the_entry_point_registers_both_tasks_under_our_name(ai):
    registry = pytest.importorskip("inspect_ai._util.registry")
    loaded = EntryPoint(name="assaymark", value="assaymark.workflow.inspect_tasks", group="inspect_ai").load()
    assert loaded is workflow.inspect_tasks
    for name in ("judge", "pairs"):
        assert registry.registry_lookup("task", f"assaymark/{name}") is not None


def test_the_task_shows_what_the_study_shows_and_not_who_decided(ai, finished):
    folder = workflow.RunFolder(finished)
    desk = workflow.JudgingSession(folder, workflow.open_locked(folder), {}, workflow.silent)
    wanted = {item: desk.shown[name].text for name, item in workflow.item_names(desk.shown).items()}
    task = workflow.inspect_tasks.judge(str(finished))
    assert [(one.id, one.input[1].text) for one in task.dataset] == sorted(wanted.items())
    assert {tuple(one.metadata) for one in task.dataset} == {("cluster",)}
    assert set(task.config.response_schema.json_schema.properties["scores"].properties) == set(NAMES)
    assert task.metadata["plan_hash"] == desk.locked.plan_hash


def test_another_rubric_can_be_named_and_a_wrong_one_and_a_folder_that_is_no_run_are_refused(ai, finished, tmp_path):
    task = workflow.inspect_tasks.judge(str(finished), rubric="v1.1", trials=2)
    assert (task.metadata["rubric"], task.epochs) == ("v1.1", 2)
    assert load_rubric("v1.1").text in task.dataset[0].input[0].text
    with pytest.raises(UnknownNameError, match="unknown rubric 'v9'"):
        workflow.inspect_tasks.judge(str(finished), rubric="v9")
    with pytest.raises(InputError, match="no such run folder"):
        workflow.inspect_tasks.judge(str(tmp_path / "none"))


def test_pairs_come_in_both_orders_with_what_is_known_of_them(ai):
    task = workflow.inspect_tasks.pairs(seed=3)
    names = [one.id for one in task.dataset]
    assert len(set(names)) == len(names)
    swapped = {one.id: one.metadata["better"] for one in task.dataset if one.metadata["condition"] == "ladder"}
    assert swapped
    for name, slot in swapped.items():
        other = f"{name[:-2]}{'vu' if name.endswith('uv') else 'uv'}"
        assert {slot, swapped[other]} == {"1", "2"}
    assert task.config.response_schema.json_schema.model_dump(exclude_none=True) == pairs.pair_schema()


@pytest.mark.filterwarnings("ignore")  # of Inspect's own event streams, closed by the garbage collector
def test_an_eval_counts_usable_replies_and_averages_nothing_else(ai, finished, tmp_path):
    model = pytest.importorskip("inspect_ai.model")

    def said(text):
        made = model.ModelOutput.from_content("mock-1", text)
        made.usage = model.ModelUsage(input_tokens=1, output_tokens=1)
        return made

    asked = model.get_model("mockllm/model", custom_outputs=[said(GOOD), said(LED), said(GOOD)])
    task, manner = workflow.inspect_tasks.judge(str(finished)), {"limit": 3, "max_samples": 1, "display": "none"}
    (log,) = ai.eval(task, model=asked, log_dir=str(tmp_path), log_realtime=False, **manner)
    assert log.status == "success"
    ((name, metrics),) = ((one.name, one.metrics) for one in log.results.scores)
    assert (name, metrics["mean"].value) == ("usable", pytest.approx(2 / 3))
    values = [one.scores["graded"].value for one in log.samples]
    assert [value["usable"] for value in values] == [1.0, 0.0, 1.0]
    assert [value[NAMES[0]] for value in values if value["usable"]] == [4.0, 4.0]
