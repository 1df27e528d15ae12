"""Spend limits: spending never exceeds them, earlier spending counts, and a model without a price is not called."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from engine_calls import NAME, QUICK, Scripted, begin, call, calls, echo
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.engine import (
    Attempt, CallSpec, Ledger, Message, Price, Prices, Reply, SpendLimit, Text, load_prices, prices, prices_of_text,
    run_calls, run_worker,
)  # fmt: skip
from assaymark.errors import InputError, ModelError, PlanError

SHIPPED = load_prices()


class Billed:
    """Answers each call after a moment, at a price of so many tokens."""

    def __init__(self, tokens=lambda _spec: 30, wait=0.0):
        self.tokens, self.wait = tokens, wait
        self.paid: dict[str, int] = {}

    async def complete(self, spec):
        await asyncio.sleep(self.wait)
        self.paid[spec.key] = self.tokens(spec)
        return Reply(text="", model="billed", input_tokens=self.tokens(spec), output_tokens=0)


class Cents:
    """A cent a token; the most that a call may cost, and the share of it that a reply used, are what functions say."""

    def __init__(self, most, share=lambda _spec, _reply: None):
        self.most, self.share = most, share

    def bound(self, spec):
        return prices.Bound(0.0, self.most(spec))

    def paid(self, _model, reply, _batch=False):
        return None if reply.input_tokens is None else reply.input_tokens / 100


def budget(limit, estimate=lambda _spec: 0.3):
    return SpendLimit(limit, Cents(estimate))


@settings(max_examples=25, deadline=None)
@given(
    costs=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=12),
    limit=st.integers(0, 300), concurrency=st.integers(1, 5),
)  # fmt: skip
def test_what_is_paid_never_passes_the_budget(costs, limit, concurrency):
    asked = calls(len(costs))
    real = {spec.key: cost for spec, (cost, _) in zip(asked, costs, strict=True)}
    bound = {spec.key: (cost + more) / 100 for spec, (cost, more) in zip(asked, costs, strict=True)}
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
        model = Billed(lambda spec: real[spec.key])
        for _ in range(2):  # the second run is a resume, with a budget that knows nothing but the ledger
            held = budget(limit / 100, lambda spec: bound[spec.key])
            summary = run_calls(ledger, asked, {NAME: model}, concurrency=concurrency, budget=held, **QUICK)
            assert sum(model.paid.values()) <= limit
            assert held.spent == pytest.approx(sum(model.paid.values()) / 100) or not ledger.pending(real)
            assert bool(summary.left) == bool(summary.stopped)
        if sum(bound.values()) * 100 <= limit:
            assert not ledger.pending(real)


def test_the_end_says_what_was_spent_and_the_next_run_knows_it(ledger):
    summary = run_calls(ledger, calls(9), {NAME: Billed()}, concurrency=1, budget=budget(1.0), **QUICK)
    assert (summary.made, summary.left, summary.interrupted) == (3, 6, False)
    (line,) = summary.stopped
    assert line.startswith("budget of 1.00 USD would be exceeded: 0.90 spent, 0.00 under way")
    assert "the next call needs up to 0.30" in line
    assert "raise --budget" in line
    summary = run_worker(ledger, {NAME: Billed()}, concurrency=4, budget=budget(1.6), **QUICK)  # a worker too
    assert (summary.made, summary.left) == (2, 4)


def test_a_call_waits_for_room_that_replies_make(ledger):
    held = budget(1.0, lambda _spec: 0.5)
    model = Billed(lambda _: 1, wait=0.002)
    assert run_calls(ledger, calls(20), {NAME: model}, concurrency=10, budget=held, **QUICK).made == 20
    assert held.spent == pytest.approx(0.2)  # all at once would have been estimated at 5.00


def test_what_may_have_been_paid_counts_and_an_error_does_not(ledger, tmp_path, clock):
    held = budget(0.3)
    broken = Scripted(lambda _spec: ModelError("busy", retryable=False))
    summary = run_calls(ledger, calls(4), {NAME: broken}, concurrency=1, budget=held, **QUICK)
    assert (len(summary.failed), held.spent, summary.stopped) == (4, 0.0, ())
    lost = Scripted(lambda _spec: ModelError("broke off", retryable=True, lost=True))
    for limit, model in ((1.0, Scripted(lambda _spec: "late", wait=60)), (1.9, lost)):  # none in time, or none whole
        held = budget(limit)
        summary = run_calls(ledger, calls(9), {NAME: model}, concurrency=1, backoff_s=0, deadline_s=0.01, budget=held)
        assert (len(model.asked), bool(summary.stopped)) == (3, True)
        assert held.spent == pytest.approx(0.9)  # and in the second run the three of the first count beside them
    with Ledger.open(tmp_path / "died.db") as died:
        died.plan(calls(9))
        begin(died, [call(0).key, call(1).key])  # and then the power went
        assert run_calls(died, calls(9), {NAME: Billed()}, budget=budget(1.2), **QUICK).made == 2
    with Ledger.open(tmp_path / "uncounted.db") as uncounted:  # a reply without a count is paid at its estimate
        for limit, made in ((1.0, 3), (1.3, 1)):
            held = budget(limit)
            assert run_calls(uncounted, calls(9), {NAME: echo()}, concurrency=1, budget=held, **QUICK).made == made


def test_a_model_without_a_price_is_refused_before_anything_is_sent(ledger):
    models = {"openai-chat/mine": echo(), NAME: echo()}
    asked = [*calls(2), *calls(2, model="openai-chat/mine")]
    free = SpendLimit(0.0, SHIPPED)
    assert run_calls(ledger, calls(5)[2:], {NAME: echo()}, budget=free, **QUICK).made == 3  # what costs nothing
    with pytest.raises(PlanError, match=r"no price is known for openai-chat/mine.*--prices FILE"):
        run_calls(ledger, asked, models, budget=SpendLimit(5.0, SHIPPED), **QUICK)
    with pytest.raises(PlanError, match="openai-chat/mine"):
        run_worker(ledger, models, budget=SpendLimit(5.0, SHIPPED), **QUICK)
    assert not models[NAME].asked + models["openai-chat/mine"].asked
    run_calls(ledger, asked[2:], models, **QUICK)
    with pytest.raises(PlanError, match="openai-chat/mine"):  # its replies of earlier runs leave the sum unknown
        run_calls(ledger, calls(2), models, budget=SpendLimit(5.0, SHIPPED), **QUICK)


def test_what_other_workers_paid_is_seen(shared):
    run_calls(shared, calls(3), {NAME: Billed()}, **QUICK)
    held = budget(1.2)
    held.begin(shared)
    run_calls(shared, [call(20)], {NAME: Billed(lambda _: 15)}, **QUICK)  # somebody else, after the first look
    summary = run_calls(shared, calls(9), {NAME: Billed()}, budget=held, **QUICK)
    assert (summary.made, held.spent) == (0, pytest.approx(1.05))


def test_batches_fit_into_the_budget_together_or_are_not_sent(ledger, tmp_path):
    run_calls(ledger, calls(2), {NAME: Billed()}, **QUICK)
    budget(1.5).check_affordable(ledger, calls(5))  # two are answered, for 0.60
    with pytest.raises(PlanError, match=r"0.60 spent, 0.00 .* the next 4 calls need up to 1.20.*paid together"):
        budget(1.5).check_affordable(ledger, calls(6))
    budget(0.0).check_affordable(ledger, calls(2))
    with Ledger.open(tmp_path / "other.db") as other:
        other.plan(calls(5))
        other.batches.prepare()
        other.batches.begin("a", "lane", [(spec.key, None) for spec in calls(3)])
        other.batches.submitted("a", "remote")
        budget(1.5).check_affordable(other, calls(5))  # calls in a batch under way are not counted twice
        with pytest.raises(PlanError, match=r"0.90 under way.* the next 2 calls need up to 0.60"):
            budget(1.4).check_affordable(other, calls(5))
        held = budget(1.0)
        held.begin(ledger)
        with pytest.raises(ValueError, match="this budget is for"):
            held.begin(other)
    for limit in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="a budget must be"):
            budget(limit)


class Hanging:
    """Costs about 0.008 USD a call, of which one in twenty never answers and is paid all the same."""

    def __init__(self, seed, prices):
        self.rng, self.prices = random.Random(seed), prices
        self.billed, self.now, self.most = 0.0, 0, 0

    async def complete(self, spec):
        self.now += 1
        self.most = max(self.most, self.now)
        taken = (8000, self.rng.randint(250, 390))
        self.billed += self.prices.cost_of(spec.model, *taken)
        try:
            await asyncio.sleep(60 if self.rng.random() < 0.05 else self.rng.uniform(0.02, 0.05))
        finally:
            self.now -= 1
        return Reply(text="", model="m", input_tokens=taken[0], output_tokens=taken[1])


def test_a_budget_lets_calls_run_together_once_their_cost_is_seen(tmp_path, clock):
    """Prompts of 35 kB may take 0.35 USD each by their bound and cost 0.008; a run that goes on knows it already."""
    entry = {"pattern": "acme/m", "input": 0.8, "output": 5.0, "as_of": "2026-01-01", "source": "a test"}
    prices = prices_of_text(json.dumps({"source": "a test", "entries": [entry]}))
    shown = [Text.of(f"record {i}: " + "close 101.25, volume 3,120,400; " * 1090) for i in range(125)]
    asked = [
        CallSpec(model="acme/m", messages=(Message("user", (one,)),), template="", args={"max_tokens": 64_000})
        for one in shown
    ]
    assert prices.bound(asked[0]).usd > 40 * 0.008
    manner = {"concurrency": 32, "backoff_s": 0.0, "deadline_s": 0.4}
    for seed in range(4):
        model = Hanging(seed, prices)
        with Ledger.open(tmp_path / f"{seed}.db") as ledger:
            budget = SpendLimit(1.0, prices)
            summary = run_calls(ledger, asked, {"acme/m": model}, budget=budget, attempts=2, **manner)
        assert model.billed <= 1.0, seed
        assert model.most >= 24, seed
        assert summary.made > 60
        assert summary.stopped
    with Ledger.open(tmp_path / "again.db") as ledger:
        run_calls(ledger, asked[:8], {"acme/m": Hanging(0, prices)}, deadline_s=1.0)
        model = Hanging(1, prices)
        run_calls(ledger, asked[:40], {"acme/m": model}, budget=SpendLimit(1.0, prices), **manner)
        assert model.most >= 24


def test_replies_that_grow_are_held_at_what_they_grow_to():
    held = SpendLimit(1.0, Cents(lambda _spec: 0.5, lambda _spec, reply: (0.0, reply.output_tokens / 100)))
    spec, place = call(), iter(range(99))
    taken = Reply(text="", model="m", input_tokens=1, output_tokens=2)

    def ask(reply):
        hold = asyncio.run(held.take(spec, lambda: False))
        held.settle(hold, spec, Attempt(spec.key, next(place), 0.0), reply)

    ask(replace(taken, finish="refusal", output_tokens=1))  # teaches nothing
    ask(taken)
    held.settle(asyncio.run(held.take(spec, lambda: False)), spec, None, None)
    ask(taken)
    first = asyncio.run(held.take(spec, lambda: False))
    assert held.under_way == pytest.approx(0.5 * 0.02 * (1.25 + 8 / 2**1.5))
    ask(replace(taken, output_tokens=40))  # what is under way is held at more from now on
    assert held.under_way == pytest.approx(0.5 * 0.4 * (1.25 + 8 / 3**1.5))
    held.settle(first, spec, None, None)
    assert held.under_way == 0


# The table of prices: what is in it, what calls cost by it, and that an unknown price makes an unknown cost

ENTRY = """
[[model]]
pattern = "acme/m"
input = 2.0
cached = 0.5
output = 8.0
batch = 0.5
most = 1000
as_of = 2026-11-01
source = "a test"
"""
HEAD = 'format = "assaymark prices 1"\ncurrency = "USD"\n'
COUNTS = st.integers(0, 10**9)


def priced(pattern="acme/m", **more):
    """A table of one price."""
    given = {"input": 2, "output": 8, "as_of": date(2026, 11, 1), "source": "a test", **more}
    return Prices("test", (Price(pattern=pattern, **given),))


def asking(model="acme/m", characters=400, **args):
    return CallSpec(model=model, messages=(Message("user", (Text.of("x" * characters),)),), template="", args=args)


def test_every_shipped_price_is_dated_and_says_to_be_checked():
    for entry in SHIPPED.entries:
        assert date(2025, 1, 1) <= entry.as_of <= date(2026, 12, 31), entry
        assert entry.source.endswith("check before you rely on it"), entry
        assert 0 < entry.input < entry.output, entry
        assert entry.cached is None or entry.cached < entry.input, entry
        assert entry.batch == 0.5, entry
    for provider in ("openai", "anthropic", "google"):
        assert sum(entry.pattern.startswith(f"{provider}/") for entry in SHIPPED.entries) >= 5
    spec = call(1, model="openai/gpt-4o")
    assert SHIPPED.bound(spec).usd > SHIPPED.estimate_all([spec]).cost
    assert SHIPPED.bound(call(1, model="openai-chat/mine")) is None


def test_a_price_is_of_one_model_and_its_snapshots_and_the_longest_pattern_counts():
    both = Prices("test", priced("acme/*").entries + priced("acme/m*", input=5).entries)
    found = {model: table.of(model) for table, model in (
        *((SHIPPED, model) for model in (
            "openai/gpt-5", "openai/gpt-5-2025-08-07", "openai/gpt-5-mini", "openai/gpt-5.9", "openai/gpt-5-pro",
            "openai-chat/gpt-5", "anthropic/claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-5-5",
            "anthropic/claude-opus-5-5-latest", "google/gemini-2.5-flash-001", "google/gemini-2.5-flash-lite",
            "reference/auditor")),
        *((both, model) for model in ("acme/m-2", "acme/x", "other/x")),
    )}  # fmt: skip
    assert {model: one.pattern for model, one in found.items() if one} == {
        "openai/gpt-5": "openai/gpt-5", "openai/gpt-5-2025-08-07": "openai/gpt-5",
        "anthropic/claude-sonnet-4-5-20250929": "anthropic/claude-sonnet-4-5",
        "anthropic/claude-sonnet-5-5": "anthropic/claude-sonnet-5-5",
        "anthropic/claude-opus-5-5-latest": "anthropic/claude-opus-5-5",
        "google/gemini-2.5-flash-001": "google/gemini-2.5-flash",
        "google/gemini-2.5-flash-lite": "google/gemini-2.5-flash-lite", "acme/m-2": "acme/m*", "acme/x": "acme/*",
    }  # fmt: skip


@given(COUNTS, COUNTS, COUNTS, st.booleans())
def test_more_tokens_never_cost_less_and_a_cache_never_costs_more(tokens, output, cached, batch):
    prices = priced(cached=0.5, batch=0.5)
    cost = prices.cost_of("acme/m", tokens, output, cached, batch)
    assert 0 <= cost <= prices.cost_of("acme/m", tokens, output, 0, batch)
    assert cost <= prices.cost_of("acme/m", tokens + 1, output, cached, batch) + 1e-9
    assert cost <= prices.cost_of("acme/m", tokens, output + 1, cached, batch)


def test_a_cost_is_input_and_cached_input_and_output_and_an_estimate_says_what_it_assumes():
    prices, plain, short = priced(cached=0.5, batch=0.5), priced(), priced(most=1000)
    assert prices.cost_of("acme/m", 1_000_000, 500_000) == 2 + 4
    assert prices.cost_of("acme/m", 1_000_000, 500_000, 400_000) == pytest.approx(1.2 + 0.2 + 4)
    assert prices.cost_of("acme/m", 1_000_000, 500_000, 400_000, batch=True) == pytest.approx(2.7)
    assert plain.cost_of("acme/m", 1_000_000, 0, 1_000_000) == 2  # cached input without a price counts in full
    assert [plain.cost_of("acme/m", *counts) for counts in ((None, 5), (5, None), (None, None))] == [None] * 3
    assert [short.cost_of("acme/m", tokens, 0) for tokens in (1000, 1001)] == [0.002, None]
    prices = priced(batch=0.5)
    plain = prices.estimate_all([asking()])
    assert (plain.tokens, plain.output_tokens, plain.cost) == (100, 1000, pytest.approx((100 * 2 + 1000 * 8) / 1e6))
    assert plain.basis == "characters / 4; output tokens: 1,000 a reply, assumed"
    bound = prices.estimate_all([asking(max_tokens=50, characters=401)], batch=True)
    assert (bound.tokens, bound.output_tokens, bound.cost) == (101, 50, pytest.approx((101 * 2 + 50 * 8) / 2e6))
    assert bound.basis == "characters / 4; output tokens: 50 a reply, its max_tokens"
    assert prices.estimate_all([asking()] * 2).cost == pytest.approx(2 * plain.cost)
    mixed = prices.estimate_all([asking(), asking("other/m")])
    assert (mixed.tokens, mixed.cost, prices.estimate_all([]).cost) == (200, None, 0)
    assert prices.estimate_all([replace(asking(), schema=Text.of("y" * 40))]).tokens == 110  # a schema is input


def test_a_file_of_ones_own_replaces_the_table_and_a_wrong_one_is_refused_with_its_problems(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text(HEAD + ENTRY)
    prices = load_prices(path)
    assert (prices.of("acme/m").batch, prices.of("openai/gpt-5")) == (0.5, None)
    assert prices.source.endswith("prices.toml")
    for text, problem in (
        ("", "format: is missing"), (HEAD.replace("USD", "EUR") + ENTRY, "currency: must be 'USD'"),
        (HEAD + ENTRY.replace("input = 2.0", "input = -2.0"), "input: must be at least 0"),
        (HEAD + ENTRY.replace("input = 2.0", "input = nan"), "input: must be a finite number"),
        (HEAD + ENTRY.replace("batch = 0.5", "batch = 0"), "batch: must be above 0"),
        (HEAD + ENTRY.replace("acme/m", "m"), "pattern: must have the form"),
        (HEAD + ENTRY.replace("as_of = 2026-11-01\n", ""), "as_of: is missing"),
        (HEAD + ENTRY + "discount = 3\n", "discount: unknown key"),
        (HEAD + ENTRY + ENTRY, "pattern 'acme/m' comes more than once"), ("format = ", "is not TOML"),
        ("#" * 1_000_001, "is larger than 1,000,000 bytes"), ("\udcff\udcfe", "is not TOML"),
    ):  # fmt: skip
        path.write_bytes(text.encode(errors="surrogateescape"))
        with pytest.raises(InputError, match=problem.replace("(", "[(]")):
            load_prices(path)
    with pytest.raises(InputError, match=r"none\.toml: cannot be read: No such file"):
        load_prices(tmp_path / "none.toml")
