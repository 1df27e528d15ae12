"""A whole study over loopback: agents and judges behind three wire formats, asked by the official clients."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from batch_servers import AnthropicHost, GoogleHost, Host, OpenAIChatHost, OpenAIHost, hosting
from provider_cases import COMPLETION, FORMATS, GENERATED, MESSAGE, RESPONSE, completion, format_of, speaking, with_said
from provider_server import ProviderServer, Receiving, Step, answer, free_url, serving
from season_runs import season_text

from assaymark.cli import main
from assaymark.engine import Ledger
from assaymark.judging import load_rubric
from assaymark.workflow import DECISIONS, JUDGMENTS, RunFolder, Store

pytestmark = pytest.mark.usefixtures("clients")
CANARY = "canary-key-90210"
DIMENSIONS = load_rubric("v1.0").names


def said(prompt: str) -> str:
    """A reply in the form asked for; the grades hang on the text, so that judges differ and agree a little."""
    drawn = hashlib.sha256(prompt[-2000:].encode()).digest()
    if "You grade one investment decision" in prompt:
        scores = {name: 1 + drawn[at] % 5 for at, name in enumerate(DIMENSIONS)}
        return json.dumps({"scores": scores, "evidence": [], "lookahead_check": "pass", "comment": None})
    return json.dumps({"orders": [], "rationale": f"Nothing is done for reason {drawn[0]}.", "confidence": 0.5})


def often_busy(asked: Counter[str]) -> Step:
    """Answers in the format of the request; every tenth request fails in a way that passes."""
    speak = speaking(lambda request: said(request.raw.decode()))

    def step(handler: Receiving, server: ProviderServer) -> None:
        with server.lock:
            asked[format_of(handler.received)] += 1
            busy = sum(asked.values()) % 10 == 0
        (answer({"error": {"message": "busy"}}, 503) if busy else speak)(handler, server)

    return step


def study(url: str) -> str:
    openai, other = (f'args = {{ base_url = "{url}{end}", api_key_env = "WIRE_KEY" }}' for end in ("/v1", ""))
    judges = (("one", "openai/wire", openai), ("two", "anthropic/wire", other), ("three", "google/wire", other))
    return "\n".join([
        'name = "wires"\nseed = 1\n[substrate]\nregimes = ["liquidity", "expansion", "recent"]\ncycles = 2',
        "[engine]\nbackoff_s = 0.01\nconcurrency = 8\n[inference]\nallow_hopeless = true",
        f'[[agents]]\nname = "chat"\nfamily = "maker"\nmodel = "openai-chat/wire"\n{openai}',
        '[[agents]]\nname = "rule"\nfamily = "rules"\nmodel = "reference/momentum"',
        *(f'[[judges]]\nname = "{name}"\nfamily = "{name}"\nmodel = "{model}"\n{args}' for name, model, args in judges),
    ])  # fmt: skip


def no_key(folder: Path) -> bool:
    return not any(CANARY.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_study_runs_over_all_wire_formats_with_the_official_clients(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WIRE_KEY", CANARY)
    asked, command = Counter[str](), ["run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "run")]
    with serving(often_busy(asked)) as server:
        (tmp_path / "study.toml").write_text(study(server.url), encoding="utf-8")
        assert main(command) == 0, capsys.readouterr().err
        first = sum(asked.values())
        assert main(command) == 0
    assert (sum(asked.values()), set(asked)) == (first, set(FORMATS))
    store = Store(RunFolder(tmp_path / "run"))
    judgments = store.read(JUDGMENTS)
    assert [one.status for one in judgments] == ["ok"] * 3 * 12
    chat = [one for one in store.read(DECISIONS) if one.agent.id == "chat"]
    assert {one.agent.fingerprint for one in chat} == {COMPLETION["system_fingerprint"]}
    assert {(one.call.input_tokens, one.call.output_tokens) for one in chat} == {(420, 57)}
    assert all("Nothing is done" in one.rationales[0].text for one in chat)
    with Ledger.open(RunFolder(tmp_path / "run").ledger, create=False) as ledger:
        models = {ledger.reply(one.call_key).model for one in judgments}
    assert models == {RESPONSE["model"], MESSAGE["model"], GENERATED["modelVersion"]}
    page = (tmp_path / "run" / "report" / "plan.html").read_text()
    cost = page[page.index('id="cost"') : page.index('id="records"')]
    assert "42 calls of paid models; no price of them is known." in cost
    assert (cost.count("no price known"), "reference/momentum" in cost) == (4, False)
    assert no_key(tmp_path / "run")
    assert CANARY not in "".join(capsys.readouterr())


def answering(kind: type[Host]) -> Host:
    """A provider of batches, and of single calls, that answers what it was asked."""

    class Answering(kind):
        def step(self, handler: Receiving, server: ProviderServer) -> None:
            path = handler.received.path.partition("?")[0]
            if any(path.endswith(end) for end in (*FORMATS, ":generateContent")):  # the one call before the lock
                self.bills[path] += 1
                speaking(lambda request: said(request.raw.decode()))(handler, server)
            else:
                super().step(handler, server)

        def result(self, key: str, word: str | None) -> dict[str, Any]:
            line = next(one for held in self.batches.values() for one in held.lines if self.key_of(one) == key)
            return with_said(super().result(key, word), said(json.dumps(line)))

    return Answering(polls=1)


def test_a_study_runs_in_batches_at_all_providers_and_each_call_is_billed_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WIRE_KEY", CANARY)
    hosts = [answering(kind) for kind in (OpenAIChatHost, OpenAIHost, AnthropicHost, GoogleHost)]
    command = ["run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "run")]
    with ExitStack() as stack:
        urls = [host.base(stack.enter_context(hosting(host)).url) for host in hosts]
        text = study("{url}").replace("backoff_s = 0.01", "backoff_s = 0.01\nbatch = true\nbatch_poll_s = 0.05")
        for url in urls:
            old = '"{url}/v1"' if '"{url}/v1"' in text else '"{url}"'
            text = text.replace(old, f'"{url}"', 1)
        (tmp_path / "study.toml").write_text(text, encoding="utf-8")
        assert main(command) == 0, capsys.readouterr().err
        said = capsys.readouterr().err
        billed = [dict(host.bills) for host in hosts]
        assert main(command) == 0
    assert [dict(host.bills) for host in hosts] == billed
    assert "batches" not in capsys.readouterr().err  # there was nothing left to wait for
    assert "5 calls without a reply go in batches, polled every 0.05 s; this can take a day" in said
    assert "33 replies collected from batches, 0 calls without one" in said
    for model in ("openai-chat/wire", "openai/wire", "anthropic/wire", "google/wire"):
        lines = [line for line in said.splitlines() if line.startswith(f"{model}: batch ")]
        assert lines[0].endswith("calls handed over")
        assert "ended: " in lines[-1]
    assert [len(one) for one in billed] == [6, 12, 12, 12]
    assert {times for one in billed for times in one.values()} == {1}
    assert [one.status for one in Store(RunFolder(tmp_path / "run")).read(JUDGMENTS)] == ["ok"] * 36
    assert no_key(tmp_path / "run")


# --- one call to each model before anything is locked or spent: what it cannot pass leaves nothing --------------------


NOTHING = "nothing is locked, and at most one call a model was sent"
PROSE = "Certainly!\nI would give this decision four points of five."


FAILURES = {
    "gone": (404, "model_not_found", "The model does not exist"),
    "locked": (401, "invalid_api_key", "Incorrect API key provided"),
    "broke": (429, "insufficient_quota", "You exceeded your current quota"),
    "bad": (400, "bad_request", "This cannot be processed"),
    "formless": (400, "invalid_json_schema", "Invalid schema for response_format"),
}
TEXTS = {"prose": PROSE, "spoken": '{"points": 4}', "chooser": '{"verdict": "tie", "reason": "alike"}'}


class Provider:
    """Answers by the name of the model: some names are unknown, without money, refused a schema, or write prose."""

    def __init__(self):
        self.asked: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.refused = ""

    def __call__(self, handler, server):
        name, text = handler.received.body["model"], handler.received.raw.decode()
        kind = name.partition("-")[0]
        with self.lock:
            self.asked[name] += 1
            if kind == "touchy":  # one text, the first it is shown, is refused as a request whenever it comes
                self.refused = self.refused or text
                kind = "bad" if text == self.refused else "good"
        if kind in FAILURES:
            status, code, message = FAILURES[kind]
            step = answer({"error": {"message": message, "type": "invalid_request_error", "code": code}}, status)
        elif kind == "busy":
            step = answer({"error": {"message": "busy"}}, 429, {"Retry-After": "0.2"})
        else:
            step = answer(completion(TEXTS.get(kind) or said(text)))
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


def small_study(*models, cycles=3):
    head = f'name = "s"\nseed = 1\n[substrate]\nregimes = ["liquidity"]\ncycles = {cycles}\n'
    engine = "[engine]\nbackoff_s = 0.001\nconcurrency = 3\n[inference]\nallow_hopeless = true\n"
    ours = [f'[[agents]]\nname = "{name}"\nfamily = "rules"\nmodel = "reference/{name}"\n'
            for name in ("momentum", "equal-weight")]  # fmt: skip
    return head + engine + "".join([*ours, *models])


@pytest.fixture
def run(tmp_path, capsys):
    """``run(plan, *command)``: status and errors of a command on a plan, or on the run folder without one."""

    def ended(plan, *command):
        first, *rest = command or ("run",)
        if plan is not None:
            (tmp_path / "plan.toml").write_text(plan, encoding="utf-8")
            rest += [str(tmp_path / "plan.toml"), "--out"]
        status = main([first, *rest, str(tmp_path / "run")])
        return status, capsys.readouterr().err

    return ended


def test_what_is_wrong_with_every_model_is_said_at_once_and_leaves_nothing(tmp_path, provider, run):
    names = ("gone", "locked", "broke", "formless", "prose", "good")
    own = f'[[agents]]\nname = "own"\nfamily = "own"\nmodel = "{free_url().replace("://", "/")}/decide"\n'
    agents = [own, *(model(name, provider.url, "agents") for name in ("gone-agent", "good-agent"))]
    status, err = run(small_study(*agents, *(model(name, provider.url) for name in names)))
    assert status == 1
    assert err.startswith(f"assaymark: 7 models cannot be called; {NOTHING}\n")
    for words in (
        "nothing answers at http://127.0.0.1:",  # an agent of one's own is only asked whether it is there
        "openai-chat/gone-agent: unknown model 'gone-agent' at", "openai-chat/gone: unknown model 'gone' at",
        "openai-chat/locked: CANARY_KEY was refused (401)", "openai-chat/broke: no money or quota is left (429)",
        "openai-chat/formless: the reply schema was refused (400)",
        "openai-chat/prose: wrote no JSON object where one is asked for; its reply begins 'Certainly!'",
    ):  # fmt: skip
        assert words in err
    assert provider.asked == Counter(dict.fromkeys((*names, "gone-agent", "good-agent"), 1))
    assert not (tmp_path / "run").exists()


def test_a_model_that_was_not_asked_to_the_end_says_so_and_why(provider, run):
    """The key that is refused for one model stops what goes there with the same key, at once or a little later."""
    status, err = run(small_study(model("busy", provider.url), model("locked", provider.url)))
    assert status == 1
    assert err.startswith(f"assaymark: 2 models cannot be called; {NOTHING}\n")
    assert "openai-chat/locked: CANARY_KEY was refused (401)" in err
    assert "openai-chat/busy: not asked to the end (openai-chat" in err
    assert "kept" not in err


def test_the_first_calls_are_calls_of_the_run_and_are_not_made_again(provider, run):
    status, err = run(small_study(model("good-agent", provider.url, "agents"), model("good", provider.url)))
    assert status == 0, err
    assert provider.asked == Counter({"good-agent": 3, "good": 9})  # three agents on three cycles


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("kind", ["agents", "judges"])
def test_one_refused_request_holds_nothing_up_and_is_recorded_in_its_turn(tmp_path, provider, run, kind, locked):
    """The first planned call is refused for what it shows, whenever it is sent; the second is asked and answered."""
    text = small_study(model("good", provider.url), model("touchy", provider.url, kind), cycles=8)
    text += "[missing]\nper_judge = 0.2\nper_agent = 0.5\n"
    for status, err in [run(text, "lock"), run(None, "judge")] if locked else [run(text)]:
        assert status == 0, err
    store = Store(RunFolder(tmp_path / "run"))
    if kind == "agents":
        assert sum("refused" in one.flags for one in store.read(DECISIONS)) == 1
    else:
        assert Counter(one.status for one in store.read(JUDGMENTS) if one.judge == "touchy")["refused"] == 1
    assert provider.asked["touchy"] == (8 if kind == "agents" else 16) + 1  # the refused one twice


def test_a_model_that_refuses_two_requests_cannot_be_asked(tmp_path, provider, run):
    status, err = run(small_study(model("bad", provider.url), model("good", provider.url)))
    assert (status, err.count("This cannot be processed")) == (1, 2)
    said = "the request was refused (400) for 'bad': This cannot be processed"
    assert f"openai-chat/bad: {said}; its next call was refused too: {said}; nothing is locked" in err
    assert err.rstrip().endswith(f"{NOTHING}, and a second one where that was refused")
    assert provider.asked == Counter(bad=2, good=1)
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("few_questions")
@pytest.mark.parametrize("part", ["qa", "pipeline"])
def test_of_a_benchmark_one_refused_request_holds_nothing_up_and_a_wrong_model_costs_one_call(
    tmp_path, provider, ran, capsys, part
):
    few = ["--instruments", "12", "--window", "covid-2020", "--profile", "balanced", "--pace", "quarterly"]
    where = ["--base-url", provider.url, "--key-env", "CANARY_KEY", "--out", str(tmp_path / "run")]
    named = ["--model", "openai-chat/gone", "--model", "openai-chat/good", "--judge", "openai-chat/prose"]
    assert "unknown model 'gone' at" in ran("bench", part, *named, *few, *where, status=1)
    assert provider.asked["gone"] == provider.asked["good"] == 1
    assert not (tmp_path / "run").exists()
    few += ["--window", "crypto-2022", "--per-template", "2"]
    code = main(["bench", part, "--model", "openai-chat/touchy", *few, *where])
    err = capsys.readouterr().err
    assert (tmp_path / "run" / "study.lock").exists(), err
    assert provider.asked["touchy"] > 2
    # Of two windows one is refused: too few replies to tell it from a fault.
    assert code == 0 or part == "pipeline", err


def test_a_plan_locked_before_its_models_were_asked_costs_one_call_a_wrong_name(provider, run):
    names = ("gone", "gone-too", "good")
    assert run(small_study(*(model(name, provider.url) for name in names), cycles=8), "lock")[0] == 0
    assert not provider.asked
    status, err = run(None, "judge")
    assert status == 1
    assert "unknown model 'gone' at" in err
    assert "unknown model 'gone-too' at" in err
    assert provider.asked == Counter(names)


def test_a_judge_whose_first_replies_are_all_unusable_stops_and_the_others_go_on(tmp_path, provider, run):
    status, err = run(small_study(model("spoken", provider.url, label="north"), model("good", provider.url), cycles=12))
    assert status == 1
    assert "north: none of its first 20 replies is usable (keys are missing: 'scores', 'evidence', 'look" in err
    assert "the first: '{\"points\": 4}')" in err
    assert provider.asked["good"] == 24
    assert 20 <= (before := provider.asked["spoken"]) < 20 + 3  # three at once
    status, err = run(None, "judge")
    assert (status, provider.asked["spoken"]) == (1, before)
    assert "north: none of its first 20 replies is usable" in err
    assert Store(RunFolder(tmp_path / "run")).digest(JUDGMENTS) is None


def test_a_wrong_judge_of_a_datasheet_is_found_by_one_call(tmp_path, provider, ran, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key-90210")
    judges = [word for name in ("gone", "prose", "chooser") for word in ("--judge", f"openai-chat/{name}")]
    err = ran("datasheet", *judges, "--out", tmp_path / "sheets", status=1)
    assert "unknown model 'gone' at" in err
    assert "openai-chat/prose: wrote no JSON object" in err
    assert provider.asked == Counter(gone=1, prose=1, chooser=1)
    assert not (tmp_path / "sheets").exists()


def test_wrong_models_of_a_season_are_found_before_its_lock_and_its_first_day_is_not_asked_again(
    tmp_path, provider, run
):
    good, gone = (
        season_text(last="2024-03-04") + model("good", provider.url, "agents") + more
        for more in (
            model("good-judge", provider.url, "panel"),
            model("gone", provider.url, "agents") + model("gone-judge", provider.url, "panel"),
        )
    )
    status, err = run(gone, "season", "init")
    assert status == 1
    assert "unknown model 'gone' at" in err
    assert "unknown model 'gone-judge' at" in err
    assert provider.asked == Counter(("gone", "good", "gone-judge"))
    assert not (tmp_path / "run").exists()
    provider.asked.clear()
    assert run(good, "season", "init")[0] == 0
    assert provider.asked == Counter(("good", "good-judge"))
    status, err = run(None, "season", "run")
    assert status == 0, err
    assert provider.asked["good"] == 2  # two trading days


def test_a_budget_too_small_for_the_first_calls_sends_none(tmp_path, provider, run):
    (tmp_path / "prices.toml").write_text(
        'format = "assaymark prices 1"\ncurrency = "USD"\n[[model]]\npattern = "openai-chat/*"\ninput = 100.0\n'
        'output = 100.0\nsource = "a test"\nas_of = 2026-01-01\n'
    )
    plan = small_study(model("good", provider.url))
    status, err = run(plan, "run", "--budget", "0.001", "--prices", str(tmp_path / "prices.toml"))
    assert status == 1
    assert "openai-chat/good: not asked to the end (budget of 0.001 USD would be exceeded" in err
    assert not provider.asked
    assert not (tmp_path / "run").exists()
