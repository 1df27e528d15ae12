"""Estimated and actual cost of a run: a dry run sends nothing and counts right, and a budget stops a run."""

from __future__ import annotations

import io
import re

import pytest
from made_records import OWN, STUDY
from rich.console import Console

from assaymark import cli, workflow
from assaymark.cli import main
from assaymark.engine import CallSpec, Ledger, Message, Reply, Text, load_prices
from assaymark.engine.providers.registry import Models
from assaymark.errors import InputError, ModelError
from assaymark.protocol import EngineChoice, JudgeSpec, Study

PRICES = """
format = "assaymark prices 1"
currency = "USD"
[[model]]
pattern = "paid/one"
input = 100.0
output = 1000.0
as_of = 2026-01-01
source = "a test"
"""


def asked(n, model="paid/one"):
    return [CallSpec(model=model, messages=(Message("user", (Text.of(f"question {i}"),)),), template="",
                     args={"max_tokens": 100}) for i in range(n)]  # fmt: skip


class Paid:
    """A model that costs 0.011 USD a call at the prices above."""

    asked = 0

    async def complete(self, _call):
        self.asked += 1
        return Reply(text="yes", model="one", input_tokens=10, output_tokens=10)


@pytest.fixture
def prices(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text(PRICES, encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path):
    return workflow.RunFolder(tmp_path)


def put(folder, calls, models):
    return workflow.ask_judge(folder, calls, models, "one", "asking", EngineChoice(concurrency=2))


def test_a_budget_ends_the_asking_and_a_higher_one_goes_on(folder, prices):
    model = Paid()
    with pytest.raises(ModelError, match=r"budget of 0.40 USD would be exceeded.*raise --budget"):
        put(folder, asked(60), workflow.paid_models({"paid/one": model}, 0.4, prices))
    # Each is estimated at 0.1 for its reply and some for its prompt, and costs 0.011.
    assert 15 < model.asked < 36
    assert model.asked * 0.011 <= 0.4
    assert len(put(folder, asked(60), workflow.paid_models({"paid/one": model}, 1.0, prices))) == 60
    assert model.asked == 60
    lines = [workflow.paid_lines(workflow.paid_views(folder, load_prices(*at))) for at in ((prices,), ())]
    assert lines == [["paid for paid/one: 0.66 USD for 60 replies"],
                     ["paid for paid/one: not known, because there is no price of its 60 replies"]]  # fmt: skip


def test_what_was_paid_is_shown_at_the_prices_that_it_was_asked_at(folder, prices):
    assert workflow.paid_views(folder) == ()
    put(folder, asked(2, "reference/free"), {"reference/free": Paid()})
    assert workflow.paid_views(folder) == (), "nothing is shown of models that cost nothing"
    put(folder, asked(20), workflow.paid_models({"paid/one": Paid()}, None, prices))
    prices.unlink()  # the report is made without the file
    (one,) = workflow.paid_views(folder)
    read = (one.model, one.calls, one.input_tokens, one.cached_tokens, one.output_tokens)
    assert read == ("paid/one", 20, 200, None, 200)
    assert one.usd == pytest.approx(0.22)
    assert (one.unpriced, one.untold, one.in_batches, one.price_of) == (0, 0, 0, "2026-01-01")
    (other,) = workflow.paid_views(folder, load_prices())
    assert (other.usd, other.unpriced, other.price_of) == (0, 20, None)


def test_the_bound_after_a_kill_counts_each_address_of_a_model():
    hosts = {"one": "http://a/v1", "two": "http://b/v1", "three": "http://b/v1"}
    judges = [JudgeSpec(name=one, model="openai-chat/m", family=one, args={"base_url": hosts[one]}) for one in hosts]
    study = Study(name="s", seed=1, judges=tuple(judges), engine=EngineChoice(concurrency=5))
    assert workflow.in_flight_bound(study) == 10


def test_one_budget_is_for_all_judges_of_a_folder(folder, prices):
    models = workflow.paid_models({"paid/one": Paid()}, 0.4, prices)
    with workflow.bars(Console(file=io.StringIO())) as shown, workflow.watched(workflow.silent):
        put(folder, asked(20), models)
    assert shown.usd == pytest.approx(0.22)  # what replies cost reaches the whole through its parts
    with pytest.raises(ModelError, match=r"0\.[23]\d spent"):
        put(folder, asked(60), models)


def test_a_budget_is_an_amount_and_the_models_keep_their_providers_with_it():
    for budget in (-1.0, float("nan")):
        with pytest.raises(InputError, match="--budget: a budget must be a number"):
            workflow.paid_models({}, budget, None)
    models = workflow.paid_models(cli.models(), 1.0, None)
    assert all(name in models for name in ("openai/gpt-4o", "reference/auditor"))
    assert models.budget.limit_usd == 1.0


def test_a_forecast_counts_each_call_once_and_estimates_the_rest(folder, prices):
    calls = asked(5)
    put(folder, calls[:1], {"paid/one": Paid()})
    (one,) = workflow.forecast({"a": calls[:3], "b": calls}, folder, load_prices(prices)).models
    assert (one.stages, one.already) == ({"a": 3, "b": 2}, 1)
    assert one.rest.output_tokens == 400
    assert one.rest.cost == pytest.approx(4 * (0.0003 + 0.1))


def test_a_forecast_assumes_one_length_of_reply_for_every_provider_and_adds_no_unknown(tmp_path, capsys):
    judges = ["openai/gpt-4o", "anthropic/claude-sonnet-4-5", "google/gemini-2.5-flash", "openai-chat/mine"]
    wanted = [word for name in judges for word in ("--judge", name)]
    assert main(["datasheet", *wanted, "--dry-run", "--out", str(tmp_path / "out")]) == 0
    assert not (tmp_path / "out").exists()
    lines = {line.partition(":")[0]: line for line in capsys.readouterr().out.splitlines()}
    outputs = {lines[name].partition("input and ")[2].partition(" output")[0] for name in judges}
    assert len(outputs) == 1
    assert all("(1,000 a reply, assumed)" in lines[name] for name in judges)
    assert lines["openai-chat/mine"].endswith("no price known")
    (total,) = [line for line in lines.values() if line.startswith("in all")]
    assert "cost not known, because there is no price of openai-chat/mine" in total
    assert "the other models: about" in total
    assert load_prices().estimate_all(asked(1, "anthropic/claude-sonnet-4-5")).output_tokens == 100  # told


def test_a_missing_key_is_told_before_anything_is_sent(folder):
    from assaymark.engine.providers.openai import OpenAIModel

    pytest.importorskip("openai", reason="needs the client of OpenAI (extra: openai)")
    models = Models({}, {"openai": lambda name: OpenAIModel(name, environ={})})
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        put(folder, asked(3, "openai/gpt-4o"), models)
    with Ledger.open(folder.ledger) as ledger:
        assert not ledger.begun()


def test_a_dry_run_of_a_study_counts_what_the_run_then_asks(own, tmp_path, ran, monkeypatch):
    monkeypatch.setattr("assaymark.workflow.ask.run_calls", lambda *_, **__: pytest.fail("something was asked"))
    fresh = ran("run", OWN, "--out", tmp_path / "new", "--dry-run")
    assert not (tmp_path / "new").exists()
    done = ran("run", OWN, "--out", own, "--dry-run")
    assert "dry run: nothing was sent" in fresh
    assert ("are assumed" in fresh, "are assumed" in done) == (True, False)
    # Of the finished run everything is answered, and the stand-ins of the fresh one counted the same judge calls.
    assert len(set(re.search(r"^in all ([\d,]+) calls, ([\d,]+)", done, re.M).groups())) == 1
    judging = [re.findall(r"\(.*?judges ([^,)]+)", text) for text in (fresh, done)]
    assert judging[0] == judging[1] != []


def test_a_dry_run_of_judging_and_of_imported_records_adds_nothing(imported, ran, capsys):
    assert "are for judges that are asked" in ran("datasheet", "--from", "x.csv", "--budget", "5", status=2)
    before = sorted(path.name for path in imported.iterdir())
    assert main(["run", str(STUDY), "--out", str(imported), "--dry-run"]) == 0
    assert sorted(path.name for path in imported.iterdir()) == before
    assert "answered already" in capsys.readouterr().out
    assert main(["lock", str(STUDY), "--out", str(imported)]) == 0
    assert "dry run: nothing was sent" in ran("judge", imported, "--dry-run")
    with Ledger.open(workflow.RunFolder(imported).ledger) as ledger:
        assert not ledger.begun()
