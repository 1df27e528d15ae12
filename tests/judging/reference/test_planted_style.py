"""A halo and a break at terse texts, planted in reference judges and found by the measurements made for them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from order_records import context, decision

from assaymark.errors import ModelError
from assaymark.judging import (
    PLANTED,
    argument_problems,
    judged_text,
    judgment,
    load_rubric,
    plan_calls,
    reference_judges,
    token_count,
)
from assaymark.metrology import ScoreTable, cell_measurements, score_table, style_measurements
from assaymark.metrology.controls import Cell
from assaymark.prompting.texts import signature
from assaymark.protocol import Study, parse_study
from assaymark.records import Agent, Decision, Derivation, Measurement

RUBRIC = load_rubric("v1.0")
JUDGES = reference_judges()
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
                f"{signature(style)} {text}".strip(),
                record_id=f"{kind}-{at:04d}",
                episode_id=f"w{at % 4}-{at // 8:04d}",
                cluster=f"w{at % 4}",
                agent=Agent(id=("ash", "oak")[at // 4 % 2], family="alder"),
                derivation=Derivation(kind=kind),
            )
        )
    return made


def scored(decisions: Sequence[Decision], study: Study) -> ScoreTable:
    contexts = {decisions[0].context_id: context()}
    found = [
        judgment(one, asyncio.run(JUDGES[one.call.model].complete(one.call)), RUBRIC)
        for one in plan_calls(decisions, contexts, study, RUBRIC)
    ]
    lengths = {one.record_id: token_count(judged_text(one)) for one in decisions}
    return score_table(found, decisions, lengths=lengths)


# --- the halo ---------------------------------------------------------------------------------------------------------

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


# --- the break at terse texts -----------------------------------------------------------------------------------------


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


# --- arguments --------------------------------------------------------------------------------------------------------

STYLES = "alder, birch, cedar, dogwood, elder"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"halo": 0.5}, f"argument halo needs kin, the style that it favours (one of {STYLES})"),
        ({"halo": 0.5, "kin": "oak"}, f"argument kin must be one of {STYLES} (got 'oak')"),
        ({"kin": 3}, f"argument kin must be one of {STYLES} (got 3)"),
        ({"halo": "big", "kin": "alder"}, "argument halo must be a finite number of at most 1e+09 in size (got 'big')"),
        ({"terse": -1.0}, "argument terse must be at least 0 (got -1.0)"),
        ({"terse_tokens": -1}, "argument terse_tokens must be at least 0 (got -1)"),
    ],
)
def test_wrong_arguments_are_refused(arguments, says):
    assert argument_problems("reference/auditor", arguments) == [says]
    one = decision()
    call = plan_calls([one], {one.context_id: context()}, plan({}), RUBRIC)[0].call
    with pytest.raises(ModelError, match=re.escape(says)):
        asyncio.run(JUDGES[call.model].complete(replace(call, args=arguments)))


def test_a_halo_may_be_a_dislike():
    assert argument_problems("reference/auditor", {"halo": -0.5, "kin": "elder"}) == []


def test_no_judge_has_a_style_of_its_own_by_default():
    for planted in PLANTED.values():
        assert (planted.halo, planted.kin, planted.terse, planted.terse_tokens) == (0.0, "", 0.0, 60.0)
        assert "style" in planted.words
