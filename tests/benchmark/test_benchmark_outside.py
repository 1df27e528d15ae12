"""Agents of one's own, asked the questions and taken through the stages as a Python callable."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest

from assaymark.benchmark.outside import ANSWER_SCHEMA, outside_call
from assaymark.benchmark.questions.generate import generate_questions
from assaymark.benchmark.questions.published import write_questions
from assaymark.benchmark.questions.solver import solve
from assaymark.engine.models import Models
from assaymark.engine.models.python_agent import PythonAgent
from assaymark.market import synthetic_history
from assaymark.protocol import AgentSpec
from assaymark.workflow.benching import bench_pipeline, bench_qa
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.tables import SCORES, Store

NOW = datetime(2026, 5, 1, tzinfo=UTC)
PLAN = """
[market]
instruments = 12
[pipeline]
profiles = ["balanced"]
windows = ["covid-2020"]
frequency = "quarterly"
[questions]
per_template = 3
file = "{questions}"
[[models]]
name = "mine"
family = "mine"
model = "python/mine:decide"
"""


def decide(context):
    """An agent that solves questions and answers every stage in JSON, from nothing but the context."""
    prompt = context.prompt
    tickers = re.findall(r"^([A-Z]+)\t", prompt.partition("BEGIN")[2], re.M)
    if "TASK S1" in prompt:
        return {"views": [{"ticker": one, "view": 0.5} for one in tickers]}
    if "TASK S2" in prompt:
        return {"signals": [{"ticker": one, "signal": "buy"} for one in tickers]}
    if "TASK S3" in prompt:
        names = sorted(set(tickers))
        return json.dumps({"weights": {one: 1 / len(names) for one in names}, "rationale": "Spread."})
    return {"answer": solve(prompt).rpartition("ANSWER:")[2].strip()}


def failing(context):
    raise RuntimeError("no")


def run(tmp_path, agent):
    path = tmp_path / "set.jsonl"
    write_questions(path, generate_questions(synthetic_history(0), counts={"T2": 20, "T4": 20, "T6": 20}).questions)
    models = Models({"python/mine:decide": PythonAgent(agent)}, {})
    folder, text = RunFolder(tmp_path / "run"), PLAN.format(questions=path)
    bench_qa(folder, text, "plan", models, now=NOW)
    bench_pipeline(folder, text, "plan", models, now=NOW)
    return Store(folder).read(SCORES)


def test_an_agent_of_ones_own_is_asked_like_any_model(tmp_path):
    scores = run(tmp_path, decide)
    full = [one for one in scores if one.name == "QA" and one.labels["condition"] == "full"]
    assert [one.value for one in full if one.convention == "paper"] == pytest.approx([1.0] * 9, abs=1e-6)
    stages = {one.name: one.state for one in scores if one.name in ("S1", "S2", "S3")}
    assert stages == {"S1": "ok", "S2": "ok", "S3": "ok"}


def test_an_agent_that_fails_has_its_failure_recorded_and_scored_by_rule(tmp_path):
    scores = run(tmp_path, failing)
    assert {one.state for one in scores if one.name in ("QA", "S1", "S2", "S3")} == {"invalid"}
    assert {one.value for one in scores if one.name == "QA"} == {0.0}


def test_a_request_says_no_day_that_the_prompt_does_not():
    call = outside_call(AgentSpec(name="m", family="m", model="http/127.0.0.1:1/x"), "Q", ANSWER_SCHEMA, "0" * 64)
    request = json.loads(call.messages[0].text)
    assert request["context"]["cutoff"].startswith("2000-01-03")
    assert request["format"] == "assaymark context 1"
