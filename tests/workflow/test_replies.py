"""What becomes of judges' replies: refusals are outcomes, and what no judge could be read on is asked once more."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import pytest

from assaymark.cli import main
from assaymark.records import Verdict
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.tables import JUDGMENTS, MEASUREMENTS, VERDICTS, Store

pytest.importorskip("openai", reason="needs the openai client (extra: test)")

from openai_wire import completion
from provider_server import answer, serving

DIMENSIONS = (
    "action_coherence", "risk_alignment", "uncertainty_handling", "position_sizing", "information_use",
    "constraint_awareness",
)  # fmt: skip
FILTERED = {"error": {"code": "content_filter", "message": "The response was filtered.", "type": None}}
TURNED_AWAY = {"error": {"code": None, "message": "Bad request.", "type": "invalid_request_error"}}
STUDY = """
name = "replies"
seed = 3
[[judges]]
name = "north"
family = "north"
model = "openai-chat/north"
args = {{ base_url = "{url}/v1", api_key_env = "WIRE_KEY" }}
[[judges]]
name = "auditor"
family = "auditor"
model = "reference/auditor"
[[judges]]
name = "reader"
family = "reader"
model = "reference/reader"
[records]
derivations = ["honest"]
[engine]
backoff_s = 0.01
[inference]
allow_hopeless = true
"""


def said(prompt: str) -> str:
    """Good grades for whoever writes much: momentum does, and equal-weight does not."""
    text = prompt[prompt.index("<<<BEGIN summary") :]
    drawn = hashlib.sha256(text.encode()).digest()
    level = 4 if "strongest trend" in text else 3 if "Lowest volatility" in text else 1
    scores = {name: level + drawn[at] % 2 for at, name in enumerate(DIMENSIONS)}
    return json.dumps({"scores": scores, "evidence": [], "lookahead_check": "pass", "comment": None})


class Judge:
    """A provider that answers as ``outcome`` says for the n-th text of an agent: an error, a text, or in the form."""

    def __init__(self, outcome):
        self.outcome, self.asked, self.seen = outcome, Counter(), Counter()

    def __call__(self, handler, server):
        prompt = handler.received.body["messages"][-1]["content"]
        agent = next(
            name for name, words in (("momentum", "strongest trend"), ("calm", "Lowest volatility"), ("equal", "Equal"))
            if words in prompt
        )  # fmt: skip
        key = hashlib.sha256(prompt.encode()).hexdigest()
        with server.lock:
            self.asked[key] += 1
            if self.asked[key] == 1:
                self.seen[agent] += 1
            found = self.outcome(agent, self.seen[agent], self.asked[key])
        if isinstance(found, dict):
            answer(found, 400)(handler, server)
        else:
            answer(completion(said(prompt) if found is None else found))(handler, server)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("WIRE_KEY", "canary-key-90210")


def run_with(imported, outcome, *, more: str = "", code: int = 0):
    """A finished run whose judge ``north`` answers so, and what it was asked."""
    judge = Judge(outcome)
    with serving(judge) as server:
        study = imported.parent / "study.toml"
        study.write_text(STUDY.format(url=server.url) + more, encoding="utf-8")
        assert main(["run", str(study), "--out", str(imported)]) == code
        asked = judge.asked.total()
        if code == 0:
            assert main(["judge", str(imported)]) == 0
            assert judge.asked.total() == asked  # whatever came is an outcome, and not asked for again
    return Store(RunFolder(imported)), judge


def ordering(store: Store) -> list[Verdict]:
    return [one for one in store.read(VERDICTS) if one.claim.asserts_order]


def test_a_study_with_a_few_refusals_reaches_verdicts_that_say_so(imported, capsys):
    """2.8 %: one call is stopped by a content filter, and one turned away without a reason."""
    refused = {("momentum", 5): FILTERED, ("equal", 9): TURNED_AWAY}
    store, _ = run_with(imported, lambda agent, n, _again: refused.get((agent, n)))
    judgments = [one for one in store.read(JUDGMENTS) if one.judge == "north"]
    assert Counter(one.status for one in judgments) == {"ok": 70, "refused": 2}
    assert "north: 2 of 72 replies" in capsys.readouterr().err
    verdicts = ordering(store)
    assert "qualified" in {one.publication_level for one in verdicts}
    text = "Judge north gave no usable score on 2 of 72 decisions (2.8 %)."
    for one in verdicts:
        assert any(text in reason for reason in one.reasons)
        if one.publication_level != "no-claim":
            assert [c.text for c in one.conditions if c.id == "missing-replies"] == [text]
        assert "missing_replies" not in {cap.field for cap in one.caps}
    page = (imported / "report" / "index.html").read_text()
    assert "gave no usable score on 2 of 72 decisions" in page


def test_a_judge_that_refuses_one_agent_more_than_others_is_a_finding(imported):
    loose = "[missing]\nper_judge = 0.2\nper_agent = 0.5\n"
    store, _ = run_with(imported, lambda agent, n, _: FILTERED if agent == "equal" and n <= 9 else None, more=loose)
    (share,) = [one for one in store.read(MEASUREMENTS) if one.id == "missing.share[judge=north]"]
    assert share.detail["lacking"] == {"equal-weight": [9, 24]}
    assert share.detail["p"]["equal-weight"] < 0.001
    said = "It left out equal-weight (9 of 24) more often than the others (0 of 48; p < .001)"
    assert all(any(said in reason for reason in one.reasons) for one in ordering(store))


def test_a_judge_that_refuses_too_much_is_left_out_by_the_plan(imported):
    store, _ = run_with(imported, lambda _agent, n, _again: FILTERED if n <= 4 else None)
    for one in ordering(store):
        assert ("qualified", "missing_replies") in {(cap.level, cap.field) for cap in one.caps}
        assert any("Judge north was left out: 16.7% of its replies are missing" in reason for reason in one.reasons)
    (panel,) = [one for one in store.read(MEASUREMENTS) if one.name == "panel.families"]
    assert panel.value == 2


def test_a_plan_can_stop_at_too_many_refusals(imported, capsys):
    stop = '[missing]\non_excess = "stop"\n'
    run_with(imported, lambda _agent, n, _again: FILTERED if n <= 4 else None, more=stop, code=1)
    assert "too many replies are missing: judge north: 16.7%" in capsys.readouterr().err


def test_a_model_that_answers_nothing_is_wrong_and_refuses_nothing(imported, capsys):
    store, judge = run_with(imported, lambda *_: TURNED_AWAY, code=1)
    assert "72 of" in capsys.readouterr().err
    assert store.digest(JUDGMENTS) is None
    assert judge.asked.total() == 72
