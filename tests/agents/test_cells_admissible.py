"""The checker of control cells: one planted violation for each rule, and reading that is not fooled."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from made_cycles import honest_decision, made_context

from assaymark.agents import Composed, admissible, checked, failed, is_admissible, terse_right, verbose_wrong
from assaymark.agents.controls.checks import figures_in, mentions_in, sentences_of, statements_of
from assaymark.agents.controls.compose import book_of, by_instrument, features_of
from assaymark.errors import InputError, UnknownNameError
from assaymark.records import Action, Instrument

CONTEXT = made_context(2)
KNOWN = by_instrument(features_of(CONTEXT))


def broken(composed: Composed, context=CONTEXT) -> set[str]:
    return {check.rule for check in failed(admissible(composed.kind, composed, context))}


def risen() -> tuple[str, list]:
    """An instrument and three of its features that speak for buying it or for nothing."""
    for name, known in KNOWN.items():
        fits = [one for one in known if one.lean >= 0]
        held = CONTEXT.portfolio.positions.get(name, 0.0)
        if len(fits) >= 3 and any(one.lean for one in fits) and not held:
            return name, sorted(fits, key=lambda one: -one.lean)[:3]
    raise AssertionError("no instrument rose in the context of the tests")


NAME, RISEN = risen()


def told(count: int = 3, features=RISEN) -> str:
    return ", ".join(f"{one.horizon} {one.kind} {one.printed(one.value)}" for one in features[:count])


def terse(text: str | None = None, *, kind: str = "buy", quantity: float = 5.0, features=RISEN) -> Composed:
    text = f"Buy {quantity:g} {NAME}: {told(features=features)}." if text is None else text
    return Composed(kind="cell_b", actions=(Action(instrument=NAME, kind=kind, quantity=quantity),), text=text)


# --- cell B -----------------------------------------------------------------------------------------------------------


def test_a_terse_cell_that_a_person_wrote_is_admissible():
    assert broken(terse()) == set()
    assert is_admissible("cell_b", terse(), CONTEXT)
    base = terse().text  # sixty tokens are enough and sixty-one too many
    filler = " ".join(["so"] * (60 - len(base.split())))
    assert broken(terse(f"{base} {filler}")) == set()
    assert broken(terse(f"{base} {filler} so")) == {"tokens"}


DIRECTION = "orders against or without a cited direction"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"Buy 5 {NAME}: {told(2)}.", "correct features"),
        (f"Buy 5 {NAME}: {told(2)}. {NAME}: {told(1)}.", "correct features"),  # said twice, it counts once
        *((f"{terse().text} {hedge}", "hedging words") for hedge in ("Perhaps.", "This may hold.", "More or less.")),
        *(
            (f"{terse().text} {false}", "wrong numbers")
            for false in (
                "Cash 1.00 less cost 2.00 leaves 3.00.", "Leverage 0.01.", "Exposure is 99.9% of equity.",
                f"Buy 4 {NAME}.",
            )
        ),
        (f"{terse().text} Patience 17.5.", "numbers that cannot be checked"),
    ],
)  # fmt: skip
def test_b_a_text_that_breaks_one_rule_is_refused_for_it(text, rule):
    assert broken(terse(text)) == {rule}


def test_b_orders_that_break_a_rule_are_refused():
    cell, other = terse(), next(name for name in KNOWN if name != NAME)
    assert "broken rules" in broken(terse(quantity=900.0))
    assert DIRECTION in broken(terse(f"Short 5 {NAME}: {told()}.", kind="short"))
    more = (*cell.actions, Action(instrument=other, kind="buy", quantity=1.0))
    assert DIRECTION in broken(replace(cell, actions=more))
    assert "orders" in broken(replace(cell, actions=(Action(instrument="", kind="no_trade"),)))
    feature = RISEN[0]
    text = cell.text.replace(feature.printed(feature.value), feature.printed(feature.value + 0.011))
    (wrong,) = [one for one in failed(admissible("cell_b", terse(text), CONTEXT)) if one.rule == "wrong numbers"]
    assert feature.field in wrong.detail


def test_b_closing_what_is_held_is_a_sale():
    name = next(iter(CONTEXT.portfolio.positions))
    fallen = sorted((one for one in KNOWN[name] if one.lean <= 0), key=lambda one: one.lean)
    risen_ones = sorted((one for one in KNOWN[name] if one.lean >= 0), key=lambda one: -one.lean)
    close = (Action(instrument=name, kind="close"),)
    for features, refused in ((fallen, False), (risen_ones, True)):
        if any(one.lean for one in features[:1]):
            cell = Composed(kind="cell_b", actions=close, text=f"Close {name}: {told(4, features)}.")
            assert ("orders against or without a cited direction" in broken(cell)) == refused


# --- cell A -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def verbose() -> Composed:
    return verbose_wrong(CONTEXT, np.random.default_rng(0))


def said(one, value: float) -> str:
    return f" {one.instrument}'s {one.horizon} {one.kind} is {one.printed(value)}."


def test_a_every_rule_is_broken_alone(verbose):
    volume = next(one for one in features_of(CONTEXT) if one.kind == "volume")
    residual = book_of(CONTEXT, verbose.actions).after.residual
    calm = " ".join(f"{one.instrument}'s {one.horizon} {one.kind} is 9.87%." for one in features_of(CONTEXT)[:6])
    account = "Cash 1.00 less cost 2.00 leaves 3.00. " + "The book is what it is and stays so. " * 25
    kept = [verbose.text[a:b] for a, b in sentences_of(verbose.text)]
    unreconciled = re.compile(r"\b(?:[Cc]ash|[Ee]xposure|[Ll]everage|[Ll]argest)\b")
    for text, rule in (
        (f"{verbose.text} It could turn.", "hedging words"),
        (f"{verbose.text} Patience 17.5.", "numbers that cannot be checked"),
        (f"{verbose.text} The residual is {residual:,.2f}.", "amounts that are right"),
        (verbose.text + said(RISEN[0], RISEN[0].value), "features that are not far wrong"),
        (verbose.text + said(volume, volume.value + 0.02), "features that are not far wrong"),
        (f"{calm} {account}", "confident phrases"),
        (
            " ".join(one for one in kept if not unreconciled.search(one)) + " And so it is." * 20,
            "false amounts of cash, exposure or leverage",
        ),
    ):
        assert broken(replace(verbose, text=text)) == {rule}
    assert "tokens" in broken(replace(verbose, text=" ".join(verbose.text.split()[:150])))
    assert "broken rules" in broken(replace(verbose, actions=(Action(instrument=NAME, kind="buy", quantity=1.0),)))
    features = [one for one in kept if re.search(r"\d+m ", one)]
    fewer = " ".join(one for one in kept if one not in features[2:])
    assert "contradicted features" in broken(replace(verbose, text=fewer + " So be it." * 40))


# --- all of them ------------------------------------------------------------------------------------------------------


def test_what_cannot_be_settled_or_read_is_a_failed_check_and_a_kind_without_rules_unknown():
    for kind in ("cell_a", "cell_b"):
        wild = Composed(kind=kind, actions=(Action(instrument="Asset Z", kind="buy", quantity=1.0),), text="Buy it.")
        endless = replace(wild, actions=(Action(instrument=NAME, kind="buy", quantity=float("inf")),))
        assert broken(wild) == broken(endless) == {"orders that settle"}
    for text in ("", "  \n ", "a" * 20_001):
        assert broken(terse(text)) == {"characters"}
    with pytest.raises(UnknownNameError, match=r"kind of control cell 'ladder'"):
        admissible("ladder", terse(), CONTEXT)
    # A derived cell needs what it was made from.
    with pytest.raises(InputError, match=r"original: a paraphrase is held against the decision"):
        admissible("paraphrase", Composed(kind="paraphrase", actions=(), text="x"), CONTEXT)
    context, decision = honest_decision(1)
    with pytest.raises(InputError, match=r"tokens: the length that was asked for"):
        admissible("length_matched", Composed(kind="length_matched", actions=(), text="x", original=decision), context)


@pytest.mark.parametrize(
    "text", ["9" * 15_000, "-" * 15_000, "1,1" * 5_000, "Asset A " * 2_000, "\ue000" * 99, "1.1." * 4999]
)
def test_hostile_texts_are_read_to_the_end(text):
    assert "correct features" in broken(terse(text))


def test_checked_records_every_check():
    cell = checked(terse(), CONTEXT)
    assert [check.rule for check in cell.admissibility] == [
        "characters", "tokens", "hedging words", "correct features", "wrong numbers",
        "numbers that cannot be checked", "orders", "broken rules", DIRECTION,
    ]  # fmt: skip
    assert all(check.passed for check in cell.admissibility)


# --- reading ----------------------------------------------------------------------------------------------------------


def test_names_inside_names_horizons_and_codes_are_not_mistaken():
    longer = replace(CONTEXT, instruments=(Instrument(id="Asset A"), Instrument(id="Asset AB")))
    found = [one.instrument for one in mentions_in("Asset AB beats Asset A, Asset ABC", longer)]
    assert found == ["Asset AB", "Asset A"]
    for text in ("over 15 minutes", "a 60m range", "60-minute", "21 sessions", "ISO27001", "v1.2.3",
                 "the 15-minute one"):  # fmt: skip
        assert figures_in(text) == ()
    for quote in ("+0.80%", "-1,234.50", "0.91", "12", "33 %", "−0.5%"):  # a figure is written back as it stood
        (figure,) = figures_in(f"is {quote} now")
        assert figure.quote == quote
        assert figure.written(figure.value).replace("-", "−") == quote.replace("-", "−")


@pytest.mark.parametrize(
    "wording",
    [
        "{x}'s 60m return is {v}.",
        "{x} is {way} {size} over the hour.",
        "The 60-minute return of {x} stands at {v}.",
        "return_60m for {x}: {v}",
        "Over 60 minutes {x} returned {v}.",
        "{v} is the 60m return of {x}.",
    ],
)
def test_a_feature_is_read_in_many_wordings(wording):
    one = next(feature for feature in features_of(CONTEXT) if feature.field == "return_60m")
    shown = one.printed(one.value)
    way = "up" if one.value > 0 else "down"
    text = wording.format(x=one.instrument, v=shown, way=way, size=shown.lstrip("+-"))
    (found,) = statements_of(text, CONTEXT, (), None).features
    assert (found.instrument, found.about, found.right) == (one.instrument, "return_60m", True)


def test_generated_terse_cells_leave_no_number_unread():
    for seed in range(10):
        context = made_context(seed)
        cell = terse_right(context, np.random.default_rng(seed))
        said = statements_of(cell.text, context, cell.actions, book_of(context, cell.actions))
        assert said.unread == ()
        assert all(one.right for one in (*said.features, *said.amounts, *said.limits, *said.orders))
