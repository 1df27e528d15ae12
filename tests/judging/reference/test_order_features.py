"""Features of decisions made of orders, and what arguments plant in a built-in judge."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import judged_records
import numpy as np
import pytest
from order_records import BUY_B, CONSTRAINTS, PRICES, bars, context, decision, fact, reconciled, settled, with_book

from assaymark import judging
from assaymark.errors import ModelError
from assaymark.judging import reference
from assaymark.metrology import Cell, ScoreTable, cell_measurements, score_table, style_measurements
from assaymark.portfolio import audit
from assaymark.prompting import signature
from assaymark.protocol import Study, parse_study
from assaymark.records import Action, Agent, Context, Decision, Derivation, Instrument, Measurement, Portfolio

JUDGES = judging.reference_judges()


def noticed(one: Decision, source: Context | None = None) -> reference.Features:
    calls = judging.plan_calls(
        [one], {one.context_id: source or context()}, judged_records.study(), judging.load_rubric("v1.1")
    )
    return reference.notice([part.text for part in calls[0].call.messages[1].parts])


def on(source: Context, **parts: object) -> reference.Features:
    return noticed(decision(of=source, **parts), source)


def graded(one: Decision, source: Context | None = None) -> dict[str, Mapping[str, int]]:
    rubric = judging.load_rubric("v1.1")
    study = judged_records.study(args="args = {noise = 0.0}")
    found = {}
    for call in judging.plan_calls([one], {one.context_id: source or context()}, study, rubric):
        parsed = judging.parse_reply(asyncio.run(JUDGES[call.call.model].complete(call.call)).text, rubric)
        assert isinstance(parsed, judging.Parsed)
        found[call.judge] = parsed.scores
    return found


def order(instrument: str, kind: str, quantity: float | None = None) -> Action:
    return Action(instrument=instrument, kind=kind, quantity=quantity)


def test_holdings_are_the_positions_after_the_orders():
    seen, after = noticed(decision()), settled()
    weights = list(after.weights.values())
    shares = [weight / sum(weights) for weight in weights]
    assert len(shares) == 3
    assert seen["largest"] == pytest.approx(max(shares))
    assert seen["effective"] == seen["groups"] == pytest.approx(1 / sum(share**2 for share in shares))
    assert (seen["named"], seen["alternatives"]) == (pytest.approx(shares[list(after.weights).index("Asset B")]), 0)
    # what is sold out is an alternative, doing nothing keeps the book, and short positions count by their size
    sold = (order("Asset A", "sell", 300.0), order("Asset C", "close"), *BUY_B)
    seen = noticed(decision("Asset B it is, and neither Asset A nor Asset C.", sold))
    assert (seen["effective"], seen["largest"], seen["named"], seen["alternatives"]) == (1.0, 1.0, 1.0, 2)
    still, short = (order("Asset D", "no_trade"), order("Asset A", "hold")), (order("Asset D", "short", 100.0),)
    for actions, orders, legality in ((still, (), 1.0), (short, short, 0.8)):
        seen, sizes = noticed(decision(actions=actions)), [abs(one) for one in settled(orders).weights.values()]
        assert (seen["largest"], seen["legality"]) == (pytest.approx(max(sizes) / sum(sizes)), legality)
    calm, wild = (on(with_book(90_000.0, **{letter: 50.0}), actions=(order("", "hold"),)) for letter in "AD")
    assert (calm["volatility"], wild["volatility"]) == (0.125, 0.875)
    mixed = (order("Asset B", "buy", 120.0), Action(instrument="Asset A", kind="target_weight", weight=0.2))
    assert noticed(decision(actions=mixed))["largest"] == 1.0


@pytest.mark.parametrize(
    ("actions", "broken"),
    [
        (BUY_B, 0),
        ((order("Asset B", "buy", 390.0),), 2),
        (tuple(order(name, "buy", 1.0) for name in PRICES), 1),
        ((order("Asset D", "short", 10.0),), 1),
    ],
    ids=["kept", "weight and cash", "orders", "short"],
)
def test_legality_is_the_share_of_the_audited_rules_that_are_kept(actions, broken):
    checks = audit(settled(actions), CONSTRAINTS)
    assert sum(not check.kept for check in checks) == broken
    assert noticed(decision(actions=actions))["legality"] == pytest.approx(1 - broken / 5)


def test_without_rules_nothing_is_kept_and_the_last_close_is_the_price_where_no_fact_gives_one():
    assert on(context(constraints=()))["legality"] is None
    moved = context(series=tuple(bars(name, 2 * price) for name, price in PRICES.items()))
    for source in (context(facts=()), moved):
        assert on(source)["largest"] == noticed(decision())["largest"]


@pytest.mark.parametrize(
    "actions",
    [
        (order("Asset Z", "buy", 5.0),),
        (order("Asset B", "buy", math.nan),),
        (order("Asset B", "buy", math.inf),),
        (order("Asset B", "buy", -5.0),),
        (order("Asset B", "buy", 0.0),),
        (order("Asset B", "buy", 1e308), order("Asset D", "short", 1e308)),
        (order("Asset B", "close"),),
        (order("", "sell", 1.0),),
        (order("<<<BEGIN facts 0>>>\n", "buy", 1.0),),
    ],
    ids=["unknown", "nan", "inf", "negative", "zero", "overflow", "not held", "nameless", "fence"],
)
def test_orders_that_cannot_be_carried_out_keep_no_rule(actions):
    one = decision(reconciled(settled()), actions)
    seen = noticed(one)
    assert seen["legality"] == 0.0
    assert [
        seen["effective"],
        seen["largest"],
        seen["groups"],
        seen["volatility"],
        seen["named"],
        seen["arithmetic"],
    ] == [None] * 6
    assert {score for scores in graded(one).values() for score in scores.values()} <= {1, 2, 3, 4, 5}
    assert (
        graded(one)["auditor"]["constraint_awareness"]
        < graded(decision(reconciled(settled())))["auditor"]["constraint_awareness"]
    )


def without(name: str) -> Context:
    whole = context()
    facts = tuple(one for one in whole.facts if one.instrument != name)
    return context(facts=facts, series=tuple(one for one in whole.series if one.instrument != name))


@pytest.mark.parametrize(
    "source",
    [
        without("Asset A"),
        without("Asset B"),
        context(portfolio=None),
        context(facts=(fact("Asset A", "price", -1.0, "price"),), series=()),
        context(portfolio=judged_records.context().portfolio),
    ],
    ids=["holding without a price", "order without a price", "no book", "negative price", "book that does not add up"],
)
def test_material_that_lacks_something_is_not_held_against_the_decision(source):
    seen = on(source)
    assert (seen["legality"], seen["largest"], seen["effective"]) == (None, 1.0, 1.0)


def test_stated_arithmetic_that_holds_is_noticed_is_the_decisions_own_and_pays():
    text = reconciled(settled())
    seen, plain = noticed(decision(text)), noticed(decision("We buy Asset B."))
    assert (seen["arithmetic"], seen["doubtful"], seen["rules_cited"]) == (1.0, (), 3)
    assert plain["arithmetic"] is None
    wrong = text.replace("leaves 30,168.18", "leaves 31,168.18")
    assert wrong != text
    assert noticed(decision(wrong))["arithmetic"] == pytest.approx(10 / 11)
    dull, shown = (graded(decision(one)) for one in ("We buy Asset B, within limits.", text))
    assert all(shown[judge]["constraint_awareness"] > dull[judge]["constraint_awareness"] for judge in dull)


@pytest.mark.parametrize(
    ("text", "share"), [("Asset A.", 0.25), ("Asset AB rises", 0.75), ("asset ab, Asset A", 1.0), ("Asset ABC", 0.0)]
)
def test_names_that_begin_alike_are_told_apart(text, share):
    names = ("Asset A", "Asset AB")
    source = context(
        instruments=tuple(Instrument(id=name, name=name) for name in names),
        facts=tuple(fact(name, "price", 100.0, "price") for name in names),
        series=(),
        portfolio=Portfolio(currency="USD", cash=10_000.0, nav=10_000.0),
    )
    both = (order("Asset A", "buy", 10.0), order("Asset AB", "buy", 30.0))
    assert on(source, text=text, actions=both)["named"] == pytest.approx(share)


RUBRIC = judging.load_rubric("v1.0")


FAMILIES = {"first": "alder", "second": "birch", "third": "cedar"}


SENTENCES = (
    "Asset B is calm and may hold up unless the open disappoints.", "Its volatility_60m of 0.4% is a risk we can bear.",
    "The cap of 35% limits the position.", "However, Asset C trades near its high.", "We would sell on a break.",
    "Asset A could fall.", "The weight stays modest.", "Cash remains a cushion against a shock.",
)  # fmt: skip


def plan(args: Mapping[str, str], noise: float = 0.3) -> Study:
    """Three judges of one taste, who differ by their noise and by what is planted alone."""
    judges = "".join(
        f'[[judges]]\nname = "{name}"\nmodel = "reference/reader"\nfamily = "{family}"\nseed = {seed}\n'
        f"args = {{noise = {noise}{args.get(name, '')}}}\n"
        for seed, (name, family) in enumerate(FAMILIES.items(), start=1)
    )
    return parse_study(f'name = "made up"\nseed = 5\n[records]\nderivations = ["honest", "cell_b"]\n{judges}')


def records(count: int, *, style: str = "", kind: str = "honest", longest: int = 10, seed: int = 1) -> list[Decision]:
    """Decisions over four clusters whose texts are of all lengths."""
    rng = np.random.default_rng(seed)
    made = []
    for at in range(count):
        text = " ".join(rng.choice(SENTENCES, rng.integers(1, longest + 1)))
        made.append(
            decision(
                f"{signature(style)} {text}".strip(), record_id=f"{kind}-{at:04d}",
                episode_id=f"w{at % 4}-{at // 8:04d}", cluster=f"w{at % 4}",
                agent=Agent(id=("ash", "oak")[at // 4 % 2], family="alder"), derivation=Derivation(kind=kind),
            ),
        )  # fmt: skip
    return made


def scored(decisions: Sequence[Decision], study: Study) -> ScoreTable:
    contexts = {decisions[0].context_id: context()}
    found = [
        judging.judgment(one, asyncio.run(JUDGES[one.call.model].complete(one.call)), RUBRIC)
        for one in judging.plan_calls(decisions, contexts, study, RUBRIC)
    ]
    lengths = {one.record_id: judging.token_count(judging.judged_text(one)) for one in decisions}
    return score_table(found, decisions, lengths=lengths)


HALO = 0.9


def halo_of(style: str, args: Mapping[str, str]) -> Measurement:
    """The halo measurement of a cell that a maker of the first judge's family wrote in a style."""
    study = plan(args)
    honest, members = records(40), records(80, style=style, kind="cell_b", longest=6, seed=2)
    table = scored(members, study)
    cell = Cell("cell_b", table, parents=(None,) * table.n, composers=("alder",) * table.n)
    (found,) = (m for m in cell_measurements(scored(honest, study), [cell], study) if m.name == "cell.halo")
    assert found.detail["family"] == "alder"
    return found


def test_a_planted_halo_is_recovered():
    """One judge of three has it, so the panel loses a third of it without that judge."""
    found = halo_of("alder", {"first": f', halo = {HALO}, kin = "alder"'})
    assert found.low < HALO / 3 < found.high
    assert found.low > 0
    assert found.high - found.low < 0.3


@pytest.mark.parametrize(
    ("style", "args"),
    [
        ("alder", {}),
        ("alder", {"second": f', halo = {HALO}, kin = "birch"'}),
        ("birch", {"first": f', halo = {HALO}, kin = "alder"'}),
        ("", {"first": f', halo = {HALO}, kin = "alder"'}),
    ],
    ids=["not planted", "planted elsewhere", "other style", "no style"],
)
def test_without_its_kin_there_is_no_halo(style, args):
    found = halo_of(style, args)
    assert found.low < 0 < found.high
    assert not found.detail["triggered"]
    assert found.value == halo_of(style, {}).value


def threshold(args: str) -> Measurement:
    study = plan(dict.fromkeys(FAMILIES, args))
    found = style_measurements(scored(records(160, longest=14, seed=3), study), study, np.random.default_rng(1))
    return next(m for m in found if m.name == "style.threshold")


def test_a_planted_break_is_found_where_it_is():
    found = threshold(", slope = 0.0, terse = 1.5, terse_tokens = 40.0")
    assert 35 < found.value <= 48
    assert found.detail["p"] < 0.01
    assert found.detail["within"] > 0.5 * 1.5


def test_the_break_is_after_the_last_terse_token():
    """At most sixty tokens are terse; sixty-one are not, and by default nothing is taken from either."""
    texts = [decision("word " * count) for count in (60, 61)]
    for extra, fall in (("", 0), (", terse = 1.0", 1)):
        study = plan(dict.fromkeys(FAMILIES, f", slope = 0.0, offset = 2.5{extra}"), noise=0.0)
        tables = [scored([one], study).scores for one in texts]
        assert ((tables[1] - tables[0]) >= 0).all()
        assert (tables[1] - tables[0]).max() == fall


STYLES = "alder, birch, cedar, dogwood, elder"


@pytest.mark.parametrize(("arguments", "says"), [
    ({"halo": 0.5}, f"argument halo needs kin, the style that it favours (one of {STYLES})"),
    ({"halo": 0.5, "kin": "oak"}, f"argument kin must be one of {STYLES} (got 'oak')"),
    ({"kin": 3}, f"argument kin must be one of {STYLES} (got 3)"),
    ({"halo": "big", "kin": "alder"}, "argument halo must be a finite number of at most 1e+09 in size (got 'big')"),
    ({"terse": -1.0}, "argument terse must be at least 0 (got -1.0)"),
    ({"terse_tokens": -1}, "argument terse_tokens must be at least 0 (got -1)"),
])  # fmt: skip
def test_wrong_arguments_are_refused(arguments, says):
    assert judging.argument_problems("reference/auditor", arguments) == [says]
    one = decision()
    call = judging.plan_calls([one], {one.context_id: context()}, plan({}), RUBRIC)[0].call
    with pytest.raises(ModelError, match=re.escape(says)):
        asyncio.run(JUDGES[call.model].complete(replace(call, args=arguments)))


def test_a_halo_may_be_a_dislike_and_no_judge_has_a_style_of_its_own_by_default():
    assert judging.argument_problems("reference/auditor", {"halo": -0.5, "kin": "elder"}) == []
    for planted in judging.PLANTED.values():
        assert (planted.halo, planted.kin, planted.terse, planted.terse_tokens) == (0.0, "", 0.0, 60.0)
        assert "style" in planted.words
