"""Models by name: the fixed ones are listed, those of providers are made from their names."""

from __future__ import annotations

import pytest
from agent_servers import agent_call, asked
from engine_calls import call as prompt_call

from assaymark.engine import run_calls
from assaymark.engine.providers.http_agent import HttpAgent, PythonAgent, external_argument_problems, patience
from assaymark.engine.providers.registry import Models, external_providers
from assaymark.errors import ModelError, UnknownNameError


def test_models_list_the_fixed_and_make_the_others_once():
    fixed = HttpAgent("http://127.0.0.1:1/")
    models = Models({"reference/steward": fixed}, external_providers())
    assert (list(models), len(models), models["reference/steward"]) == (["reference/steward"], 1, fixed)
    made = models["http/127.0.0.1:8700/decide"]
    assert isinstance(made, HttpAgent)
    assert made.url == "http://127.0.0.1:8700/decide"
    assert models["http/127.0.0.1:8700/decide"] is made
    assert models["https/agents.example/decide"].url == "https://agents.example/decide"
    assert isinstance(models["python/mine.agents:decide"], PythonAgent)
    assert list(models) == ["reference/steward"]


def test_a_name_that_no_model_has(ledger):
    models = Models({"reference/steward": HttpAgent("http://127.0.0.1:1/")}, external_providers())
    steward = r"unknown model 'reference/stewart'. Did you mean 'reference/steward'"
    for name, problem in (
        ("reference/stewart", steward), ("htpp/host/decide", "Known: .*http/HOST:PORT/PATH"),
        ("http/", "unknown model 'http/'"), ("http", "unknown model 'http'"),
        ("http/host:99999/x", "must be http://HOST:PORT/PATH"),
        ("http://host/decide", r"'http://host/decide'\. Did you mean 'http/host/decide'\? Known: anthropic/MODEL"),
        ("python/mine.decide", "must be python/PACKAGE.MODULE:ATTRIBUTE or an installed entry point"),
        ("python/../evil:run", "must be python/PACKAGE.MODULE:ATTRIBUTE"),
    ):  # fmt: skip
        assert (name in models, models.get(name)) == (False, None)
        with pytest.raises(KeyError, match=problem):
            models[name]
        assert models.problem(name) is not None
    assert models.problem("reference/steward") is None
    with pytest.raises(UnknownNameError, match=steward):
        run_calls(ledger, [agent_call("reference/stewart")], models)


def test_the_arguments_of_external_agents():
    good = {"timeout_s": 30, "token_env": "DESK_TOKEN"}
    assert list(external_argument_problems("http/host/", good)) == []
    assert list(external_argument_problems("reference/steward", {"anything": 1})) == []
    assert (patience({}), patience({"timeout_s": 2.5})) == (100.0, 2.5)
    wrong = list(external_argument_problems("https/host/", {"token_env": "sk-abc 123", "timeout_s": True, "speed": 1}))
    assert [text.partition(" ")[0] for text in wrong] == ["token_env", "timeout_s", "unknown"]
    assert "sk-abc" not in "".join(wrong)
    assert list(external_argument_problems("python/m:f", {"token_env": "A"})) == [
        "unknown argument 'token_env' of python/m:f; allowed: timeout_s"
    ]
    with pytest.raises(ModelError, match="timeout_s must be a number of seconds above 0"):
        asked(HttpAgent("http://127.0.0.1:1/"), agent_call("http/127.0.0.1:1/", timeout_s=float("inf")))


def test_an_agent_cannot_be_a_judge():
    for agent in (HttpAgent("http://127.0.0.1:1/"), PythonAgent(lambda _context: {})):
        with pytest.raises(ModelError, match=r"http/judge is an external agent: .* cannot judge or read a prompt"):
            asked(agent, prompt_call(model="http/judge"))
