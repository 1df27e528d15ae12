"""One call to each model before anything is locked or spent: what it cannot pass costs that call and leaves nothing."""

from __future__ import annotations

import json
import threading
from collections import Counter

import pytest
from season_runs import season_text

from assaymark.cli import main
from assaymark.workflow import DECISIONS, JUDGMENTS, RunFolder, Store

pytest.importorskip("openai", reason="needs the openai client (extra: test)")

from provider_cases import completion
from provider_server import answer, free_url, serving
from test_study_over_wires import said

NOTHING = "nothing is locked, and nothing was sent but one call a model"
PROSE = "Certainly!\nI would give this decision four points of five."


class Provider:
    """Answers by the name of the model: some names are unknown, without money, refused a schema, or write prose."""

    def __init__(self):
        self.asked: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.refused = ""

    def __call__(self, handler, server):
        body = handler.received.body
        with self.lock:
            self.asked[body["model"]] += 1
        kind = body["model"].partition("-")[0]
        text = handler.received.raw.decode()
        if kind == "touchy":  # one text, the first it is shown, is refused as a request whenever it comes
            with self.lock:
                self.refused = self.refused or text
            kind = "bad" if text == self.refused else "good"
        failures = {
            "gone": (404, "model_not_found", "The model does not exist"),
            "locked": (401, "invalid_api_key", "Incorrect API key provided"),
            "broke": (429, "insufficient_quota", "You exceeded your current quota"),
            "bad": (400, "bad_request", "This cannot be processed"),
            "formless": (400, "invalid_json_schema", "Invalid schema for response_format"),
        }
        if kind in failures:
            status, code, message = failures[kind]
            step = answer({"error": {"message": message, "type": "invalid_request_error", "code": code}}, status)
        elif kind == "prose":
            step = answer(completion(PROSE))
        elif kind == "busy":
            step = answer({"error": {"message": "busy"}}, 429, {"Retry-After": "0.2"})
        elif kind == "spoken":
            step = answer(completion('{"points": 4}'))
        elif kind == "chooser":
            step = answer(completion('{"verdict": "tie", "reason": "alike"}'))
        else:
            step = answer(completion(said(handler.received.raw.decode())))
        step(handler, server)


@pytest.fixture
def provider(monkeypatch):
    monkeypatch.setenv("CANARY_KEY", "canary-key-90210")
    found = Provider()
    with serving(found) as server:
        found.url = f"{server.url}/v1"
        yield found


def model(name, url, kind="judges", label=None):
    args = f'args = {{ base_url = "{url}", api_key_env = "CANARY_KEY" }}'
    label = label or name
    return f'[[{kind}]]\nname = "{label}"\nfamily = "{label}"\nmodel = "openai-chat/{name}"\n{args}\n'


def study(*models, cycles=3):
    head = f'name = "s"\nseed = 1\n[substrate]\nregimes = ["liquidity"]\ncycles = {cycles}\n'
    engine = "[engine]\nbackoff_s = 0.001\nconcurrency = 3\n[inference]\nallow_hopeless = true\n"
    ours = "".join(
        f'[[agents]]\nname = "{name}"\nfamily = "rules"\nmodel = "reference/{name}"\n'
        for name in ("momentum", "equal-weight")
    )
    return head + engine + ours + "".join(models)


def run(tmp_path, text, *command):
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    first, *rest = command or ("run",)
    return main([first, *rest, str(tmp_path / "plan.toml"), "--out", str(tmp_path / "run")])


def test_what_is_wrong_with_every_model_is_said_at_once_and_leaves_nothing(tmp_path, provider, capsys):
    names = ("gone", "locked", "broke", "formless", "prose", "good")
    agents = [model("gone-agent", provider.url, "agents"), model("good-agent", provider.url, "agents")]
    assert run(tmp_path, study(*agents, *(model(name, provider.url) for name in names))) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"assaymark: 6 models cannot be asked; {NOTHING}\n")
    for words in (
        "openai-chat/gone-agent: unknown model 'gone-agent' at",
        "openai-chat/gone: unknown model 'gone' at",
        "openai-chat/locked: CANARY_KEY was refused (401)",
        "openai-chat/broke: no money or quota is left (429)",
        "openai-chat/formless: the reply schema was refused (400)",
        "openai-chat/prose: wrote no JSON object where one is asked for; its reply begins 'Certainly!'",
    ):
        assert words in err
    assert provider.asked == Counter(dict.fromkeys((*names, "gone-agent", "good-agent"), 1))
    assert not (tmp_path / "run").exists()


def test_a_model_that_was_not_asked_to_the_end_says_so_and_why(tmp_path, provider, capsys):
    """The key that is refused for one model stops what goes there with the same key, at once or a little later."""
    assert run(tmp_path, study(model("busy", provider.url), model("locked", provider.url))) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"assaymark: 2 models cannot be asked; {NOTHING}\n")
    assert "openai-chat/locked: CANARY_KEY was refused (401)" in err
    assert "openai-chat/busy: not asked to the end (openai-chat" in err
    assert "kept" not in err


def test_the_first_calls_are_calls_of_the_run_and_are_not_made_again(tmp_path, provider, capsys):
    text = study(model("good-agent", provider.url, "agents"), model("good", provider.url))
    assert run(tmp_path, text) == 0, capsys.readouterr().err
    assert provider.asked == Counter({"good-agent": 3, "good": 9})  # three agents on three cycles


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("kind", ["agents", "judges"])
def test_one_refused_request_holds_nothing_up_and_is_recorded_in_its_turn(tmp_path, provider, capsys, kind, locked):
    """The first planned call is refused for what it shows, whenever it is sent; the second is asked and answered."""
    text = study(model("good", provider.url), model("touchy", provider.url, kind), cycles=8)
    text += "[missing]\nper_judge = 0.2\nper_agent = 0.5\n"
    assert run(tmp_path, text, "lock" if locked else "run") == 0, capsys.readouterr().err
    if locked:
        assert main(["judge", str(tmp_path / "run")]) == 0, capsys.readouterr().err
    store = Store(RunFolder(tmp_path / "run"))
    if kind == "agents":
        assert sum("refused" in one.flags for one in store.read(DECISIONS)) == 1
    else:
        assert Counter(one.status for one in store.read(JUDGMENTS) if one.judge == "touchy")["refused"] == 1
    calls = 8 if kind == "agents" else 16
    assert provider.asked["touchy"] == calls + 1  # the refused one twice


def test_a_model_that_refuses_two_requests_cannot_be_asked(tmp_path, provider, capsys):
    assert run(tmp_path, study(model("bad", provider.url), model("good", provider.url))) == 1
    err = capsys.readouterr().err
    assert err.count("This cannot be processed") == 2
    said = "the request was refused (400) for 'bad': This cannot be processed"
    assert f"openai-chat/bad: {said}; its next call was refused too: {said}; nothing is locked" in err
    assert err.rstrip().endswith(f"{NOTHING}, and a second one where that was refused")
    assert provider.asked == Counter(bad=2, good=1)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("part", ["qa", "pipeline"])
def test_one_refused_request_does_not_hold_a_benchmark_up(tmp_path, provider, capsys, part):
    windows = ["--window", "covid-2020", "--window", "crypto-2022"]
    few = ["--instruments", "12", *windows, "--profile", "balanced", "--pace", "quarterly", "--per-template", "2"]
    where = ["--base-url", provider.url, "--key-env", "CANARY_KEY", "--out", str(tmp_path / "run")]
    code = main(["bench", part, "--model", "openai-chat/touchy", *few, *where])
    err = capsys.readouterr().err
    assert (tmp_path / "run" / "study.lock").exists(), err
    assert provider.asked["touchy"] > 2
    assert code == 0 or part == "pipeline", (
        err
    )  # of two windows one is refused: too few replies to tell it from a fault


def test_an_agent_of_ones_own_is_only_asked_whether_it_is_there(tmp_path, provider, capsys):
    there = f'[[agents]]\nname = "own"\nfamily = "own"\nmodel = "{free_url().replace("://", "/")}/decide"\n'
    assert run(tmp_path, study(there, model("gone", provider.url))) == 1
    err = capsys.readouterr().err
    assert "2 models cannot be asked" in err
    assert "nothing answers at http://127.0.0.1:" in err
    assert "unknown model 'gone'" in err
    assert not (tmp_path / "run").exists()


def test_a_plan_locked_before_its_models_were_asked_costs_one_call_a_wrong_name(tmp_path, provider, capsys):
    text = study(model("gone", provider.url), model("gone-too", provider.url), model("good", provider.url), cycles=8)
    assert run(tmp_path, text, "lock") == 0
    assert not provider.asked
    assert main(["judge", str(tmp_path / "run")]) == 1
    err = capsys.readouterr().err
    assert "unknown model 'gone' at" in err
    assert "unknown model 'gone-too' at" in err
    assert provider.asked == Counter(gone=1, **{"gone-too": 1, "good": 1})


def test_a_judge_whose_first_replies_are_all_unusable_stops_and_the_others_go_on(tmp_path, provider, capsys):
    text = study(model("spoken", provider.url, label="north"), model("good", provider.url), cycles=30)
    assert run(tmp_path, text) == 1
    err = capsys.readouterr().err
    assert "north: none of its first 20 replies is usable (keys are missing: 'scores', 'evidence', 'look" in err
    assert "the first: '{\"points\": 4}')" in err
    assert provider.asked["good"] == 60
    assert 20 <= provider.asked["spoken"] < 20 + 3  # three at once
    before = provider.asked["spoken"]
    assert main(["judge", str(tmp_path / "run")]) == 1
    assert "north: none of its first 20 replies is usable" in capsys.readouterr().err
    assert provider.asked["spoken"] == before
    assert Store(RunFolder(tmp_path / "run")).digest(JUDGMENTS) is None


def test_a_wrong_judge_of_a_datasheet_is_found_by_one_call(tmp_path, provider, capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key-90210")
    judges = ["--judge", "openai-chat/gone", "--judge", "openai-chat/prose", "--judge", "openai-chat/chooser"]
    out = tmp_path / "sheets"
    assert main(["datasheet", *judges, "--out", str(out)]) == 1
    err = capsys.readouterr().err
    assert "unknown model 'gone' at" in err
    assert "openai-chat/prose: wrote no JSON object" in err
    assert provider.asked == Counter(gone=1, prose=1, chooser=1)
    assert not out.exists()


@pytest.mark.parametrize("part", ["qa", "pipeline"])
def test_a_wrong_model_of_a_benchmark_is_found_by_one_call(tmp_path, provider, capsys, part):
    few = ["--instruments", "12", "--window", "covid-2020", "--profile", "balanced", "--pace", "quarterly"]
    named = ["--model", "openai-chat/gone", "--model", "openai-chat/good", "--judge", "openai-chat/prose"]
    where = ["--base-url", provider.url, "--key-env", "CANARY_KEY", "--out", str(tmp_path / "run")]
    assert main(["bench", part, *named, *few, *where]) == 1
    err = capsys.readouterr().err
    assert "unknown model 'gone' at" in err
    assert provider.asked["gone"] == provider.asked["good"] == 1
    assert not (tmp_path / "run").exists()


def test_a_wrong_agent_and_a_wrong_judge_of_a_season_are_found_before_its_lock(tmp_path, provider, capsys):
    panel = model("gone-judge", provider.url, "panel")
    text = season_text() + model("gone", provider.url, "agents") + model("good", provider.url, "agents")
    assert run(tmp_path, text + panel, "season", "init") == 1
    err = capsys.readouterr().err
    assert "unknown model 'gone' at" in err
    assert "unknown model 'gone-judge' at" in err
    assert provider.asked == Counter(gone=1, good=1, **{"gone-judge": 1})
    assert not (tmp_path / "run").exists()


def test_the_first_day_of_a_season_is_not_asked_again(tmp_path, provider, capsys):
    text = season_text(last="2024-03-04") + model("good", provider.url, "agents")
    assert run(tmp_path, text + model("good-judge", provider.url, "panel"), "season", "init") == 0
    assert provider.asked == Counter({"good": 1, "good-judge": 1})
    assert main(["season", "run", str(tmp_path / "run")]) == 0, capsys.readouterr().err
    assert provider.asked["good"] == 2  # two trading days


def test_a_budget_too_small_for_the_first_calls_sends_none(tmp_path, provider, capsys):
    prices = {"pattern": "openai-chat/*", "input": 100.0, "output": 100.0, "source": "a test"}
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in prices.items())
    (tmp_path / "prices.toml").write_text(
        f'format = "assaymark prices 1"\ncurrency = "USD"\n[[model]]\n{lines}\nas_of = 2026-01-01\n'
    )
    (tmp_path / "plan.toml").write_text(study(model("good", provider.url)))
    command = ["run", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "run")]
    assert main([*command, "--budget", "0.001", "--prices", str(tmp_path / "prices.toml")]) == 1
    assert "openai-chat/good: not asked to the end (budget of 0.001 USD would be passed" in capsys.readouterr().err
    assert not provider.asked
    assert not (tmp_path / "run").exists()
