"""The section on agents: only measurements, never a ranking, and texts of records cannot break out of their place."""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import assay_runs as runs
import pytest
from page_words import words as plain
from read_blocks import blocks_of, rows, tables, words

from assaymark.market import CycleKey, ProbeResult
from assaymark.metrology import AgentBehaviour, conduct_measurements
from assaymark.protocol import AgentSpec, DateProbe, Substrate
from assaymark.records import (
    Action,
    Agent,
    CallFacts,
    Constraint,
    Context,
    Decision,
    Fact,
    Instrument,
    Portfolio,
    Provenance,
    Rationale,
    Series,
)  # fmt: skip
from assaymark.report import AssayRun, Group, Items, Mark, PlantedView, RunIndex, charts, render_pages
from assaymark.report import study as study_pages

NOON = datetime(2000, 1, 3, 12, tzinfo=UTC)
THEN = datetime(2016, 10, 19, 15, 48, tzinfo=UTC)
LIMITS = (
    Constraint(kind="max_weight", limit=0.4, unit="nav", scope="holding"),
    Constraint(kind="min_cash", limit=0.05, unit="nav"), Constraint(kind="max_leverage", limit=1.2, unit="multiple"),
    Constraint(kind="max_orders", limit=2, unit="count"), Constraint(kind="allow_short", limit=0, unit="count"),
    Constraint(kind="fee", limit=10, unit="bps", scope="order"),
)  # fmt: skip


def context(assets: int = 2, bars: int = 60) -> Context:
    """Instruments whose closes climb, a book of one of them, and every limit."""
    names = [f"Asset {chr(65 + at)}" for at in range(assets)]
    times = tuple(NOON - timedelta(minutes=bars - 1 - at) for at in range(bars))
    closes = [tuple(100 + 0.01 * at * (k + 1) + 0.07 * (at * 31 % 7) for at in range(bars)) for k in range(assets)]
    series = (Series(instrument=name, interval_s=60, times=times, close=own)
              for name, own in zip(names, closes, strict=True))  # fmt: skip
    price = {"field": "price", "value": 100.0, "unit": "price", "available_at": NOON}
    return Context(
        completeness="complete", cutoff=NOON, cutoff_source="neutral clock", prompt="Decide once.",
        instruments=tuple(Instrument(id=name, name=name, asset_class="equity") for name in names),
        series=tuple(series), facts=tuple(Fact(id=f"{name}.price", instrument=name, **price) for name in names),
        portfolio=Portfolio(currency="USD", cash=80_000.0, nav=100_000.0, positions={"Asset A": 200.0}),
        constraints=LIMITS,
    )  # fmt: skip


def decision(agent: str, *actions: Action, text: str = "Little moves.", **more) -> Decision:
    whole = {
        "record_id": f"r-{agent}", "episode_id": "e", "step": 1, "cluster": "calm", "decided_at": NOON,
        "agent": Agent(id=agent, family=f"house of {agent}"), "context_id": "0" * 64, "actions": actions,
        "rationales": (Rationale(text=text, kind="summary"),) if text else (), "format": "orders-v1",
        "provenance": Provenance(source="made up"), "call": CallFacts(),
    }  # fmt: skip
    return Decision(**{**whole, **more})


def buy(units: float, name: str = "Asset B") -> Action:
    return Action(instrument=name, kind="buy", quantity=units)


Example = tuple[CycleKey, Context, tuple[Decision, ...]]


def made(decisions: Sequence[Decision], shown: Context | None = None, **more) -> Example:
    key = CycleKey(
        "0" * 64, "calm", 1, "synthetic", THEN, THEN + timedelta(minutes=59),
        {"Asset A": "FENQUO", "Asset B": "ISFAM"}, ("KELRUV",),
    )  # fmt: skip
    return replace(key, **more), shown or context(), tuple(decisions)


PROBES = (ProbeResult("mechanical", 25, 0, 25, 24, 0.001, 1.0, 0.05, 0.5),)
REGIMES = (("calm", timedelta(days=40), ("KELRUV",)), ("storm", timedelta(0), ()))
CYCLES = tuple(
    CycleKey("0" * 64, name, at, "synthetic", THEN, THEN + over, {}, gone if at < 44 else ())
    for name, over, gone in REGIMES for at in range(50)
)  # fmt: skip


def conduct(name: str, *, kept: int, of: int = 10, seconds: float | None = 2.0, lost: int = 0) -> list[AgentBehaviour]:
    rows = [
        AgentBehaviour(
            agent=name, cluster=f"regime {at % 5}", usable=True, checks=(("min_cash", at < kept),), seconds=seconds,
            output_tokens=None if seconds is None else 300, tokens=80,
        )
        for at in range(of)
    ]  # fmt: skip
    return rows + [AgentBehaviour(agent=name, cluster="regime 0", usable=False, flags=("refused",))] * lost


def studied(names: Sequence[str] = ("birch", "alder"), *, planted: Sequence[str] = (), **more) -> AssayRun:
    """A run that made its own records. The first agent breaks limits, the second was never timed."""
    base = runs.minimal()
    agents = tuple(AgentSpec.model_construct(name=name, model="openai/one", family="fam") for name in names)
    substrate = Substrate(date_probe=DateProbe(model="reference/dater")).model_copy(
        update={"regimes": tuple(name for name, _, _ in REGIMES), "bars": 60}
    )
    study = base.study.model_copy(update={"agents": agents, "substrate": substrate})
    rows = [*conduct(names[0], kept=8, lost=2), *conduct(names[-1], kept=10, seconds=None)]
    decisions = [decision(name, buy(100.0)) for name in names]
    terse = runs.measured("terse.share", {"agent": names[0]}, 0.25, n=10, low=0.05, high=0.5, level=0.95)
    ours = (PlantedView(name=name, family="fam", question="Buys what fell.", planted=("keeps every limit",))
            for name in planted)  # fmt: skip
    found = (*base.measurements, *conduct_measurements(rows), terse)
    shown = {"cycles": CYCLES, "probes": PROBES, "example": made(decisions), **more}
    return replace(base, study=study, measurements=found, reference_agents=tuple(ours), **shown)


def section_of(run: AssayRun):
    found = study_pages.agents_section(RunIndex.of(run))
    assert found is not None
    return found


def rows_of_conduct(run: AssayRun) -> list[tuple[str, ...]]:
    """Agent, model, answered, kept, seconds, words, terse, flags."""
    return rows(tables(section_of(run))["Agent"])


def example_of(run: AssayRun) -> list[Group]:
    """The answers of the agents on the example cycle."""
    found = study_pages.example_page(RunIndex.of(run))
    assert found is not None
    return [one for one in found.sections[1].blocks if isinstance(one, Group)]


# --- the section ------------------------------------------------------------------------------------------------------


def test_a_run_of_imported_records_shows_none_of_it():
    pages = render_pages(runs.minimal())
    assert study_pages.agents_section(RunIndex.of(runs.minimal())) is None
    assert "cycle-example.html" not in pages
    assert 'id="agents' not in pages["agents.html"]
    assert "Built-in agents" not in pages["index.html"]


def test_the_section_says_what_was_shown_and_probed_and_the_example_where_it_is_from():
    pages = render_pages(studied())
    section, example = (plain(pages[page]) for page in ("agents.html", "cycle-example.html"))
    for part in (
        "100 cycles from two regimes of the built-in invented market", "60 one-minute bars",
        "19 October 2016 and 28 November 2016", "KELRUV in 44 of 50: did not trade then",
        "PASS. It dated 0 of 25 sanitised cycles (chance 0.10\xa0%, p = 1) and 24 of 25 with dates and names left in.",
        study_pages.CAUTION,
    ):  # fmt: skip
        assert part.replace("\xa0", " ") in section
    assert "Cut from bars of 19 October 2016, 15:48 to 16:47 UTC." in example
    assert "KELRUV did not trade then and is left out." in example
    assert "Real name: FENQUO" in example
    assert "cycle-example.html" not in (bare := render_pages(replace(studied(), example=None)))
    assert "cycle-example.html" not in bare["index.html"]


def test_rows_are_alphabetical_and_every_number_has_its_denominator():
    alder, birch = rows_of_conduct(studied())
    turned = rows_of_conduct(studied(("alder", "birch")))  # with better conduct nobody moves up
    assert [row[0].split()[0] for row in (alder, birch, *turned)] == ["alder", "birch"] * 2
    assert birch[2].startswith("83\xa0% 55\xa0% to 95\xa0%, over clusters")
    assert birch[2].endswith("n\xa0=\xa012")
    assert [birch[at].split()[0] for at in (3, 4, 6)] == ["80", "2.00", "25"]
    assert "300 output tokens" in birch[5]
    assert birch[-1] == "2 refused; 2 cash"
    assert alder[3].startswith("100\xa0%")
    assert "over clusters" not in alder[3]
    assert "output tokens not counted" in alder[5]
    assert (alder[4], *alder[6:]) == ("no timing: no usable decision has a time", "not measured", "none")


def test_without_measurements_the_table_has_no_number():
    run = studied()
    bare = replace(run, measurements=tuple(m for m in run.measurements if not m.name.startswith(("agent.", "terse"))))
    assert "The conduct of the agents was not measured." in words(section_of(bare))
    for row in rows_of_conduct(bare):
        assert not any(char.isdigit() for cell in row[2:7] for char in cell)


def test_a_lock_without_probes_one_that_failed_and_one_without_a_model_say_so():
    run = studied()
    none = section_of(replace(run, probes=()))
    assert "The lock holds no date-leakage check" in words(none)
    failed = section_of(replace(run, probes=(replace(PROBES[0], p=0.0),)))
    assert "FAIL" in words(failed)
    marks = [
        cell.name
        for one in blocks_of(failed) if isinstance(one, Items)
        for line in one.items if isinstance(line, tuple)
        for cell in line if isinstance(cell, Mark)
    ]  # fmt: skip
    assert marks == ["contradicted"]
    study = run.study.model_copy(
        update={"substrate": run.study.substrate.model_copy(update={"date_probe": DateProbe()})}
    )
    said = "The plan names no model for a date probe, so no model was asked."
    assert said in words(section_of(replace(run, study=study)))


@pytest.mark.parametrize(("planted", "wanted"), [
    ((), ""), (("alder",), "alder is a built-in rule with planted properties, no language model."),
    (("alder", "birch"), "Every agent is a built-in rule with planted properties; none is a language model."),
])  # fmt: skip
def test_built_in_agents_are_named_on_the_first_screen_and_described(planted, wanted):
    run = replace(studied(planted=planted), reference_panel=())
    made = render_pages(run)
    first = plain(made["index.html"])
    assert ("Built-in agents." in first) == bool(wanted)
    assert not wanted or wanted.split(" with ")[0] in first
    assert not wanted or wanted in plain(made["agents.html"])
    assert plain(made["agents.html"]).count("keeps every limit") == len(planted)


# --- one cycle --------------------------------------------------------------------------------------------------------


def test_the_example_shows_the_arithmetic_of_every_limit():
    (alder, _) = example_of(studied())
    # 100 units at 100 cost 10,000 and 10 in fees; the book is 200 and 100 units, and 69,990 in cash.
    said = words(alder)
    assert "Cash 80,000.00 less purchases 10,000.00 plus sales 0.00 less fees 10.00 leaves 69,990.00." in said
    assert "Exposure 30,000.00 over equity 99,990.00 is 30.0\xa0%." in said
    assert "Buy 100.0000 of Asset B at 100.0000, worth 10,000.00" in said
    assert rows(tables(alder)["Limit"]) == [
        ("No position above 40.0\xa0% of equity", "20.00\xa0%, Asset A", " kept"),
        ("Cash of at least 5.0\xa0% of equity", "70.00\xa0%", " kept"),
        ("Exposure of at most 1.20 times equity", "0.300", " kept"),
        ("At most two orders", "1", " kept"),
        ("No short positions", "none", " kept"),
    ]


def test_a_broken_limit_says_so():
    greedy = decision("alder", buy(780.0), Action(instrument="Asset A", kind="sell", quantity=250.0))
    run = replace(studied(), example=made([greedy]))
    page = render_pages(run)["cycle-example.html"]
    (part,) = example_of(run)
    assert [row[2].strip() for row in rows(tables(part)["Limit"])] == ["broken", "kept", "kept", "kept", "broken"]
    assert plain(page).count(" broken ") == 2


def test_no_answer_and_orders_that_cannot_be_settled_have_their_reason():
    refused = decision("alder", text="", flags=("refused",), missing=("the model refused",))
    strange = decision("birch", Action(instrument="Asset B", kind="close"))
    huge = decision("cedar", buy(1e308), buy(1e308))
    first, second, third = example_of(replace(studied(), example=made([refused, strange, huge])))
    assert "No usable answer (refused): the model refused" in words(first)
    assert tables(first) == {}
    assert "The orders cannot be settled" in words(second)
    assert "not held" in words(second)
    assert "The orders cannot be settled" in words(third)


def test_a_chart_has_its_ends_and_its_words():
    drawn = "".join(charts.price_chart((100.0, 100.4, 99.9), ("before", "<now>"), "p", 350.0)[0])
    assert all(part in drawn for part in ("100.40", "99.90", "&lt;now&gt;"))
    assert "".join(charts.price_chart((5.0, 5.0), ("a", "b"), "p", 350.0)[0]).count("5.00") == 1


# --- hostile and large ------------------------------------------------------------------------------------------------


def hostile() -> AssayRun:
    bad = f"ald{runs.CANARY}"
    worse = "'}--><svg onload=alert(1)>\u202e{{7*7}}"
    run = studied((bad, worse), planted=(bad,))
    text = f"{runs.CANARY}\n\n</main></body>\ud800\x1b[31m{{{{ 7*7 }}}} <!-- {worse}"
    cycle = made(
        [decision(bad, buy(10.0), text=text), decision(worse, text="", flags=(runs.CANARY,), missing=(runs.CANARY,))],
        replace(context(), prompt=runs.CANARY, constraints=(Constraint(kind="<b>", limit=1, unit="<i>"),)),
        regime=runs.CANARY, names={"Asset A": runs.CANARY}, left_out=(runs.CANARY,),
    )  # fmt: skip
    cycles = tuple(replace(one, regime=runs.CANARY, left_out=(runs.CANARY,)) for one in CYCLES[:3])
    probes = (replace(PROBES[0], probe=runs.CANARY),)
    planted = (PlantedView(name=bad, family=runs.CANARY, question=runs.CANARY, planted=(runs.CANARY,)),)
    substrate = run.study.substrate.model_copy(update={"source": runs.CANARY, "regimes": (runs.CANARY,)})
    study = run.study.model_copy(update={"substrate": substrate})
    return replace(run, study=study, cycles=cycles, probes=probes, example=cycle, reference_agents=planted)


def test_a_long_study_keeps_the_budget_of_its_pages():
    rng = random.Random(1)
    names = [f"agent {at:02d}" for at in range(40)]
    text = " ".join(f"{rng.random():.6f} {chr(rng.randint(0x4E00, 0x9FFF))}<&" for _ in range(4000))
    long = [decision(name, *[buy(1.0)] * 40, text=text) for name in names]
    cycle = made(long, context(26, 390))
    pages = render_pages(replace(studied(names), example=cycle))
    for path in ("index.html", "agents.html", "cycle-example.html"):
        assert len(pages[path].encode()) <= 200_000
        assert len(gzip.compress(pages[path].encode())) <= 45_000
    assert "28 more agents are in the records alone." in plain(pages["cycle-example.html"])
    assert "14 more instruments are not drawn." in plain(pages["cycle-example.html"])
    assert "The text goes on in the records." in pages["cycle-example.html"]


def test_the_order_of_the_records_changes_no_byte():
    run = studied(("cedar", "alder", "birch"))
    assert run.example is not None
    other = replace(run, example=(*run.example[:2], run.example[2][::-1]))
    other = replace(other, measurements=other.measurements[::-1], study=run.study.model_copy(
        update={"agents": run.study.agents[::-1]}
    ))  # fmt: skip
    first, second = render_pages(run), render_pages(other)
    assert first["cycle-example.html"] == second["cycle-example.html"]
    assert first["agents.html"] == second["agents.html"]
