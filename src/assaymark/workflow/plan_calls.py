"""`assaymark plan-calls`: simulate which extra judge calls most likely raise a claim by one level, and a D-study."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from assaymark.claims import decide_claims, publication_level, suppressed_phrase
from assaymark.engine.compute import spawned, usable_cores
from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.metrology import OrderPlan, OrderTests, analyse_orders, dimensions_claimed, reliability, wilson
from assaymark.metrology import design as designs
from assaymark.metrology.comparisons import Comparisons
from assaymark.metrology.kappa import gated
from assaymark.metrology.measure_people import most_needed
from assaymark.metrology.orders import LEVEL_SLACK
from assaymark.metrology.scores import ScoreTable
from assaymark.metrology.simulation import (
    Truth,
    drawn_truth,
    fitted_truth,
    joined,
    simulate_scores,
    with_judge,
    with_trials,
)
from assaymark.notebook import Part, Result
from assaymark.protocol import JudgeSpec, Study
from assaymark.records import AGGREGATE, RANK, AdversarialStatus, Claim, Level, Measurement, Verdict, as_object, weakest
from assaymark.text import clean, count_of
from assaymark.workflow.progress import note


@dataclass(frozen=True, slots=True)
class ClaimDesign:
    """A D-study of one claim: the cheapest extension of the design that has the plan's power for its difference."""

    state: str
    gap: float | None = None
    level: float | None = None
    power: float | None = None
    components: Mapping[str, float] = field(default_factory=dict)
    trials_known: bool = False
    now: Mapping[str, int] = field(default_factory=dict)
    most_trials: int = 1
    power_now: float | None = None
    variance: float | None = None
    per_call: Mapping[str, float | None] = field(default_factory=dict)
    cheapest: designs.DStudy | None = None
    more_calls: int | None = None
    labels: int | None = None
    labels_assumed: bool = True
    prices: Mapping[str, float] = field(default_factory=dict)


PRICES: Final[Mapping[str, float]] = {"record": 0.0, "call": 1.0}
"""Default prices, by which a cost is a number of judge calls; ``human`` would be the price of a grade by a person."""


def claim_design(
    table: ScoreTable, study: Study, components: designs.Components, trials: Sequence[int], claim: Claim,
    measurements: Sequence[Measurement], effect: float | None = None, prices: Mapping[str, float] = PRICES,
) -> ClaimDesign:  # fmt: skip
    """Find the cheapest extension of the design that detects the smallest difference behind a claim, or an ``effect``;
    with a price of human grades, also the cheapest one that people confirm. ``trials`` are those of each judge."""
    if len(set(table.families)) < 2:
        return ClaimDesign("one judge family, needs two")
    comparisons = Comparisons.of_table(table, study)
    scale = comparisons.names.index(claim.dimension)
    estimated, state = None, "no two agents share two clusters that all judges scored"
    with suppress(NotMeasurableError):
        liking = np.array([reliability.judge_agent_variance(means) for means in comparisons.judge_means])
        estimated = reliability.contrast_components(comparisons.cells, comparisons.cluster, liking)
    # The smallest difference behind the claim, in its direction; None if one is missing or not above 0.
    high, *low = claim.subjects
    gaps = [
        item.value if item.labels["high"] == high and item.value is not None and item.value > 0 else None
        for item in measurements
        if item.name == "contrast"
        and item.labels["dimension"] == claim.dimension
        and {high, *low} <= {item.labels["high"], item.labels["low"]}
    ]
    positive = [size for size in gaps if size is not None]
    target = effect or (min(positive) if positive and len(positive) == len(gaps) else None)
    if estimated is None or math.isnan(estimated[0]["residual"][scale]) or target is None:
        if estimated is not None:
            state = "one cycle in each cluster, needs two" if target is not None else "these records show no such gap"
        return ClaimDesign(state)
    # The level of one contrast: on the overall score that of a leader, or of a single pair; on a dimension that of the
    # first step over all pairs of all claimed dimensions. (Where all pairs of the overall score are published it is
    # higher, so the design found here suffices.)
    agents, several = len(comparisons.agents), len(comparisons.names) > 2
    level = study.inference.level_of(claim.dimension, several and dimensions_claimed(study))
    if several and claim.dimension != AGGREGATE:
        claimed = set(study.claims.dimensions or comparisons.names) - {AGGREGATE}
        level /= len(claimed) * math.comb(agents, 2)
    else:
        level = designs.detectable_levels(agents, level)[len(claim.subjects) != 1]
    v = {part: float(estimated[0][part][scale]) for part in reliability.PARTS if part != "trial"}
    noise = [components.judge("trial", judge).variance for judge in table.judges]
    known = np.array([variance or 0.0 for variance in noise])
    trial, of_means = float(known.mean()), float((known / trials).mean())
    v |= {"disagreement": max(0.0, v["disagreement"] - of_means), "trial": trial}
    now = {"G": round(estimated[2]), "C": max(1, round(estimated[3])), "J": len(table.judges), "T": min(trials)}
    random, power = study.claims.judges == "any", study.inference.mde_power
    price = {**PRICES, **prices}
    most = max(designs.MOST_CLUSTERS, now["G"])
    best = designs.dstudy(v, target, price, agents, random, alpha=level, power=power, least=now, most_clusters=most,
                              human_alpha=study.inference.alpha)  # fmt: skip
    pairs = [(high, other) for other in low or comparisons.agents if other != high]
    labels, spread = most_needed(comparisons, scale, pairs, target, measurements, study.inference.alpha, power)
    made = 0 if best is None else now["G"] * now["C"] * sum(min(n, best.T) for n in trials)
    calls = None if best is None else agents * (best.G * best.C * best.J * best.T - made)
    return ClaimDesign(
        "ok", target, level, power, v, trials_known=any(variance is not None for variance in noise), now=now,
        most_trials=max(trials),
        power_now=designs.design_power(v, target, level, now, random),
        variance=reliability.dstudy_variance(v, **now, random=random),
        per_call=designs.variance_per_cost(v, agents, dict(PRICES), random, **now), cheapest=best, more_calls=calls,
        labels=labels, labels_assumed=spread is None or spread.assumed, prices=price,
    )  # fmt: skip


def design_lines(design: ClaimDesign, budget: int | None, *, withheld: bool) -> Iterator[str]:
    """Yield the D-study in lines of at most 80 characters; a suppressed difference is not quantified."""
    if design.state != "ok":
        yield f"D-study: not computed: {design.state}."
        return
    difference = "the gap" if withheld else f"a gap of {design.gap:.2f}"
    yield f"D-study of this run: {difference}, tested at level {design.level:.2g}."
    yield f"  Now: {_size_words(design.now, design.most_trials)}; power {design.power_now:.2f}."
    basis = "assuming r = .6 with the judges" if design.labels_assumed else "as measured"
    if design.labels is None:
        yield f"  No number of labels confirms it ({basis})."
    else:
        yield f"  People confirm it on {design.labels} labelled cycles ({basis})."
    if (best := design.cheapest) is None:
        judges, trials, cycles = designs.MOST_JUDGES, designs.MOST_TRIALS, designs.MOST_CYCLES
        most = f"{judges} judges, {trials} trials, {cycles} cycles, {designs.MOST_CLUSTERS} clusters"
        yield f"  No design up to {most} has power {design.power:g}."
    elif not design.more_calls:
        yield f"  That has power {design.power:g} for this gap: more calls are not what is missing."
    else:
        within = "" if budget is None or design.more_calls <= budget else f", beyond the budget of {budget}"
        yield f"  Cheapest with power {design.power:g}: {design.more_calls} more calls{within}:"
        yield f"    {_size_words({'G': best.G, 'C': best.C, 'J': best.J, 'T': best.T})}; power {best.power:.2f}."
    if (best := design.cheapest) is not None and best.labelled is not None:
        yield f"    {best.labelled} of {best.G * best.C} cycles graded by people; cost {best.cost:,.2f} in all."
    yield f"  Variance of the gap: {design.variance:.2g}. One more call spent on each takes off"
    parts = {"judges": "J", "trials": "T", "cycles": "C", "clusters": "G"}
    bought = [
        f"{name} {-(design.per_call[key] or 0.0):.1e}"
        for name, key in parts.items()
        if name != "trials" or design.trials_known
    ]
    yield f"    {', '.join(bought)}{'' if design.trials_known else '; trials not measured'}."


def _size_words(size: Mapping[str, int], most_trials: int = 0) -> str:
    names = {"J": "judges", "T": "trials", "C": "cycles", "G": "clusters"}
    judges, trials, cycles, clusters = (count_of(size[key], name) for key, name in names.items())
    trials = f"{size['T']} to {most_trials} trials" if most_trials > size["T"] else trials
    return f"{judges}, {trials}, {cycles} in each of {clusters}"


STUDIES: Final = 200
"""Simulated studies for each option: a share of one half has a 95 % interval of about 7 points either way."""
_LARGE, _FEWEST = 20_000, 20  # an option of more calls is simulated less often, but not less than this

CELL_TEXTS: Final = 100
"""Texts of the control cells A and B together (ValueBlindBench section 3.5: fifty each)."""

NEXT: Final[Mapping[Level, Level]] = {"no-claim": "qualified", "qualified": "headline"}

_FAILED: Final = "No calls can help: the panel failed a control cell under this rubric."
_NO_HELP: Final[Mapping[tuple[Level, AdversarialStatus], str]] = {
    ("no-claim", "contaminated"): _FAILED, ("qualified", "contaminated"): _FAILED,
    # A claim below qualified may still reach it while the rubric is construct-sensitive.
    ("qualified", "construct-sensitive"): "No such calls can help: the rubric rewards length; a length-matched cell "
    "might.",
}  # fmt: skip

MOST_TRIALS: Final = 50
"""The maximum number of trials of one judge, as in the study file."""

ASSUMPTIONS: Final = (
    "The records that are there stay; new scores are drawn from the variance components of this panel.",
    "Levels of agents are as uncertain as these records leave them, and pulled together by the part that is chance.",
    "New cycles come in new clusters of the usual size, with the usual agents and judges.",
    "Another family is a judge as noisy as the average of this panel, with likings of its own.",
    "Where control cells are part of an option, the panel passes them; nothing in these records says that it will.",
    "No held-out judge is asked: a ranking that leaving out a judge family reverses stays unsupported.",
    "Simulated texts have no length, so length caps no claim there.",
    "The extended study is locked again before the calls are made.",
    "A claim that is tested on every extension until it passes is tested at more than its level.",
)
"""The assumptions of simulated studies, one sentence each."""


@dataclass(frozen=True, slots=True)
class CallOption:
    """One way to spend the budget: its name, a description, and the number of judge calls."""

    name: str
    words: str
    calls: int
    state: str = "ok"
    cells: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A claim below headline: its present level, the next one, and in ``state`` "ok" or why no calls can help."""

    claim: Claim
    level: Level
    aim: Level
    state: str = "ok"


@dataclass(frozen=True, slots=True)
class Prospect:
    """Simulated studies in which a claim reached its next level under an option, as a count with a Wilson interval."""

    reached: int
    studies: int
    low: float
    high: float

    @property
    def probability(self) -> float:
        """The share of simulated studies in which the level was reached."""
        return self.reached / self.studies


@dataclass(frozen=True, slots=True, repr=False)
class CallPlan(Result):
    """The simulated effect of each option on each claim, the recommended option, and the D-study."""

    budget: int | None
    seed: int
    focus: Target | None
    targets: tuple[Target, ...]
    options: tuple[CallOption, ...]
    prospects: Mapping[tuple[str, str], Prospect]
    rising: Mapping[str, float]
    design: ClaimDesign | None = None
    assumptions: tuple[str, ...] = ASSUMPTIONS

    def _parts(self) -> Iterator[Part]:
        yield from map(clean, plan_calls_lines(self))

    @property
    def document(self) -> Mapping[str, object]:
        """The plan as JSON, with the prospects as a list and the name of the recommended option."""
        best, fields = self.recommended(), as_object(self) or {}
        prospects = [
            {"claim": claim, "option": option, "found": prospect}
            for (claim, option), prospect in self.prospects.items()
        ]
        return fields | {"recommended": None if best is None else best.name, "prospects": prospects}

    def recommended(self) -> CallOption | None:
        """Return the cheapest option that is statistically as good as the best one for the focus claim."""
        name = self.focus.claim.id if self.focus else ""
        prospects = {option: self.prospects.get((name, option.name)) for option in self.options}
        shares = {option: found for option, found in prospects.items() if found is not None and found.reached}
        if not shares:
            return None
        best = max(prospect.probability for prospect in shares.values())
        good = [option for option, prospect in shares.items() if prospect.high >= best]
        return min(good, key=lambda option: (option.calls, -shares[option].probability))


def plan_calls_report(
    table: ScoreTable, study: Study, verdicts: Sequence[Verdict], measurements: Sequence[Measurement],
    budget_calls: int | None, seed: int, effect: float | None = None, prices: Mapping[str, float] = PRICES,
    claim: str | None = None, studies: int = STUDIES,
) -> CallPlan:  # fmt: skip
    """Simulate which extra judge calls most likely raise a claim from no-claim to qualified, or on to headline."""
    below = {
        verdict.claim.id: verdict
        for verdict in verdicts
        if verdict.claim.asserts_order and verdict.publication_level in NEXT
    }
    least = (("budget_calls", 1 if budget_calls is None else budget_calls), ("studies", studies))
    problems = [Problem(name, f"must be at least 1 (got {value})") for name, value in least if value < 1]
    if effect is not None and not 0 < effect <= study.points:
        problems.append(Problem("--effect", f"must be above 0 and at most {study.points:g} points (got {effect:g})"))
    for name, price in prices.items():
        if name not in ("record", "call", "human") or not (math.isfinite(price) and price >= 0):
            problems.append(Problem("--price", f"must be record, call or human, from 0 (got {name}={price:g})"))
    if claim is not None and claim not in below:
        problem = f"must be the id of a ranking claim of this study below headline (got {claim!r})"
        problems.append(Problem("claim", problem))
    if problems:
        raise InputError("plan-calls", problems)
    adversarial = {name: verdict.adversarial_status for name, verdict in below.items()}
    targets = tuple(
        Target(one.claim, level, NEXT[level], _NO_HELP.get((level, one.adversarial_status), "ok"))
        for one in below.values()
        for level in [one.publication_level]
    )
    # The claim that the recommendation is for.
    if claim is not None:
        focus: Target | None = next(target for target in targets if target.claim.id == claim)
    else:
        levels = {
            item.labels["agent"]: item.value
            for item in measurements
            if item.name == "score.effect" and item.labels["dimension"] == AGGREGATE and item.value is not None
        }
        top = max(levels, key=lambda agent: (levels[agent], agent), default=None)
        movable = [target for target in targets if target.state == "ok"]
        leading = [t for t in movable if t.claim.dimension == AGGREGATE and t.claim.subjects == (top,)]
        focus = next(iter([*leading, *movable, *targets]), None)
    if focus is None:
        return CallPlan(budget_calls, seed, None, targets, (), {}, {})
    cells = focus.aim == "headline" and adversarial[focus.claim.id] == "not tested"
    prospects: dict[tuple[str, str], Prospect] = {}
    rising: dict[str, float] = {}
    # Without the parts that simulated studies lack, and with few resamples, which do not affect verdicts.
    components, plain = (
        designs.variance_components(table), replace(designs.averaged(table), lengths=None, incomplete=None),
    )  # fmt: skip
    truth = fitted_truth(plain, components, study.scale)
    fewer = study.model_copy(update={
        "inference": study.inference.model_copy(update={"resamples": 1000}),
        "stability": study.stability.model_copy(update={"probe": None}),
        "records": study.records.model_copy(update={"derivations": ("honest",)}),
        "contamination": None, "anchor_probe": None,
    })  # fmt: skip
    options: tuple[CallOption, ...] = ()
    if budget_calls is not None:
        inputs = plain, fewer, truth, components, budget_calls, cells
        options = tuple(option for option, *_ in _setups(*inputs))
        # The control cells alone change no score, so one study shows their effect without sampling error.
        repeats = [1 if option.name == "control cells" else min(studies, max(_FEWEST, studies * _LARGE // option.calls))
                   for option in options]  # fmt: skip
        each = inputs, targets, adversarial, repeats, seed
        with spawned(_simulate_half, *each, 1, processes=usable_cores() > 1 and studies >= STUDIES) as others:
            halves = _simulate_half(*each, 0), others()
        for option, n, *counts in zip(options, repeats, *halves, strict=True):
            rising |= {option.name: sum(sum(part.values()) for part in counts) / n} if counts[0] else {}
            for name in counts[0]:
                count = sum(part[name] for part in counts)
                ends = wilson(count, n) if n > 1 else (float(count), float(count))
                prospects[name, option.name] = Prospect(count, n, *ends)
    trials = [judge.trials for judge in truth.panel]
    design = claim_design(plain, study, components, trials, focus.claim, measurements, effect, prices)
    return CallPlan(budget_calls, seed, focus, targets, options, prospects, rising, design)


def plan_calls_lines(plan: CallPlan) -> list[str]:
    """Return the plan in lines; suppressed values are left out here too."""
    target = plan.focus
    if target is None:
        return ["Every ranking claim of this study is a headline or beyond the reach of more calls."]
    claim = target.claim
    sentence = claim.statement if target.level != "no-claim" else suppressed_phrase(claim)
    if target.level == "no-claim" and len(claim.subjects) == 1:
        # A claim on the leader would reveal its name.
        sentence = sentence.replace(f" for {claim.subjects[0]} ", " ")
    text = [f"{target.level} now, {target.aim} aimed at: {sentence}"]
    if target.state != "ok":
        return [*text, target.state]
    for option in plan.options:
        chance = option.state
        if chance == "ok":
            prospect = plan.prospects[claim.id, option.name]
            chance = (
                f"reaches {target.aim} in {prospect.probability:.0%} of {prospect.studies} simulated studies "
                f"({prospect.low:.0%} to {prospect.high:.0%})"
            )
            if prospect.studies == 1:
                chance = f"{'reaches' if prospect.reached else 'does not reach'} {target.aim} if the panel passes"
            chance = f"{option.calls} calls; {chance}; lifts {plan.rising[option.name]:.1f} claims on average"
        text.append(f"  {option.name}: {option.words}; {chance}")
    if not plan.options:
        pass  # no budget was given
    elif (chosen := plan.recommended()) is None:
        text.append("No option reached it in any simulated study.")
    else:
        unlikely = plan.prospects[claim.id, chosen.name].probability < 0.5
        doubt = " More likely than not, even that does not reach it." if unlikely else ""
        text.append(f"Cheapest of the best: {chosen.name}, {chosen.calls} calls.{doubt}")
    if plan.design is not None:
        text += design_lines(plan.design, plan.budget, withheld=target.level == "no-claim")
    return [*text, *(f"Assumed: {line}" for line in plan.assumptions if plan.options)]


Setup = tuple[CallOption, Callable[[np.random.Generator], ScoreTable] | None, Study]
"""An option, a function that draws its simulated records, and the plan it needs."""


def _setups(
    table: ScoreTable, study: Study, truth: Truth, components: designs.Components, budget: int, cells: bool
) -> list[Setup]:
    """Return the ways to spend the budget, each with control cells if these are needed."""
    trials, n = sum(judge.trials for judge in truth.panel), table.n
    spent = CELL_TEXTS * trials if cells else 0
    texts = f"{CELL_TEXTS} texts of control cells A and B for the whole panel"
    if spent > budget:
        state = f"not affordable: it needs {spent} calls"
        return [(CallOption("control cells", texts, spent, state, cells=True), None, study)]
    ways: list[Setup] = []
    budget_left, price = budget - spent, n / len(table.cycles) * trials
    for part, name in ((budget_left // 2, "half the new cycles"), (budget_left, "new cycles")):
        if not (count := int(part / price)):
            state = f"not affordable: one cycle needs {math.ceil(price)} calls"
            ways.append((CallOption(name, "more cycles", math.ceil(price), state), None, study))
            continue
        clusters = max(1, round(count / truth.cycles))

        def more(rng: np.random.Generator, clusters: int = clusters, size: int = count // clusters) -> ScoreTable:
            drawn = replace(drawn_truth(table, truth, components, rng), clusters=clusters, cycles=size)
            return joined(table, simulate_scores(drawn, rng), rng)

        size = clusters * (count // clusters)
        words = f"{count_of(size, 'more cycles')} in {count_of(clusters, 'new clusters')}"
        ways.append((CallOption(name, words, round(size * price)), more, study))
    state = "ok"
    if len(table.judges) < 2:
        state = "not measured: with one judge nothing says how much another would differ"
    elif n > budget_left:
        state = f"not affordable: it needs {n} calls"
    other = JudgeSpec(name="another judge", model="planned/judge", family="another family")
    words = f"one judge of another family on all {n} trajectories, once each"
    ways.append((
        CallOption("another family", words, n, state),
        lambda rng: with_judge(table, truth, components, other.name, other.family, rng),
        study.model_copy(update={"judges": (*study.judges, other)}),
    ))  # fmt: skip
    # More trials of the noisiest judge.
    noise = {judge: components.judge("trial", judge).variance for judge in table.judges}
    measured = {judge: variance for judge, variance in noise.items() if variance is not None}
    judge, extra, words = (
        max(measured, key=lambda judge: (measured[judge], judge), default=""), 0, "more trials of the noisiest judge",
    )  # fmt: skip
    state = "not measured: no judge was asked twice, so nothing says what another trial would change"
    if measured:
        extra = min(budget_left // n, MOST_TRIALS - truth.panel[table.judges.index(judge)].trials)
        words, state = f"more trials of {judge}", f"not affordable: it needs {n} calls"
    if extra > 0:
        words, state = f"{count_of(extra, 'more trials')} of {judge} on all {n} trajectories", "ok"
    option = CallOption("more trials", words, max(extra, 1) * n, state)
    ways.append((option, lambda rng: with_trials(table, truth, judge, extra, rng), study))
    if not cells:
        return ways
    combined: list[Setup] = [(CallOption("control cells", texts, spent, cells=True), lambda _: table, study)]
    for option, extend, plan in ways:
        name, both = f"control cells and {option.name}", f"{texts}, and {option.words}"
        combined.append((CallOption(name, both, spent + option.calls, option.state, cells=True), extend, plan))
    return combined


def _simulate_half(
    inputs: tuple[Any, ...], targets: Sequence[Target], adversarial: Mapping[str, AdversarialStatus],
    repeats: Sequence[int], seed: int, first: int,
) -> list[dict[str, int]]:  # fmt: skip
    """Simulate every second study of each option from ``first`` on; empty for an option that is not affordable."""
    return [
        _simulate(way, targets, adversarial, range(first, n, 2), [seed, place]) if way[0].state == "ok" else {}
        for place, (way, n) in enumerate(zip(_setups(*inputs), repeats, strict=True))
    ]


def _simulate(
    way: Setup, targets: Sequence[Target], adversarial: Mapping[str, AdversarialStatus], numbers: range, seed: list[int]
) -> dict[str, int]:
    """Return the number of simulated studies in which each target reached its next level or a better one."""
    option, extend, study = way
    assert extend is not None

    def of_claim(compared: Comparisons, claim: Claim) -> tuple[list[int], int]:
        """Return the indices of a claim's pairs, and of its scale."""
        names = {compared.agents.index(name) for name in claim.subjects}
        return [k for k, pair in enumerate(compared.pairs) if names <= {*pair}], compared.names.index(claim.dimension)

    reached = {target.claim.id: 0 for target in targets}
    aims = {target.claim.id: target.aim for target in targets}
    for number in numbers:
        note(f"simulating studies, {option.name}", number, numbers.stop)
        rng = np.random.default_rng([*seed, number])
        table = gated(extend(rng), study)
        tests = OrderTests(Comparisons.of_table(table, study), OrderPlan.of(study))
        small = tests.panel.p <= study.inference.alpha + LEVEL_SLACK
        if not any(small[of_claim(tests.found, target.claim)].all() for target in targets):
            continue  # no claim is published while one of its pairs has a larger p-value
        for claim in decide_claims(analyse_orders(table, study, rng), study, "simulated", variants=False):
            name = claim.claim.id
            if name in aims:
                # Simulated studies have no control cells, so their status is carried over.
                passed = option.cells and adversarial[name] == "not tested"
                status: AdversarialStatus = "passed" if passed else adversarial[name]
                level = publication_level(
                    claim.agreement_status, claim.stability_status, status, asserts_order=claim.claim.asserts_order
                )
                caps = [cap.level for cap in claim.caps if cap.field != "adversarial" and not cap.lifted]
                reached[name] += RANK[weakest((level, *caps))] >= RANK[aims[name]]
    return reached
