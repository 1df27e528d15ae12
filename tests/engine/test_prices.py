"""The table of prices: what is in it, what calls cost by it, and that an unknown price makes an unknown cost."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.engine import CallSpec, Message, Text
from assaymark.engine.prices import ASSUMED_OUTPUT_TOKENS, Price, Prices, load_prices
from assaymark.errors import InputError

SHIPPED = load_prices()
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


def table(tmp_path, text):
    """A file of prices of one's own, read."""
    path = tmp_path / "prices.toml"
    path.write_text(text, encoding="utf-8")
    return load_prices(path)


def priced(pattern, **more):
    """A table of one price."""
    given = {"input": 2, "output": 8, "as_of": date(2026, 11, 1), "source": "a test", **more}
    return Prices("test", (Price(pattern=pattern, **given),))


def call(model="acme/m", characters=400, **args):
    return CallSpec(model=model, messages=(Message("user", (Text.of("x" * characters),)),), template="", args=args)


@pytest.mark.parametrize("entry", SHIPPED.entries, ids=lambda entry: entry.pattern)
def test_every_shipped_price_is_dated_and_says_to_be_checked(entry):
    assert date(2025, 1, 1) <= entry.as_of <= date(2026, 12, 31)
    assert entry.source.endswith("check before you rely on it")
    assert 0 < entry.input < entry.output
    assert entry.cached is None or entry.cached < entry.input
    assert entry.batch == 0.5


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
def test_each_provider_has_prices(provider):
    assert sum(entry.pattern.startswith(f"{provider}/") for entry in SHIPPED.entries) >= 5


@pytest.mark.parametrize(
    ("model", "pattern"),
    [
        ("openai/gpt-5", "openai/gpt-5"),
        ("openai/gpt-5-2025-08-07", "openai/gpt-5"),
        ("openai/gpt-5-mini", None),
        ("openai/gpt-5.9", None),
        ("openai/gpt-5-pro", None),
        ("openai-chat/gpt-5", None),
        ("anthropic/claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-5-5", "anthropic/claude-sonnet-5-5"),
        ("anthropic/claude-opus-5-5-latest", "anthropic/claude-opus-5-5"),
        ("google/gemini-2.5-flash-001", "google/gemini-2.5-flash"),
        ("google/gemini-2.5-flash-lite", "google/gemini-2.5-flash-lite"),
        ("reference/auditor", None),
    ],
)
def test_a_price_is_of_one_model_and_its_snapshots(model, pattern):
    found = SHIPPED.of(model)
    assert (found and found.pattern) == pattern


def test_the_longest_pattern_counts():
    both = Prices("test", priced("acme/*").entries + priced("acme/m*", input=5).entries)
    assert both.of("acme/m-2").input == 5
    assert both.of("acme/x").input == 2
    assert both.of("other/x") is None


def test_a_cost_is_input_and_cached_input_and_output():
    prices = priced("acme/m", cached=0.5, batch=0.5)
    assert prices.cost_of("acme/m", 1_000_000, 500_000) == 2 + 4
    assert prices.cost_of("acme/m", 1_000_000, 500_000, 400_000) == pytest.approx(1.2 + 0.2 + 4)
    assert prices.cost_of("acme/m", 1_000_000, 500_000, 400_000, batch=True) == pytest.approx(2.7)


def test_cached_input_without_a_price_of_its_own_counts_in_full():
    assert priced("acme/m").cost_of("acme/m", 1_000_000, 0, 1_000_000) == 2


@pytest.mark.parametrize(("tokens", "output"), [(None, 5), (5, None), (None, None)])
def test_without_counts_there_is_no_cost(tokens, output):
    assert priced("acme/m").cost_of("acme/m", tokens, output) is None


def test_above_the_longest_input_of_a_price_there_is_none():
    prices = priced("acme/m", most=1000)
    assert prices.cost_of("acme/m", 1000, 0) == 0.002
    assert prices.cost_of("acme/m", 1001, 0) is None


@given(COUNTS, COUNTS, COUNTS, st.booleans())
def test_more_tokens_never_cost_less_and_a_cache_never_costs_more(tokens, output, cached, batch):
    prices = priced("acme/m", cached=0.5, batch=0.5)
    cost = prices.cost_of("acme/m", tokens, output, cached, batch)
    assert 0 <= cost <= prices.cost_of("acme/m", tokens, output, 0, batch)
    assert cost <= prices.cost_of("acme/m", tokens + 1, output, cached, batch) + 1e-9
    assert cost <= prices.cost_of("acme/m", tokens, output + 1, cached, batch)


def test_an_estimate_says_what_it_assumes():
    found = priced("acme/m").estimate_all([call()])
    assert (found.tokens, found.output_tokens) == (100, ASSUMED_OUTPUT_TOKENS)
    assert found.cost == pytest.approx((100 * 2 + 1000 * 8) / 1e6)
    assert found.basis == "characters / 4; output tokens: 1,000 a reply, assumed"


def test_an_estimate_takes_the_longest_reply_that_a_call_allows():
    found = priced("acme/m", batch=0.5).estimate_all([call(max_tokens=50, characters=401)], batch=True)
    assert (found.tokens, found.output_tokens) == (101, 50)
    assert found.cost == pytest.approx((101 * 2 + 50 * 8) / 2e6)
    assert found.basis == "characters / 4; output tokens: 50 a reply, its max_tokens"


def test_a_schema_is_input_too():
    with_schema = CallSpec(model="acme/m", messages=call().messages, template="", schema=Text.of("y" * 40))
    assert priced("acme/m").estimate_all([with_schema]).tokens == 110


def test_one_unknown_price_makes_the_whole_estimate_unknown():
    prices = priced("acme/m")
    assert prices.estimate_all([call(), call()]).cost == pytest.approx(2 * prices.estimate_all([call()]).cost)
    mixed = prices.estimate_all([call(), call("other/m")])
    assert (mixed.tokens, mixed.cost) == (200, None)
    assert prices.estimate_all([]).cost == 0


def test_a_file_of_ones_own_replaces_the_table(tmp_path):
    prices = table(tmp_path, HEAD + ENTRY)
    assert prices.of("acme/m").batch == 0.5
    assert prices.of("openai/gpt-5") is None
    assert prices.source.endswith("prices.toml")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "format: is missing"),
        (HEAD.replace("USD", "EUR") + ENTRY, "currency: must be 'USD'"),
        (HEAD + ENTRY.replace("input = 2.0", "input = -2.0"), "input: must be at least 0"),
        (HEAD + ENTRY.replace("input = 2.0", "input = nan"), "input: must be a finite number"),
        (HEAD + ENTRY.replace("batch = 0.5", "batch = 0"), "batch: must be above 0"),
        (HEAD + ENTRY.replace("acme/m", "m"), "pattern: must have the form"),
        (HEAD + ENTRY.replace("as_of = 2026-11-01\n", ""), "as_of: is missing"),
        (HEAD + ENTRY + "discount = 3\n", "discount: unknown key"),
        (HEAD + ENTRY + ENTRY, "pattern 'acme/m' comes more than once"),
        ("format = ", "is not TOML"),
        ("#" * 1_000_001, "is larger than 1,000,000 bytes"),
    ],
)
def test_a_wrong_file_is_refused_with_its_problems(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem.replace("(", "[(]")):
        table(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml: cannot be read: No such file"):
        load_prices(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not TOML"):
        load_prices(tmp_path / "bad.toml")
