"""Exported logs, read back by Inspect: judges' prompts and replies, and nothing that names an agent."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pyarrow as pa
import pytest

from assaymark import workflow
from assaymark.engine import Ledger, Message, Text
from assaymark.errors import AssayError, InputError, PlanError, UnknownNameError
from assaymark.judging import load_rubric, pairs


@pytest.fixture(scope="module")
def inspect_log():
    return pytest.importorskip("inspect_ai.log", reason="inspect-ai is not installed (the extra [inspect])")


@pytest.fixture(scope="module")
def logs(inspect_log, finished, tmp_path_factory):
    """Every exported log of the finished run by file name, as Inspect reads it."""
    out = tmp_path_factory.mktemp("logs")
    made = workflow.export_inspect(workflow.RunFolder(finished), out)
    assert sorted(map(str, out.iterdir())) == sorted(one["path"] for one in made)
    return {Path(one["path"]).name: (one, inspect_log.read_eval_log(one["path"])) for one in made}


def test_each_judge_and_each_kind_of_asking_has_a_log_with_the_scores_and_counts_of_the_tables(logs, finished):
    panel = {f"panel-{name}.eval" for name in ("auditor", "reader", "allocator")}
    assert set(logs) == {*panel, "outside-outsider.eval", "anchor-auditor.eval"}
    store = workflow.Store(workflow.RunFolder(finished))
    for name, table in (("panel-reader", workflow.JUDGMENTS), ("outside-outsider", workflow.PROBE),
                        ("anchor-auditor", workflow.ANCHOR)):  # fmt: skip
        made, log = logs[f"{name}.eval"]
        wanted = {(one.call_key, one.trial): one for one in store.read(table) if one.judge == made["judge"]}
        found = {(one.metadata["call_key"], one.epoch): one for one in log.samples}
        assert found.keys() == wanted.keys()
        assert (made["samples"], made["scored"]) == (len(wanted), sum(one.status == "ok" for one in wanted.values()))
        assert log.results.completed_samples == len(wanted)
        for key, judgment in wanted.items():
            assert {dim: score.value for dim, score in found[key].scores.items()} == judgment.scores
            assert found[key].metadata["status"] == judgment.status
        assert {(one.scored_samples, one.unscored_samples) for one in log.results.scores} == {(made["scored"], 0)}


def test_prompts_and_replies_are_those_of_the_ledger(logs, finished):
    _, log = logs["panel-reader.eval"]
    keys = [one.metadata["call_key"] for one in log.samples]
    with Ledger.open(workflow.RunFolder(finished).ledger) as ledger:
        replies = dict(ledger.replies(keys))
        calls = {key: ledger.call(key) for key in keys[:5]}
    assert [one.output.completion for one in log.samples] == [replies[key].text for key in keys]
    for sample in log.samples[:5]:
        call = calls[sample.metadata["call_key"]]
        assert [(one.role, one.text) for one in sample.input] == [(one.role, one.text) for one in call.messages]


def test_what_was_asked_is_said_once(logs, finished):
    locked = workflow.open_locked(workflow.RunFolder(finished))
    _, log = logs["panel-reader.eval"]
    about = {name: log.eval.metadata[name] for name in ("plan_hash", "rubric", "judge", "family", "kind")}
    named = {"rubric": "v1.0", "judge": "reader", "family": "reader", "kind": "panel"}
    assert about == named | {"plan_hash": locked.plan_hash}
    assert (log.status, log.eval.model, log.eval.config.epochs) == ("success", "reference/reader", 2)
    assert log.eval.model_generate_config.seed == 12
    assert {log.eval.created, log.stats.started_at, log.stats.completed_at} == {log.eval.created}
    assert {one.metadata["cluster"] for one in log.samples} == {
        one.cluster for one in workflow.Store(workflow.RunFolder(finished)).read(workflow.DECISIONS)
    }


def test_nothing_tells_who_decided_and_no_mean_is_taken(logs, finished):
    decisions = workflow.Store(workflow.RunFolder(finished)).read(workflow.DECISIONS)
    names = {one.agent.id for one in decisions} | {one.agent.model for one in decisions if one.agent.model}
    names |= {one.record_id for one in decisions}
    assert not names & {one.cluster for one in decisions}
    for _, log in logs.values():
        text = log.model_dump_json()
        assert not [name for name in names if f'"{name}"' in text or f" {name} " in text]
        assert all(one.metrics == {} for one in log.results.scores)
        assert log.reductions is None


def test_an_item_has_one_name_in_all_logs(logs):
    seen: dict[str, set[str]] = {}
    for name in ("panel-auditor.eval", "panel-reader.eval", "panel-allocator.eval"):
        for sample in logs[name][1].samples:
            seen.setdefault(sample.id, set()).add(sample.input[1].text)
    assert len(seen) == 72
    assert all(len(texts) == 1 for texts in seen.values())
    assert Counter(sample.id for sample in logs["panel-reader.eval"][1].samples).most_common()[-1][1] == 2
    # Names follow the text and not the record.
    shown = {name: Message("user", (Text.of(text),)) for name, text in (("a", "one"), ("b", "two"), ("c", "three"))}
    other = dict(zip(("c", "a", "b"), shown.values(), strict=True))
    by_text = {shown[name].text: item for name, item in workflow.item_names(shown).items()}
    assert by_text == {other[name].text: item for name, item in workflow.item_names(other).items()}


def test_an_answer_without_scores_is_unscored_with_its_reason_and_those_of_another_plan_are_refused(
    inspect_log, run, tmp_path
):
    folder = workflow.RunFolder(run)
    store = workflow.Store(folder)
    judgments = store.read(workflow.JUDGMENTS)
    first = next(one for one in judgments if one.judge == "auditor")
    lost = replace(first, status="invalid", scores={}, evidence=(), lookahead_check=None, reason="not JSON")
    basis = {"plan": workflow.open_locked(folder).plan_hash}
    store.write(workflow.JUDGMENTS, [lost if one is first else one for one in judgments], basis)
    log = inspect_log.read_eval_log(workflow.export_inspect(folder, tmp_path / "logs")[0]["path"])
    (sample,) = (one for one in log.samples if one.metadata["call_key"] == first.call_key)
    assert all(math.isnan(score.value) for score in sample.scores.values())
    why = {(score.reason, score.explanation) for score in sample.scores.values()}
    assert why == {("invalid_response_format", "not JSON")}
    assert (log.results.scores[0].scored_samples, log.results.scores[0].unscored_samples) == (71, 1)
    store.write(workflow.JUDGMENTS, [replace(one, call_key="0" * 64) for one in judgments], {"plan": "other"})
    with pytest.raises(PlanError, match="the judgments of auditor were not made under this plan"):
        workflow.export_inspect(folder, tmp_path / "others")


def test_without_inspect_one_line_says_what_to_install(finished, tmp_path, monkeypatch):
    monkeypatch.setattr(workflow.inspect_tasks, "ai", None)
    with pytest.raises(AssayError, match=r"pip install 'assaymark\[inspect\]'"):
        workflow.export_inspect(workflow.RunFolder(finished), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_arrow_copies_hold_what_the_tables_hold(finished, tmp_path):
    store = workflow.Store(workflow.RunFolder(finished))
    made = workflow.export_arrow(workflow.RunFolder(finished), tmp_path)
    assert {path.stem for path in made} == {path.stem for path in (finished / "tables").glob("*.parquet")}
    assert sorted(made) == sorted(tmp_path.iterdir())
    with pa.memory_map(str(tmp_path / "judgments.arrow")) as source:
        assert workflow.JUDGMENTS.from_arrow(pa.ipc.open_file(source).read_all()) == store.read(workflow.JUDGMENTS)
    with pytest.raises(InputError, match="no such run folder"):
        workflow.export_arrow(workflow.RunFolder(tmp_path / "none"), tmp_path)


def test_the_command_says_what_it_wrote_and_is_told_what_to_write_and_where(inspect_log, finished, tmp_path, ran):
    logs, arrow = tmp_path / "logs", tmp_path / "arrow"
    said = ran("export", finished, "--inspect", "--out", logs, "--arrow", arrow)
    assert f"{logs}/panel-reader.eval: 144 answers of reader, 144 with scores" in said
    assert f"{arrow}/judgments.arrow" in said
    for options in ([], ["--inspect"], ["--out", "x"]):
        ran("export", finished, *options, status=2)


# --- the tasks that Inspect finds -------------------------------------------------------------------------------------


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
    desk = workflow.JudgingSession(folder, workflow.open_locked(folder), {})
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
    assert task.config.response_schema.json_schema.model_dump(exclude_none=True) == json.loads(pairs.pair_form().schema)


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
