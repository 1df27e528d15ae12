"""Control cells: the checker with one planted violation for each rule, what generators make, and cells as records."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_cycles import COMPOSERS, honest_decision, made_context

from assaymark import agents
from assaymark.agents import Composed, admissible, failed_checks
from assaymark.agents.controls import checks
from assaymark.agents.controls.compose import reword
from assaymark.errors import InputError, NotMeasurableError, UnknownNameError
from assaymark.judging import evidence, numeric_ledger, reconcile
from assaymark.judging.reference.features import topic_counts
from assaymark.prompting import SIGNATURES, hedges_in, judged_text, style_of, token_count
from assaymark.records import Action, Decision, Instrument, Rationale, canonical_json, content_id, parse

CONTEXT = made_context(2)
KNOWN = {}
for _one in checks.features_of(CONTEXT):
    KNOWN.setdefault(_one.instrument, []).append(_one)
DIRECTION = "orders against or without a cited direction"
SEEDS, AGENTS = st.integers(0, 400), st.sampled_from(COMPOSERS)


def broken(composed: Composed, context=CONTEXT) -> set[str]:
    return {check.rule for check in failed_checks(admissible(composed.kind, composed, context))}


def drawn(seed=0):
    return np.random.default_rng(seed)


# An instrument that is not held, and three of its features that speak for buying it or for nothing.
NAME, RISEN = next(
    (name, sorted(fits, key=lambda one: -one.lean)[:3])
    for name, known in KNOWN.items()
    if len(fits := [one for one in known if one.lean >= 0]) >= 3
    and any(one.lean for one in fits)
    and not CONTEXT.portfolio.positions.get(name)
)


def told(count: int = 3, features=RISEN) -> str:
    return ", ".join(f"{one.horizon} {one.kind} {one.printed(one.value)}" for one in features[:count])


def terse(text: str | None = None, *, kind: str = "buy", quantity: float = 5.0) -> Composed:
    text = f"Buy {quantity:g} {NAME}: {told()}." if text is None else text
    return Composed(kind="cell_b", actions=(Action(instrument=NAME, kind=kind, quantity=quantity),), text=text)


# --- the checker of cells A and B -------------------------------------------------------------------------------------


def test_a_terse_cell_that_a_person_wrote_is_admissible_with_every_check_recorded():
    assert broken(terse()) == set()
    base = terse().text  # sixty tokens are enough and sixty-one too many
    filler = " ".join(["so"] * (60 - len(base.split())))
    assert broken(terse(f"{base} {filler}")) == set()
    assert broken(terse(f"{base} {filler} so")) == {"tokens"}
    assert {check.rule: check.passed for check in agents.with_checks(terse(), CONTEXT).admissibility} == dict.fromkeys((
        "characters", "tokens", "hedging words", "correct features", "wrong numbers",
        "numbers that cannot be checked", "orders", "broken rules", DIRECTION), True)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"Buy 5 {NAME}: {told(2)}.", "correct features"),
        (f"Buy 5 {NAME}: {told(2)}. {NAME}: {told(1)}.", "correct features"),  # said twice, it counts once
        *((f"{terse().text} {hedge}", "hedging words") for hedge in ("Perhaps.", "This may hold.", "More or less.")),
        *((f"{terse().text} {false}", "wrong numbers") for false in (
            "Cash 1.00 less cost 2.00 leaves 3.00.", "Leverage 0.01.", "Exposure is 99.9% of equity.",
            f"Buy 4 {NAME}.")),
        (f"{terse().text} Patience 17.5.", "numbers that cannot be checked"),
        *((text, "characters") for text in ("", "  \n ", "a" * 20_001)),
    ],
)  # fmt: skip
def test_b_a_text_that_breaks_one_rule_is_refused_for_it(text, rule):
    assert broken(terse(text)) == {rule}


def test_b_orders_that_break_a_rule_are_refused_and_closing_what_is_held_is_a_sale():
    cell, other = terse(), next(name for name in KNOWN if name != NAME)
    more = (*cell.actions, Action(instrument=other, kind="buy", quantity=1.0))
    for wrong, rule in (
        (terse(quantity=900.0), "broken rules"),
        (terse(f"Short 5 {NAME}: {told()}.", kind="short"), DIRECTION),
        (replace(cell, actions=more), DIRECTION),
        (replace(cell, actions=(Action(instrument="", kind="no_trade"),)), "orders"),
    ):
        assert rule in broken(wrong)
    feature = RISEN[0]
    text = cell.text.replace(feature.printed(feature.value), feature.printed(feature.value + 0.011))
    (wrong,) = [one for one in failed_checks(admissible("cell_b", terse(text), CONTEXT)) if one.rule == "wrong numbers"]
    assert f"{feature.kind}_{feature.horizon}" in wrong.detail
    name = next(iter(CONTEXT.portfolio.positions))
    close = (Action(instrument=name, kind="close"),)
    for side in (-1, 1):
        features = sorted((one for one in KNOWN[name] if one.lean * side >= 0), key=lambda one: -one.lean * side)
        if any(one.lean for one in features[:1]):
            cell = Composed(kind="cell_b", actions=close, text=f"Close {name}: {told(4, features)}.")
            assert (DIRECTION in broken(cell)) == (side > 0)


def test_a_every_rule_is_broken_alone():
    verbose = agents.verbose_wrong(CONTEXT, drawn())
    features = checks.features_of(CONTEXT)
    volume = next(one for one in features if one.kind == "volume")
    residual = checks.book_after(CONTEXT, verbose.actions).after.residual
    calm = " ".join(f"{one.instrument}'s {one.horizon} {one.kind} is 9.87%." for one in features[:6])
    account = "Cash 1.00 less cost 2.00 leaves 3.00. " + "The book is what it is and stays so. " * 25
    kept = [verbose.text[a:b] for a, b in checks.sentences_of(verbose.text)]
    amounts = re.compile(r"\b(?:[Cc]ash|[Ee]xposure|[Ll]everage|[Ll]argest)\b")

    def said(one, value: float) -> str:
        return f"{verbose.text} {one.instrument}'s {one.horizon} {one.kind} is {one.printed(value)}."

    for text, rule in (
        (f"{verbose.text} It could turn.", "hedging words"),
        (f"{verbose.text} Patience 17.5.", "numbers that cannot be checked"),
        (f"{verbose.text} The residual is {residual:,.2f}.", "amounts that are right"),
        (said(RISEN[0], RISEN[0].value), "features that are not far wrong"),
        (said(volume, volume.value + 0.02), "features that are not far wrong"),
        (f"{calm} {account}", "confident phrases"),
        (" ".join(one for one in kept if not amounts.search(one)) + " And so it is." * 20,
         "false amounts of cash, exposure or leverage"),
    ):  # fmt: skip
        assert broken(replace(verbose, text=text)) == {rule}
    assert "tokens" in broken(replace(verbose, text=" ".join(verbose.text.split()[:150])))
    assert "broken rules" in broken(replace(verbose, actions=(Action(instrument=NAME, kind="buy", quantity=1.0),)))
    cited = [one for one in kept if re.search(r"\d+m ", one)]
    fewer = " ".join(one for one in kept if one not in cited[2:])
    assert "contradicted features" in broken(replace(verbose, text=fewer + " So be it." * 40))


def test_what_cannot_be_settled_is_a_failed_check_and_what_cannot_be_held_against_anything_an_error():
    for kind in ("cell_a", "cell_b"):
        wild = Composed(kind=kind, actions=(Action(instrument="Asset Z", kind="buy", quantity=1.0),), text="Buy it.")
        endless = replace(wild, actions=(Action(instrument=NAME, kind="buy", quantity=float("inf")),))
        assert broken(wild) == broken(endless) == {"orders that settle"}
    with pytest.raises(UnknownNameError, match=r"kind of control cell 'ladder'"):
        admissible("ladder", terse(), CONTEXT)
    context, decision = honest_decision(1)
    for kind, original, why in (
        ("paraphrase", None, r"original: a paraphrase is compared with the decision"),
        ("length_matched", decision, r"tokens: the length that was asked for"),
    ):
        with pytest.raises(InputError, match=why):
            admissible(kind, Composed(kind=kind, actions=(), text="x", original=original), context)


@pytest.mark.parametrize(
    "text", ["9" * 15_000, "-" * 15_000, "1,1" * 5_000, "Asset A " * 2_000, "\ue000" * 99, "1.1." * 4999]
)
def test_hostile_texts_are_read_to_the_end(text):
    assert "correct features" in broken(terse(text))


# --- reading ----------------------------------------------------------------------------------------------------------


def test_names_inside_names_horizons_and_codes_are_not_mistaken():
    longer = replace(CONTEXT, instruments=(Instrument(id="Asset A"), Instrument(id="Asset AB")))
    found = [one.instrument for one in checks.mentions_in("Asset AB beats Asset A, Asset ABC", longer)]
    assert found == ["Asset AB", "Asset A"]
    for text in ("over 15 minutes", "a 60m range", "60-minute", "21 sessions", "ISO27001", "v1.2.3",
                 "the 15-minute one"):  # fmt: skip
        assert checks.figures_in(text) == ()
    for quote in ("+0.80%", "-1,234.50", "0.91", "12", "33 %", "−0.5%"):  # a figure is written back as it stood
        (figure,) = checks.figures_in(f"is {quote} now")
        assert figure.quote == quote
        assert figure.written(figure.value).replace("-", "−") == quote.replace("-", "−")


@pytest.mark.parametrize("wording", [
    "{x}'s 60m return is {v}.", "{x} is {way} {size} over the hour.", "The 60-minute return of {x} stands at {v}.",
    "return_60m for {x}: {v}", "Over 60 minutes {x} returned {v}.", "{v} is the 60m return of {x}.",
])  # fmt: skip
def test_a_feature_is_read_in_many_wordings(wording):
    one = next(
        feature for feature in checks.features_of(CONTEXT) if (feature.kind, feature.horizon) == ("return", "60m")
    )
    shown = one.printed(one.value)
    way = "up" if one.value > 0 else "down"
    text = wording.format(x=one.instrument, v=shown, way=way, size=shown.lstrip("+-"))
    ((found,), _) = checks.statements_of(text, CONTEXT, (), None)
    assert (found.kind, found.instrument, found.about, found.right) == ("feature", one.instrument, "return_60m", True)


# --- paraphrases ------------------------------------------------------------------------------------------------------

honest = cache(honest_decision)


def ledger(decision, context, text: str):
    return numeric_ledger(replace(decision, rationales=(Rationale(text=text, kind="summary"),)), context)


@settings(max_examples=25, deadline=None)
@given(SEEDS, AGENTS)
def test_a_paraphrase_keeps_every_fact_and_hardly_a_run_of_words(seed, agent):
    context, decision = honest(seed, agent)
    cell = agents.paraphrase(decision, context, drawn(seed))
    before, after = judged_text(decision), cell.text
    names = [item.id for item in context.instruments]
    assert failed_checks(admissible("paraphrase", cell, context)) == ()
    assert cell.actions == decision.actions
    for kept in (checks.numerals_in, lambda text: [text.count(name) for name in names],
                 lambda text: len(hedges_in(text)), style_of):  # fmt: skip
        assert kept(before) == kept(after)
    assert abs(token_count(after) / token_count(before) - 1) <= 0.15
    assert checks.word_overlap(before, after, names) <= 0.8
    assert checks.run_overlap(before, after, names) <= 0.5
    # The judges' ledger supports it no less than the original.
    was, now = (Counter(one.state for one in ledger(decision, context, text)) for text in (before, after))
    assert now["supported"] >= was["supported"]
    assert now["contradicted"] == was["contradicted"] == 0


def test_paraphrases_read_as_sentences_and_a_conclusion_may_come_before_its_reason():
    for agent in COMPOSERS:
        context, decision = honest(3, agent)
        text = agents.paraphrase(decision, context, drawn(1)).text
        pieces = [text[start:end] for start, end in checks.sentences_of(text)]
        ended = [before[-1] for before in pieces[:-1]]
        assert all(after[0].isupper() or mark == ";" for mark, after in zip(ended, pieces[1:], strict=True))
        assert all(mark in ".!?;" for mark in ended)
        assert not any("\ue000" <= character <= "\uf8ff" for character in text)
    text = "The book is full, so nothing is traded. Asset A stays as a core, so we wait."
    made = {reword(text, made_context(1), drawn(seed)) for seed in range(12)}
    assert any("since the book is full" in one or "as the book is full" in one for one in made)


@pytest.mark.parametrize(
    ("make", "text", "why"),
    [
        (
            agents.paraphrase,
            "Zwei Titel steigen, und wir kaufen 3.5 davon.",
            "not admissible as drawn: overlap of words is 1",
        ),
        (agents.paraphrase, "Up \ue0000\ue002 now.", "private-use characters"),
        (agents.fact_flip, "Two of them rise, so I buy 3 of 7.", "states no number that the material holds"),
    ],
)
def test_a_text_of_which_no_cell_can_be_made_is_refused(make, text, why):
    context, decision = honest_decision(1, text=text)
    with pytest.raises(NotMeasurableError, match=why):
        make(decision, context, drawn())


def test_the_checker_refuses_a_paraphrase_that_changes_what_is_said():
    context, decision = honest(2, "momentum")
    cell = agents.paraphrase(decision, context, drawn())
    for text, rule in (
        (cell.text.replace("0.", "1.", 1), "numbers added or lost"),
        (cell.text.replace("Asset", "Ascot", 1), "instruments named more or less often"),
        (cell.text + " perhaps", "hedging words added or lost"),
        (cell.text + " so it is" * 20, "change of length"),
    ):
        assert rule in broken(replace(cell, text=text), context)
    copied = replace(cell, text=judged_text(decision))
    assert broken(copied, context) == {"overlap of words", "overlap of runs of three words"}
    assert broken(replace(cell, actions=()), context) == {"orders of the original"}
    one, other = (item.id for item in context.instruments[:2])
    said, swapped = (f"{a}'s 15m return is 1.00%. {b}'s 60m return is 2.00%." for a, b in ((one, other), (other, one)))
    stated = replace(decision, rationales=(Rationale(text=said, kind="summary"),))
    found = broken(Composed(kind="paraphrase", actions=decision.actions, text=swapped, original=stated), context)
    assert "statements added or lost" in found


# --- fact-flips -------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(SEEDS, AGENTS, st.integers(0, 50))
def test_a_flip_changes_one_number_to_one_that_nothing_supports(seed, agent, draw):
    """Nor does the judges' ledger, which supported the number before."""
    context, decision = honest(seed, agent)
    cell = agents.fact_flip(decision, context, drawn(draw))
    before, (old, now) = judged_text(decision), cell.change
    assert cell.text == before[: old.start] + now + before[old.end :]
    assert before[old.start : old.end] == old.quote != now
    (new,) = checks.figures_in(now)
    assert not checks.matches_any(checks.context_values(context, decision.actions), abs(new.value), new.half)
    assert cell.actions == decision.actions
    assert failed_checks(admissible("fact_flip", cell, context)) == ()
    was, now = ({one.start: one.state for one in ledger(decision, context, text)} for text in (before, cell.text))
    assert was.pop(old.start) == "supported"
    assert now.pop(old.start) in ("not_found", "contradicted")
    assert sorted(was.values()) == sorted(now.values())


def test_a_sign_may_be_turned_and_amounts_features_without_a_book_and_places_are_flipped_too():
    def fact(field):
        return next(one for one in made_context(4).facts if one.field == field)

    one, place = fact("return_60m"), fact("range_60m")
    context, decision = honest_decision(4, text=f"{one.instrument}'s 60m return is {one.value * 100:+.2f}%.")
    made = [agents.fact_flip(decision, context, drawn(seed)) for seed in range(12)]
    assert 0 < sum(now[1:] == old.quote[1:] for old, now in (cell.change for cell in made)) < len(made)
    assert {ledger(decision, context, cell.text)[0].state for cell in made} == {"contradicted"}
    account = judged_text(honest_decision(4, "steward")[1]).split("\n\n")[-2]
    context, decision = honest_decision(4, "steward", text=account)
    old, now = agents.fact_flip(decision, context, drawn()).change
    assert old.quote in account
    assert "." in now
    context, decision = honest_decision(4)
    targets = tuple(replace(one, kind="target_weight", weight=0.1, quantity=None) for one in decision.actions)
    cell = agents.fact_flip(replace(decision, actions=targets), replace(context, portfolio=None), drawn())
    assert failed_checks(cell.admissibility) == ()
    context, decision = honest_decision(4, text=f"{place.instrument}'s 60m range is {place.value:.2f}.")
    for seed in range(10):  # a place in the range stays between its ends
        assert 0 < float(agents.fact_flip(decision, context, drawn(seed)).change[1]) <= 1


def test_the_checker_refuses_a_flip_that_is_none():
    context, decision = honest(6, "momentum")
    cell, text = agents.fact_flip(decision, context, drawn()), judged_text(decision)
    old = cell.change[0].quote
    (figure,) = checks.figures_in(old)
    other = next(f for f in context.facts if f.field == "volatility_60m" and f"{f.value * 100:.2f}%" != old)
    for was, now, rules, whole in (
        (old, old, {"changed numbers"}, True),
        ("rose", "fell", {"text around the numbers", "changed numbers"}, True),
        (old, figure.written(figure.value + 2 * figure.step), {"change in last printed digits"}, False),
        (old, f"{other.value * 100:.2f}%", {"the number now"}, False),
        ("Confidence is 0.", "Confidence is 9.", {"the number before"}, False),
    ):
        assert was in text
        given_ = {"actions": decision.actions, "text": text.replace(was, now, 1), "original": decision}
        found = broken(Composed(kind="fact_flip", **given_), context)
        assert found == rules if whole else rules <= found
    twice = cell.text.replace("Confidence is 0.", "Confidence is 9.")
    assert broken(replace(cell, text=twice), context) == {"changed numbers"}


# --- lengths ----------------------------------------------------------------------------------------------------------


def fitted(decision, context, tokens: int, seed: int) -> Composed | None:
    """A rerun of that length, or None where whole sentences cannot make it."""
    try:
        return agents.length_matched(decision, context, tokens, drawn(seed))
    except NotMeasurableError:
        return None


@settings(max_examples=25, deadline=None)
@given(SEEDS, AGENTS, st.integers(60, 220))
def test_a_length_is_met_within_a_twentieth_by_true_sentences_or_fewer(seed, agent, tokens):
    context, decision = honest(seed, agent)
    before = judged_text(decision)
    cell = fitted(decision, context, tokens, seed)
    if cell is None:
        return
    assert abs(token_count(cell.text) / tokens - 1) <= 0.05 + 1e-9
    assert failed_checks(admissible("length_matched", cell, context)) == ()
    assert checks.figures_in(cell.text)
    if len(cell.text) > len(before):
        assert cell.text.startswith(before)
        added = {one.state for one in ledger(decision, context, cell.text) if one.start >= len(before)}
        assert added == {"supported"}
    else:
        whole = {before[a:b] for a, b in checks.sentences_of(before)}
        assert {cell.text[a:b] for a, b in checks.sentences_of(cell.text)} <= whole
        assert style_of(cell.text) == style_of(before)


def test_most_lengths_can_be_met_the_right_one_stays_and_numbers_go_last():
    made = [fitted(*reversed(honest(seed, agent)), 120, seed) for seed in range(8) for agent in COMPOSERS]
    assert sum(one is not None for one in made) >= 0.7 * len(made)
    context, decision = honest(1, "momentum")
    tokens = token_count(judged_text(decision))
    assert agents.length_matched(decision, context, tokens, drawn()).text == judged_text(decision)
    plain = "The book is quiet and this sentence holds none. "
    text = "Read plainly, it rises. " + plain * 3 + "Asset A is up 0.10% over 15 minutes. Asset B is up 0.20% over 5m."
    context, decision = honest_decision(1, text=text)
    cell = agents.length_matched(decision, context, 19, drawn())
    assert cell.text == "Read plainly, it rises. Asset A is up 0.10% over 15 minutes. Asset B is up 0.20% over 5m."
    context, decision = honest(1, "equal-weight")
    for tokens, error, why in (
        (5000, NotMeasurableError, r"tokens within 5% of 5000"),
        (2, NotMeasurableError, r"tokens within 5% of 2$"),
        (0, InputError, r"tokens: must be at least 1 \(got 0\)"),
    ):
        with pytest.raises(error, match=why):
            agents.length_matched(decision, context, tokens, drawn())


def test_the_checker_refuses_what_is_not_made_of_whole_true_sentences():
    context, decision = honest(7, "momentum")
    cell = agents.length_matched(decision, context, 150, drawn())
    _, *rest = [cell.text[a:b] for a, b in checks.sentences_of(cell.text)]
    for text, rule in (
        (f"{cell.text} {context.instruments[0].id}'s 60m volatility is 91.00%.", "added numbers that are wrong"),
        (f"{cell.text} Nothing more is said.", "added sentences without a feature"),
        (" ".join(rest), "sentences dropped from a text that was lengthened"),
        ("Nothing is said.", "numbers kept"),
    ):
        assert rule in broken(replace(cell, text=text), context)
    assert broken(replace(cell, tokens=100), context) == {"distance from the length asked for"}


# --- cells A and B, held against the checker, the ledger of numbers and the oracle ------------------------------------

MAKERS = {"cell_a": agents.verbose_wrong, "cell_b": agents.terse_right}


@cache
def made(kind: str, seed: int, style: str = "elder"):
    context = made_context(seed)
    return context, MAKERS[kind](context, drawn(seed), style=style)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_every_cell_is_what_it_should_be_to_checkers_that_did_not_make_it(seed):
    limits = {"leverage_cap", "weight_cap", "cash_floor", "orders_cap", "cash"}
    for kind in MAKERS:
        context, cell = made(kind, seed)
        assert failed_checks(admissible(kind, replace(cell, admissibility=()), context)) == ()
        assert cell.admissibility == admissible(kind, cell, context)
        # The judges' ledger, the oracle of their arithmetic, and their counters of words and hedges
        found = Counter(
            one.state for one in evidence.audit_texts([("summary", cell.text)], evidence.ContextIndex.of(context))
        )
        book = checks.book_after(context, cell.actions)
        parts = reconcile(cell.text, book.after, context.constraints).values()
        verdicts = {part.quantity: part.verdict for part in parts if part.quantity not in limits}
        assert topic_counts(cell.text)["hedge"] == 0
        if kind == "cell_a":
            assert found["contradicted"] >= 3
            assert "right" not in verdicts.values()
            assert {verdicts["residual"], verdicts["exposure"], verdicts["leverage"]} == {"wrong"}
            assert book.broken
            assert token_count(cell.text) >= 200
        else:
            assert (found["contradicted"], book.broken) == (0, ())
            assert found["supported"] >= 3
            assert "wrong" not in verdicts.values()
            assert verdicts["residual"] == "right"
            assert token_count(cell.text) <= 60


def test_fifty_of_each_are_no_near_copies():
    """Measured on runs of five words, numbers and names left out."""
    runs = {}
    for kind in MAKERS:
        texts = [made(kind, seed)[1].text for seed in range(50)]
        assert len(set(texts)) == 50
        words = [checks.words_without(text) for text in texts]
        runs[kind] = [[tuple(one[at : at + 5]) for at in range(len(one) - 4)] for one in words]
    # The largest share of runs that any two share (Jaccard); cell B says a few words about few things.
    for kind, most in (("cell_a", 0.25), ("cell_b", 0.7)):
        found = [set(one) for one in runs[kind]]
        assert max(len(a & b) / max(len(a | b), 1) for a, b in combinations(found, 2)) < most
    every = [run for one in runs["cell_a"] for run in one]
    assert len(set(every)) / len(every) > 0.4


def test_one_context_gives_many_texts_each_in_its_style_and_equal_ones_for_equal_seeds():
    context = made_context(3)
    for kind, make in MAKERS.items():
        assert len({make(context, drawn(seed)).text for seed in range(20)}) == 20
        assert make(context, drawn(1)) == make(context, drawn(1))
        for style in SIGNATURES:
            _, cell = made(kind, 4, style)
            assert cell.text.startswith(SIGNATURES[style])
            assert style_of(cell.text) == style
        assert style_of(made(kind, 4, "plain")[1].text) is None
    # Known scores hold only what the construction fixes.
    assert dict(made("cell_a", 0)[1].known_scores) == {"constraint_awareness": 1.0}
    assert dict(made("cell_b", 0)[1].known_scores) == {}


def test_a_context_without_what_a_cell_is_about_is_refused():
    context = made_context(1)
    tight = tuple(replace(rule, limit=0.0) if rule.kind == "max_leverage" else rule for rule in context.constraints)
    prices = tuple(fact for fact in context.facts if fact.field == "price")
    few = r"contradicted features is 0, needs at least 3|three features"
    for make, other, why in (
        *((make, replace(context, portfolio=None), "portfolio") for make in MAKERS.values()),
        *((make, replace(context, facts=prices), few) for make in MAKERS.values()),
        (agents.verbose_wrong, replace(context, constraints=()), r"cell_a is not admissible as drawn: .*of 24 draws"),
        (agents.terse_right, replace(context, constraints=tight), r"broken rules is 1, needs 0 \(max_leverage"),
    ):
        with pytest.raises(NotMeasurableError, match=why):
            make(other, drawn())


# --- cells as records: what they carry, how they are spread, and what is refused --------------------------------------

CONTEXTS = [made_context(seed) for seed in range(10)]
PLACED = [(content_id(context), context, f"regime {seed % 5}") for seed, context in enumerate(CONTEXTS)]
HONEST = [honest_decision(seed, agent)[1] for seed in range(10) for agent in COMPOSERS]
BY_ID = {key: context for key, context, _ in PLACED}


def cells(kind: str, count: int = 12, **changes) -> list[Decision]:
    given = {"seed": 5, "family": "north", "style": "birch", "honest": HONEST, "tokens": 100, **changes}
    return agents.cell_decisions(PLACED, kind=kind, count=count, **given)


def test_a_cell_as_a_record():
    at = CONTEXTS[0].cutoff + timedelta(seconds=1)
    rest = (PLACED[0][0], "b-1", "calm", "north", 0, at)
    found = agents.cell_decision(agents.terse_right(CONTEXTS[0], drawn()), *rest)
    assert (found.agent.id, found.agent.family, found.derivation.kind) == (agents.CONTROL, "north", "cell_b")
    assert [text.kind for text in found.rationales] == ["summary"]
    assert (found.episode_id, found.step, found.cluster) == ("b-1", 1, "calm")
    assert parse(Decision, canonical_json(found)) == found
    with pytest.raises(NotMeasurableError, match="cell_b b-1 is not a control cell: it was never checked"):
        agents.cell_decision(Composed(kind="cell_b", actions=(), text="Buy."), *rest)


@pytest.mark.parametrize("kind", agents.CELL_KINDS)
def test_cells_are_spread_evenly_repeat_by_seed_and_are_paired_with_their_parents(kind):
    found = cells(kind)
    per_cluster = Counter(cell.cluster for cell in found)
    assert set(per_cluster) == {f"regime {number}" for number in range(5)}
    assert max(per_cluster.values()) - min(per_cluster.values()) <= 1
    assert found == cells(kind)
    assert len(found) == len({cell.record_id for cell in found}) == len({cell.rationales[0] for cell in found}) == 12
    assert {(cell.derivation.kind, cell.agent.family) for cell in found} == {(kind, "north")}
    assert cells(kind, 3)[0].rationales != cells(kind, 3, seed=6)[0].rationales
    assert all(bool(cell.flags) == (kind == "fact_flip") for cell in found)
    if kind in agents.DERIVED_KINDS:
        parents = {decision.record_id: decision for decision in HONEST}
        assert len({cell.derivation.parent for cell in found}) == 12
        for cell in found:
            for name in ("cycle", "cluster", "format", "actions", "confidence"):
                assert getattr(cell, name) == getattr(parents[cell.derivation.parent], name)
    for cell in cells(kind, 4) if kind in MAKERS else ():  # the seed of a record repeats its generator
        again = MAKERS[kind](BY_ID[cell.context_id], drawn(cell.derivation.seed), style="birch")
        assert (again.text, again.actions) == (cell.rationales[0].text, cell.actions)


def test_contexts_are_used_again_passed_over_or_run_out_and_what_is_refused():
    few = agents.cell_decisions(PLACED[:1], kind="cell_a", count=7, seed=1, family="f")
    assert len({cell.rationales[0].text for cell in few}) == 7
    mixed = [("none", replace(CONTEXTS[0], constraints=()), "calm"), ("some", CONTEXTS[1], "calm")]
    found = agents.cell_decisions(mixed, kind="cell_a", count=4, seed=1, family="f")
    assert {cell.context_id for cell in found} == {"some"}
    with pytest.raises(NotMeasurableError, match=r"only 0 of 2 cell_a cells could be made; the last reason: cell_a is"):
        agents.cell_decisions(mixed[:1], kind="cell_a", count=2, seed=1, family="f")
    assert cells("cell_b", 1, study="pilot")[0].record_id == "pilot/cell_b-5-0001"
    assert cells("cell_a", 0) == []
    derived = [replace(HONEST[0], derivation=replace(HONEST[0].derivation, kind="red_team"))]
    for kind, count, more, error, why in (
        ("fact_flip", 51, {}, NotMeasurableError, r"only 50 of 51 fact_flip cells could be made"),
        ("vacuum", 12, {}, UnknownNameError, "kind of control cell 'vacuum'"),
        ("cell_a", -1, {}, InputError, r"count: must not be negative \(got -1\)"),
        ("length_matched", 12, {"tokens": None}, InputError, "tokens: length_matched needs the length asked for"),
        ("paraphrase", 1, {"honest": derived}, InputError, "needs an honest decision on one of the contexts"),
    ):
        with pytest.raises(error, match=why):
            cells(kind, count, **more)
