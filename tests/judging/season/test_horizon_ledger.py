"""The numeric ledger of horizons: cut with them, made for several at once, and where quotations stand."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

from horizon_records import AGENTS, horizon, season
from hypothesis import given
from hypothesis import strategies as st

from assaymark.judging import horizon_ledger, horizon_of
from assaymark.judging.season.ledger import horizon_ledgers, quoted_spans


def test_a_ledger_is_cut_as_its_horizon_is():
    records, contexts = season(5)
    whole = horizon_of(records, contexts, agents=AGENTS)
    decisions = [one.decision for one in records]
    ledger = horizon_ledger(whole, decisions, contexts)
    assert sum(map(len, ledger.steps.values())) == 5
    for first, last in ((1, 5), (2, 4), (5, 5)):
        assert ledger.between(first, last) == horizon_ledger(whole.between(first, last), decisions, contexts)


def test_ledgers_of_several_horizons_are_those_of_each():
    records, contexts = season(3)
    others = [
        replace(one, decision=replace(one.decision, record_id=f"other/{at}", agent=AGENTS[1]))
        for at, one in enumerate(season(3, text="GOOGL has a pe of 99.9 and a margin of 25%.")[0])
    ]
    horizons = [horizon_of(steps, contexts, agents=AGENTS) for steps in (records, others)]
    decisions = [one.decision for one in (*records, *others)]
    assert horizon_ledgers(horizons, decisions, contexts) == [
        horizon_ledger(one, decisions, contexts) for one in horizons
    ]


def slowly(quote, step):
    """The same by a regular expression."""
    words = quote.split()
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    found = [(at, *match.span()) for at, text in enumerate(step.texts) for match in pattern.finditer(text.text)]
    return found if words else []


TEXTS = st.text(st.sampled_from("ab \n\t\x1f\u2003."), max_size=30)


@given(st.lists(TEXTS, max_size=3), TEXTS)
def test_quotations_are_found_however_they_are_spaced(texts, quote):
    step = SimpleNamespace(texts=[SimpleNamespace(text=text) for text in texts])
    assert quoted_spans(quote, step) == slowly(quote, step)


def test_a_quotation_is_found_in_a_record():
    step = horizon(1).steps[0]
    ((part, start, end),) = quoted_spans("and   may still\nbe", step)
    assert step.texts[part].text[start:end] == "and may still be"
