"""The numeric ledger on the real CapitalBench records: shares, planted errors, forecasts, speed."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from assaymark.importers import import_capitalbench
from assaymark.judging import evidence, numeric_ledger

pytestmark = pytest.mark.shared

FREE_RULES = ("free-fact", "free-fact-in-sentence")


class Real:
    """All records with their ledgers, and what reading them cost on one core."""

    def __init__(self, folder: Path) -> None:
        names = ("decisions.jsonl.gz", "contexts.jsonl.gz")
        records = import_capitalbench({name: (folder / name).read_bytes() for name in names})
        self.decisions, self.contexts = records.decisions, records.contexts
        self.materials = {name: evidence.ContextIndex.of(one) for name, one in self.contexts.items()}
        self.ledgers = [
            numeric_ledger(one, self.contexts[one.context_id], material=self.materials[one.context_id])
            for one in self.decisions
        ]
        self.evidence = [item for ledger in self.ledgers for item in ledger]


@pytest.fixture(scope="module")
def real(shared: Path) -> Real:
    return Real(shared / "data" / "capitalbench")


def test_every_quote_stands_in_its_text(real):
    assert len(real.ledgers) == 719
    for made, ledger in zip(real.decisions, real.ledgers, strict=True):
        for item in ledger:
            rationale = made.rationales[item.part]
            assert rationale.kind == item.kind != "arena"
            assert rationale.text[item.start : item.start + len(item.quote)] == item.quote


def test_most_figures_are_the_right_assets_and_most_others_the_briefings(real):
    """Own figures aside; the source of these targets found two thirds and a quarter."""
    others = [item for item in real.evidence if item.state != "own_action"]
    rules = Counter(item.rule for item in others)
    row, free = (sum(rules[rule] for rule in names) / len(others) for names in (evidence.ROW_RULES, FREE_RULES))
    assert 14_000 < len(others) < 17_000
    assert 0.60 < row < 0.70
    assert 0.20 < free < 0.28


def test_partial_contexts_contradict_nobody_and_complete_ones_would_hardly(real):
    assert {one.completeness for one in real.contexts.values()} == {"partial"}
    assert "contradicted" not in {item.state for item in real.evidence}
    assert sum(item.rule == "partial-context" for item in real.evidence) <= 5


def test_support_is_far_beyond_chance(real):
    summary = evidence.evidence_summary(real.evidence, real.decisions, real.materials, rng=np.random.default_rng(1))
    found = {one.id: one for one in summary}
    chance, silent = found["evidence.chance_corrected[]"], found["evidence.no_number_share[]"]
    assert chance.n > 10_000
    assert chance.detail["chance"] < 0.10
    assert chance.value > 0.85
    assert (silent.n, silent.detail["count"]) == (719, 152)


def test_fifty_one_of_270_stated_forecasts_differ_from_their_parts(real):
    found = evidence.forecast_mismatches(real.decisions)
    assert (found.detail["count"], found.n) == (51, 270)


def test_planted_errors_lose_support(real):
    """Of altered table figures at least nine in ten must not be supported any more."""
    rng = random.Random(5)
    both = zip(real.decisions, real.ledgers, strict=True)
    table = [(made, item) for made, ledger in both for item in ledger if item.rule in evidence.ROW_RULES]
    lost = 0
    for made, item in rng.sample(table, 1500):
        rationale = made.rationales[item.part]
        wrong = _altered(item.quote, rng)
        text = rationale.text[: item.start] + wrong + rationale.text[item.start + len(item.quote) :]
        own, material = evidence.own_numbers(made), real.materials[made.context_id]
        found = evidence.audit_texts([(rationale.kind, text)], material, own)
        lost += not any(f.start == item.start and f.state == "supported" for f in found)
    assert lost / 1500 >= 0.9


def _altered(quote: str, rng: random.Random) -> str:
    """The quote with another size, printed with as many digits after the point."""
    (number,) = evidence.extract_numbers(quote) or evidence.extract_numbers(f"{quote}%")
    size = abs(number.value) / number.scale
    step = 10.0**-number.decimals
    other = max(size * rng.choice((0.55, 0.8, 1.25, 1.7)), step)
    while math.isclose(round(other, number.decimals), size, abs_tol=1.5 * step):
        other += 2 * step
    digits = "".join(c for c in quote if c in "0123456789.,")
    return quote.replace(digits, f"{other:.{number.decimals}f}", 1)
