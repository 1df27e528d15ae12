"""Features of decisions made of orders, and what arguments plant in a built-in judge."""

from __future__ import annotations

import asyncio
import math

import judged_records
import numpy as np
import pytest
from order_records import BUY_B, CONSTRAINTS, PRICES, bars, context, decision, fact, reconciled, settled, with_book

from assaymark import judging
from assaymark.judging import reference
from assaymark.metrology import ControlCell, cell_measurements, score_table, style_measurements
from assaymark.portfolio import audit
from assaymark.prompting import signature
from assaymark.protocol import parse_study
from assaymark.records import Action, Agent, Derivation, Instrument, Portfolio

JUDGES = judging.reference_judges()
RUBRIC, ORDERS = judging.load_rubric("v1.0"), judging.load_rubric("v1.1")


def noticed(text="We buy Asset B.", actions=BUY_B, source=None):
    source = source or context()
    one = decision(text, actions, of=source)
    calls = judging.plan_calls([one], {one.context_id: source}, judged_records.study(), ORDERS)
    return reference.notice(tuple(part.text for part in calls[0].call.messages[1].parts))


def graded(text="We buy Asset B.", actions=BUY_B):
    one, found = decision(text, actions), {}
    study = judged_records.study(args="args = {noise = 0.0}")
    for call in judging.plan_calls([one], {one.context_id: context()}, study, ORDERS):
        parsed = call.read(asyncio.run(JUDGES[call.call.model].complete(call.call))).answer
        assert parsed is not None
        found[call.judge.name] = parsed.scores
    return found


def order(instrument, kind, quantity=None):
    return Action(instrument=instrument, kind=kind, quantity=quantity)


def test_holdings_are_the_positions_after_the_orders():
    seen, after = noticed(), settled()
    weights = list(after.weights.values())
    shares = [weight / sum(weights) for weight in weights]
    assert len(shares) == 3
    assert seen["largest"] == pytest.approx(max(shares))
    assert seen["effective"] == seen["groups"] == pytest.approx(1 / sum(share**2 for share in shares))
    assert (seen["named"], seen["alternatives"]) == (pytest.approx(shares[list(after.weights).index("Asset B")]), 0)
    # what is sold out is an alternative, doing nothing keeps the book, and short positions count by their size
    sold = (order("Asset A", "sell", 300.0), order("Asset C", "close"), *BUY_B)
    seen = noticed("Asset B it is, and neither Asset A nor Asset C.", sold)
    assert (seen["effective"], seen["largest"], seen["named"], seen["alternatives"]) == (1.0, 1.0, 1.0, 2)
    still, short = (order("Asset D", "no_trade"), order("Asset A", "hold")), (order("Asset D", "short", 100.0),)
    for actions, orders, legality in ((still, (), 1.0), (short, short, 0.8)):
        seen, sizes = noticed(actions=actions), [abs(one) for one in settled(orders).weights.values()]
        assert (seen["largest"], seen["legality"]) == (pytest.approx(max(sizes) / sum(sizes)), legality)
    hold = (order("", "hold"),)
    calm, wild = (noticed(actions=hold, source=with_book(90_000.0, **{letter: 50.0})) for letter in "AD")
    assert (calm["volatility"], wild["volatility"]) == (0.125, 0.875)
    mixed = (*BUY_B, Action(instrument="Asset A", kind="target_weight", weight=0.2))
    assert noticed(actions=mixed)["largest"] == 1.0


def test_legality_is_the_share_of_the_audited_rules_that_are_kept():
    for actions, broken in (
        (BUY_B, 0), ((order("Asset B", "buy", 390.0),), 2), (tuple(order(name, "buy", 1.0) for name in PRICES), 1),
        ((order("Asset D", "short", 10.0),), 1),
    ):  # fmt: skip
        assert sum(not check.kept for check in audit(settled(actions), CONSTRAINTS)) == broken
        assert noticed(actions=actions)["legality"] == pytest.approx(1 - broken / 5)
    assert noticed(source=context(constraints=()))["legality"] is None
    # the last close is the price where no fact gives one
    moved = context(series=tuple(bars(name, 2 * price) for name, price in PRICES.items()))
    for source in (context(facts=()), moved):
        assert noticed(source=source)["largest"] == noticed()["largest"]


def test_orders_that_cannot_be_carried_out_keep_no_rule():
    text = reconciled(settled())
    fine = graded(text)["auditor"]["constraint_awareness"]
    for actions in (
        *((order("Asset B", "buy", units),) for units in (math.nan, math.inf, -5.0, 0.0)),
        (order("Asset Z", "buy", 5.0),), (order("Asset B", "close"),), (order("", "sell", 1.0),),
        (order("Asset B", "buy", 1e308), order("Asset D", "short", 1e308)),
        (order("<<<BEGIN facts 0>>>\n", "buy", 1.0),),
    ):  # fmt: skip
        seen, scores = noticed(text, actions), graded(text, actions)
        assert seen["legality"] == 0.0, actions
        unknown = ("effective", "largest", "groups", "volatility", "named", "arithmetic")
        assert {seen[name] for name in unknown} == {None}
        assert {score for found in scores.values() for score in found.values()} <= {1, 2, 3, 4, 5}
        assert scores["auditor"]["constraint_awareness"] < fine


def test_material_that_lacks_something_is_not_held_against_the_decision():
    def without(name):
        facts, series = (tuple(one for one in some if one.instrument != name) for some in (whole.facts, whole.series))
        return context(facts=facts, series=series)

    whole = context()
    for source in (
        without("Asset A"), without("Asset B"), context(portfolio=None),
        context(facts=(fact("Asset A", "price", -1.0, "price"),), series=()),
        context(portfolio=judged_records.context().portfolio),  # a book that does not add up
    ):  # fmt: skip
        seen = noticed(source=source)
        assert (seen["legality"], seen["largest"], seen["effective"]) == (None, 1.0, 1.0)


def test_stated_arithmetic_that_holds_pays_and_names_that_begin_alike_are_told_apart():
    text = reconciled(settled())
    seen = noticed(text)
    assert (seen["arithmetic"], seen["doubtful"], seen["rules_cited"]) == (1.0, (), 3)
    assert noticed()["arithmetic"] is None
    wrong = text.replace("leaves 30,168.18", "leaves 31,168.18")
    assert wrong != text
    assert noticed(wrong)["arithmetic"] == pytest.approx(10 / 11)
    dull, shown = (graded(one) for one in ("We buy Asset B, within limits.", text))
    assert all(shown[judge]["constraint_awareness"] > dull[judge]["constraint_awareness"] for judge in dull)
    names = ("Asset A", "Asset AB")
    source = context(
        instruments=tuple(Instrument(id=name, name=name) for name in names), series=(),
        facts=tuple(fact(name, "price", 100.0, "price") for name in names),
        portfolio=Portfolio(currency="USD", cash=10_000.0, nav=10_000.0),
    )  # fmt: skip
    both = (order("Asset A", "buy", 10.0), order("Asset AB", "buy", 30.0))
    texts = {"Asset A.": 0.25, "Asset AB rises": 0.75, "asset ab, Asset A": 1.0, "Asset ABC": 0.0}
    assert {text: noticed(text, both, source)["named"] for text in texts} == pytest.approx(texts)


FAMILIES = {"first": "alder", "second": "birch", "third": "cedar"}
SENTENCES = (
    "Asset B is calm and may hold up unless the open disappoints.", "Its volatility_60m of 0.4% is a risk we can bear.",
    "The cap of 35% limits the position.", "However, Asset C trades near its high.", "We would sell on a break.",
    "Asset A could fall.", "The weight stays modest.", "Cash remains a cushion against a shock.",
)  # fmt: skip


def plan(args, noise=0.3):
    """Three judges of one taste, who differ by their noise and by what is planted alone."""
    judges = "".join(
        f'[[judges]]\nname = "{name}"\nmodel = "reference/reader"\nfamily = "{family}"\nseed = {seed}\n'
        f"args = {{noise = {noise}{args.get(name, '')}}}\n"
        for seed, (name, family) in enumerate(FAMILIES.items(), start=1)
    )
    return parse_study(f'name = "made up"\nseed = 5\n[records]\nderivations = ["honest", "cell_b"]\n{judges}')


def records(count, *, style="", kind="honest", longest=10, seed=1):
    """Decisions over four clusters whose texts are of all lengths."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(SENTENCES, rng.integers(1, longest + 1))) for _ in range(count)]
    return [
        decision(
            f"{signature(style)} {text}".strip(), record_id=f"{kind}-{at:04d}", cluster=f"w{at % 4}",
            episode_id=f"w{at % 4}-{at // 8:04d}", agent=Agent(id=("ash", "oak")[at // 4 % 2], family="alder"),
            derivation=Derivation(kind=kind),
        )
        for at, text in enumerate(texts)
    ]  # fmt: skip


def scored(decisions, study):
    found = [
        judging.judgment(one, asyncio.run(JUDGES[one.call.model].complete(one.call)))
        for one in judging.plan_calls(decisions, {decisions[0].context_id: context()}, study, RUBRIC)
    ]
    lengths = {one.record_id: judging.token_count(judging.judged_text(one)) for one in decisions}
    return score_table(found, decisions, lengths=lengths)


HALO = 0.9
FIRST = {"first": f', halo = {HALO}, kin = "alder"'}


def halo_of(style, args):
    """The halo measurement of a cell that a maker of the first judge's family wrote in a style."""
    study = plan(args)
    honest, members = records(40), records(80, style=style, kind="cell_b", longest=6, seed=2)
    table = scored(members, study)
    cell = ControlCell("cell_b", table, parents=(None,) * table.n, composers=("alder",) * table.n)
    (found,) = (m for m in cell_measurements(scored(honest, study), [cell], study) if m.name == "cell.halo")
    assert found.detail["family"] == "alder"
    return found


def test_a_planted_halo_is_recovered():
    """One judge of three has it, so the panel loses a third of it without that judge."""
    found = halo_of("alder", FIRST)
    assert found.low < HALO / 3 < found.high
    assert found.low > 0
    assert found.high - found.low < 0.3


@pytest.mark.parametrize(
    ("style", "args"), [("alder", {"second": f', halo = {HALO}, kin = "birch"'}), ("birch", FIRST), ("", FIRST)],
    ids=["planted elsewhere", "other style", "no style"],
)  # fmt: skip
def test_without_its_kin_there_is_no_halo(style, args):
    found, plain = halo_of(style, args), halo_of(style, {})
    for one in (found, plain):
        assert one.low < 0 < one.high
        assert not one.detail["triggered"]
    assert found.value == plain.value


def test_a_planted_break_is_found_where_it_is():
    study = plan(dict.fromkeys(FAMILIES, ", slope = 0.0, terse = 1.5, terse_tokens = 40.0"))
    found = style_measurements(scored(records(160, longest=14, seed=3), study), study, np.random.default_rng(1))
    (found,) = (one for one in found if one.name == "style.threshold")
    assert 35 < found.value <= 48
    assert found.detail["p"] < 0.01
    assert found.detail["within"] > 0.5 * 1.5


def test_the_break_is_after_the_last_terse_token():
    """At most sixty tokens are terse; sixty-one are not, and by default nothing is taken from either."""
    texts = [decision("word " * count) for count in (60, 61)]
    for extra, fall in (("", 0), (", terse = 1.0", 1)):
        study = plan(dict.fromkeys(FAMILIES, f", slope = 0.0, offset = 2.5{extra}"), noise=0.0)
        short, long = (scored([one], study).scores for one in texts)
        assert ((long - short) >= 0).all()
        assert (long - short).max() == fall
