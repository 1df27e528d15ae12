"""Whole runs written by hand: a realistic one, a large one, a hostile one, and the edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import combinations

from assaymark.protocol import JudgeSpec, Study
from assaymark.records import (
    AGGREGATE,
    Agent,
    Cap,
    Claim,
    Condition,
    Decision,
    Evidence,
    Measurement,
    Provenance,
    Rationale,
    StabilityFinding,
    Verdict,
    measurement_id,
)  # fmt: skip
from assaymark.report import AssayRun, PlantedView, RubricView

PLAN = "9f41c7d20b6e88a35d13f0c7aa39c2e4417b62d09ce85f10b7d44e6a2c9835fe"
DIMENSIONS = tuple(
    (name, name.replace("_", " ").capitalize())
    for name in ("risk_fit", "sizing", "use_of_facts", "limits", "doubt", "coherence")
)
LEVELS = {"Marten": 4.313, "Otter": 4.067, "Badger": 4.031, "Weasel": 3.977, "Stoat": 3.716}
KAPPAS = {AGGREGATE: 0.64, "risk_fit": 0.74, "sizing": 0.57, "use_of_facts": 0.43, "limits": 0.23, "doubt": 0.66}
STATES = ("supported", "not_found", "derivable", "in_context", "rule", "own_action", "contradicted", "supported")
RULES = ("lower bound of kappa", "kappa cut-offs 0.5 and 0.25", "own variance of each pair")


THREE = (("north-1", "north"), ("strand-1", "strand"), ("quay-1", "quay"))


def study(judges: Sequence[tuple[str, str]] = THREE) -> Study:
    specs = tuple(JudgeSpec(name=name, model=f"reference/{name}", family=family) for name, family in judges)
    return Study(name="mustelids", title="Allocation round seven", seed=7, judges=specs)


def measured(name: str, labels: Mapping[str, str], value: float | None, **more) -> Measurement:
    base = {"n": 1250, "n_of": "trajectories", "method": "written by hand"}
    return Measurement(name=name, labels=labels, value=value, **{**base, **more})


def _table(a: int, b: int) -> list[list[int]]:
    return [
        [5 + (3 * i + 7 * j + a * 5 + b) % 11 + (60 if i == j else 0) * (i + a + 1) for j in range(5)] for i in range(5)
    ]


def kappas(run_study: Study, values: Mapping[str, float | None], clusters: int = 5) -> list[Measurement]:
    names = [judge.name for judge in run_study.judges]
    found = []
    for dimension, value in values.items():
        labels = {"dimension": dimension}
        if value is None:
            state = "not measurable: one judge family, needs two"
            found.append(measured("kappa.mean_pairwise", labels, None, state=state, detail={"clusters": clusters}))
            continue
        pairs = {f"{a}|{b}": round(value + 0.02 * at, 4) for at, (a, b) in enumerate(combinations(names, 2))}
        tables = {f"{a}|{b}": _table(x, y) for (x, a), (y, b) in combinations(enumerate(names), 2)}
        bootstrap = {"low": value - 0.04, "high": value + 0.035, "method": "cluster bootstrap"}
        detail = {"clusters": clusters, "bootstrap": bootstrap, "pairs": pairs, "tables": tables}
        ends = {"low": value - 0.08, "high": value + 0.07, "level": 0.95}
        found.append(measured("kappa.mean_pairwise", labels, value, **ends, detail=detail))
        found += [measured("kappa.fleiss", labels, value - 0.2), measured("redundancy", labels, value + 0.05)]
    return found


def agents_measured(run_study: Study, levels: Mapping[str, float], dimension: str, moved: str) -> list[Measurement]:
    """Levels, contrasts and drops; without the last family ``moved`` climbs to the second place."""
    found = []
    order = sorted(levels, key=lambda agent: (-levels[agent], agent))
    for agent, level in levels.items():
        found.append(measured(
            "score.effect", {"dimension": dimension, "agent": agent}, level,
            n=250, n_of="decisions", low=level - 0.071, high=level + 0.069, level=0.95,
            method="least-squares agent effect beside cycle effects; jackknife over clusters",
        ))  # fmt: skip
    for at, family in enumerate(run_study.families):
        last = at == len(run_study.families) - 1
        after = [order[0], moved, *(a for a in order[1:] if a != moved)] if last and moved in order[1:] else order
        rho = 0.3 if last and moved in order[2:] else 1.0
        labels = {"dimension": dimension, "dropped": family}
        found.append(measured("lofo.rho", labels, rho, n=len(order), n_of="agents", detail={"order": list(after)}))
        for high, low in combinations(order, 2):
            turned = after.index(high) > after.index(low)
            pair = {**labels, "high": high, "low": low}
            detail = {"p": 0.4, "p_adjusted": 0.9} if turned else {"p": 0.0003, "p_adjusted": 0.002}
            value = -0.05 if turned else 0.1
            found.append(measured("lofo.contrast", pair, value, n=5, n_of="common clusters", detail=detail))
    for high, low in combinations(order, 2):
        found += pair_measured({"dimension": dimension, "high": high, "low": low}, levels[high] - levels[low])
    flag = {"lags": [-0.21, 0.08, 0.02, -0.11], "flagged": False, "flag": 0.27, "order": "exchangeable"}
    labels = {"dimension": dimension}
    found.append(measured("order.autocorrelation", labels, -0.21, n=5, n_of="clusters", detail=flag))
    return found


def pair_measured(labels: Mapping[str, str], gap: float) -> list[Measurement]:
    """The difference of a pair, and what tests for other explanations found about it."""
    clear = gap > 0.12
    p = 0.00004 if clear else 0.041
    ends = {"low": gap - 0.07, "high": gap + 0.07, "level": 0.95, "unit": "rubric points"}
    cycles, clusters = {"n": 250, "n_of": "common cycles"}, {"n": 5, "n_of": "clusters"}
    length = {"p": p, "gap": 0.5, "slope": 0.04, "raw": gap, "overlap": 0.8, "word": "clear", "clusters": 5}
    return [
        measured("contrast", labels, gap, **cycles, **ends, detail={"p": p, "clusters": 5, "p_own_variance": p}),
        measured("recusal.contrast", labels, gap - 0.01, **clusters, **ends, detail={"p": p, "families": ["north"]}),
        measured("length.contrast", labels, gap - 0.02, **clusters, unit="rubric points", detail=length),
        measured("judges.contrast", labels, gap, n=3, n_of="judge families", detail={"p": 0.21, "df": 2.1}),
    ]


def side_measurements(run_study: Study, agents: Sequence[str]) -> list[Measurement]:
    detail = {"alpha_aggregate": 0.04, "leader": 0.21, "pair": 0.33, "power": 0.8}
    labels = {"dimension": AGGREGATE}
    found = [measured("order.detectable", labels, 0.21, n=10, n_of="pairs", unit="rubric points", detail=detail)]
    for judge, more in zip(run_study.judges, (0.31, -0.02, 0.05), strict=False):
        labels = {"dimension": AGGREGATE, "judge": judge.name}
        ends = {"low": more - 0.1, "high": more + 0.1, "level": 0.95, "detail": {"p": 0.01, "p_holm": 0.03}}
        found.append(measured("judge.own_family", labels, more, n=5, n_of="clusters", unit="rubric points", **ends))
    for at, (dimension, _) in enumerate(DIMENSIONS[:2]):
        detail = {"p": 0.002, "p_holm": 0.012 if at else 0.4, "distinct": 0.95}
        labels = {"dimension": dimension}
        found.append(measured("dimension.distinct", labels, 0.97 - 0.2 * at, low=0.7, high=1.0, detail=detail))
    state = "undefined: one trial, needs two"
    for judge in run_study.judges:
        found.append(measured("noise.repetition_stability", {"judge": judge.name, "ddof": "1"}, None, state=state))
        found.append(measured("judge.invalid_share", {"judge": judge.name}, 0.006, n=2333, n_of="calls"))
    for agent in agents:
        found.append(measured("noise.agent_floor", {"agent": agent}, None, n=0, state="undefined: no replicates"))
    found.append(measured("score.length_correlation", {"dimension": AGGREGATE}, -0.077))
    chance = {"observed": 0.61, "chance": 0.06}
    found.append(measured("evidence.chance_corrected", {}, 0.585, n=9000, n_of="numbers", detail=chance))
    found.append(measured("evidence.no_number_share", {}, 0.12, n=1250, n_of="records"))
    found.append(measured("forecast.mismatch", {}, 0.04, n=600, n_of="forecasts"))
    return found


WEAK = "The judges agree only weakly on this score."


def verdict(claim: Claim, level: str, agreement: str, standing: str, adversarial: str, *, rules=(), **more) -> Verdict:
    """A verdict with the caps that its fields make; ``more`` are fields of `Verdict`."""
    caps = [Cap(field="agreement", level="no-claim")] if agreement == "halt" else []
    caps += [Cap(field="stability", level="no-claim")] if standing != "stable" else []
    caps += [Cap(field="adversarial", level="no-claim")] if adversarial == "contaminated" else []
    caps += [Cap(field="agreement", level="qualified")] if agreement == "methodology" else []
    caps += [Cap(field="adversarial", level="qualified")] if adversarial not in ("passed", "contaminated") else []
    limits = dict.fromkeys(cap.field for cap in caps if cap.level == level)
    said = (Condition(id="agreement", text=WEAK),) if level == "qualified" else ()
    return Verdict(
        claim=claim, agreement_status=agreement, stability_status=standing, adversarial_status=adversarial,
        publication_level=level, reasons=(f"Reasons for {claim.id}.",), binding=tuple(limits),
        measurements=(measurement_id("kappa.mean_pairwise", {"dimension": claim.dimension}),), plan_hash=PLAN,
        condition=WEAK if level == "qualified" else None, conditions=said, caps=tuple(caps),
        fragility={rule: "no-claim" if level == "qualified" and rule == RULES[0] else level for rule in rules}, **more,
    )  # fmt: skip


def first(agent: str, dimension: str, count: int) -> Claim:
    name = "the overall score" if dimension == AGGREGATE else dimension.replace("_", " ")
    return Claim(
        id=measurement_id("first", {"dimension": dimension, "agent": agent}),
        scope="aggregate-ranking" if dimension == AGGREGATE else "dimension-ranking",
        statement=f"{agent} ranks first of the {count} agents on {name}.",
        subjects=(agent,), dimension=dimension, asserts_order=True,
    )  # fmt: skip


def above(high: str, low: str, dimension: str) -> Claim:
    name = "the overall score" if dimension == AGGREGATE else dimension.replace("_", " ")
    return Claim(
        id=measurement_id("above", {"dimension": dimension, "high": high, "low": low}),
        scope="pairwise-contrast", statement=f"{high} scores above {low} on {name}.",
        subjects=(high, low), dimension=dimension, asserts_order=True,
    )  # fmt: skip


def within(high: str, low: str) -> Claim:
    one, other = sorted((high, low))
    return Claim(
        id=measurement_id("within", {"dimension": AGGREGATE, "high": high, "low": low}), scope="pairwise-contrast",
        statement=f"{one} and {other} score within 0.3 of each other on the overall score (gap −0.04, 90 % interval "
        "−0.10 to 0.02).", subjects=(high, low), dimension=AGGREGATE, asserts_order=False,
    )  # fmt: skip


def status(kappa: float | None) -> str:
    if kappa is None or kappa < 0.2:
        return "halt"
    return "methodology" if kappa < 0.4 else "publish"


def verdicts(
    levels: Mapping[str, float], values: Mapping[str, float | None], *, controls="passed", gap=0.12, bent="Stoat",
    rules=RULES,
) -> list[Verdict]:  # fmt: skip
    """Pairs further apart than ``gap`` are significant; below the leader, those with ``bent`` turn without quay.
    Only the second and the third are shown to score within the margin of each other."""
    order = sorted(levels, key=lambda agent: (-levels[agent], agent))
    found = []
    for dimension, kappa in values.items():
        agreement = status(kappa)
        best = "headline" if agreement == "publish" and controls == "passed" else "qualified"
        for agent in sorted(order):
            leads = agent == order[0] and levels[order[0]] - levels[order[1]] > gap
            level = "no-claim" if agreement == "halt" or not leads else best
            standing = "stable" if leads else "tie-class"
            found.append(verdict(
                first(agent, dimension, len(order)), level, agreement, standing, controls, rules=rules,
                p=0.00004 if leads else 1.0, p_adjusted=0.0004 if leads else 1.0, other_judges="no",
                stability=StabilityFinding(state="stable") if leads else None, own_family="clear", length="clear",
            ))  # fmt: skip
        for high, low in combinations(order, 2):
            clear = levels[high] - levels[low] > gap
            shaky = clear and bent in (high, low) and high != order[0]
            standing = "judge-dependent" if shaky else "stable" if clear else "tie-class"
            level = best if standing == "stable" and agreement != "halt" else "no-claim"
            state = StabilityFinding(state="reversed-without", families=("quay",)) if shaky else None
            found.append(verdict(
                above(high, low, dimension), level, agreement, standing, controls, rules=rules,
                p=0.00004 if clear else 0.041, p_adjusted=0.0004 if clear else 0.41, p_adjusted_headline=0.012,
                stability=state or (StabilityFinding(state="stable") if clear else None), own_family="clear",
                pair_state="ordered" if standing == "stable" else "not-resolved", length="clear",
                distinct="not-applicable" if dimension == AGGREGATE else "passed", other_judges="no",
            ))  # fmt: skip
        for high, low in combinations(order, 2) if dimension == AGGREGATE else ():
            close = (high, low) == tuple(order[1:3])
            level = best if close and agreement != "halt" else "no-claim"
            found.append(verdict(
                within(high, low), level, agreement, "stable" if close else "tie-class", controls,
                p=0.002 if close else 0.6, p_adjusted=0.02 if close else 1.0, own_family="clear", length="clear",
            ))  # fmt: skip
    return found


def decisions(families: Mapping[str, str], count: int, clusters: int = 5) -> list[Decision]:
    start = datetime(2024, 3, 1, tzinfo=UTC)
    names = sorted(families)
    return [
        Decision(
            record_id=f"rec-{at:05d}", episode_id=f"ep-{at // len(names)}", step=1, cluster=f"regime {at % clusters}",
            decided_at=start + timedelta(hours=at // len(names)),
            agent=Agent(id=names[at % len(names)], family=families[names[at % len(names)]]),
            context_id="0" * 64, actions=(), rationales=(Rationale(text="Cash is 41,200.", kind="summary"),),
            format="plain", provenance=Provenance(source="made up"),
        )
        for at in range(count)
    ]  # fmt: skip


def evidence(
    records: Sequence[Decision], count: int, quote: str = "return of {n} % over five sessions"
) -> list[Evidence]:
    return [
        Evidence(
            decision=records[at % len(records)].record_id, part=0, kind="summary", start=at // len(records),
            quote=quote.replace("{n}", f"{at % 97 / 10}"), number=at % 97 / 10, unit="percent", subject="ORL",
            state=STATES[at % len(STATES)], facts=(f"ret5:ORL:{at % 40}",), rule="equal within rounding",
        )
        for at in range(count)
    ]  # fmt: skip


FLAWS = ("adds 0.3 to long texts", "noise of 0.4")
PANEL = tuple(PlantedView(name=f"{f}-1", family=f, question=f"A grader of the {f} school.", planted=FLAWS)
              for f in ("north", "strand", "quay"))  # fmt: skip


def formats() -> list[Measurement]:
    few = {"dimension": AGGREGATE, "format": "table"}
    state = "too few to gate: 18 records in 3 clusters"
    ok = {"dimension": AGGREGATE, "format": "prose"}
    return [
        measured("kappa.mean_pairwise", few, None, n=18, state=state, detail={"clusters": 3}),
        measured("kappa.mean_pairwise", ok, 0.51, n=900, low=0.46, high=0.55, level=0.95, detail={"clusters": 5}),
    ]


def realistic(**more) -> AssayRun:
    """Five agents, three judges: one leader, a tier of four, and one whose differences turn without a judge family."""
    return replace(_realistic(), **more)


@cache
def _realistic() -> AssayRun:
    plan = study()
    values = {**KAPPAS, "coherence": 0.81}
    families = {"Marten": "north", "Otter": "strand", "Badger": "quay", "Weasel": "ferro", "Stoat": "moor"}
    records = decisions(families, 1250)
    found = kappas(plan, values) + formats() + side_measurements(plan, sorted(LEVELS))
    for at, dimension in enumerate(values):
        found += agents_measured(plan, {a: v - 0.03 * at for a, v in LEVELS.items()}, dimension, "Stoat")
    return AssayRun(
        study=plan, plan_hash=PLAN, locked_at="2 March 2026",
        rubric=RubricView(name="v1.0", title="Six sides of a rationale", dimensions=DIMENSIONS),
        verdicts=tuple(verdicts(LEVELS, values)), measurements=tuple(found), decisions=tuple(records),
        evidence=tuple(evidence(records, 2400)), invalid={"north-1": 14, "strand-1": 20, "quay-1": 8}, calls=7000,
        in_flight_bound=192, reference_panel=PANEL,
        import_notes=("the order book the agents saw is not in the log (1,250 records)", "no replicates were run"),
        excluded={"clock-conflict": 12, "derivation vacuum": 3}
    )  # fmt: skip


@cache
def large(agents: int = 10, dimensions: int = 6, numbers: int = 14_500) -> AssayRun:
    """Ten agents, 430 verdicts and 14,500 numbers: what the page budgets are for."""
    plan = study()
    names = ("Kingfisher", "Sandpiper", "Oystercatcher", "Wren", "Dunlin", "Heron", "Lapwing", "Teal", "Osprey",
             "Curlew")  # fmt: skip
    levels = {name: 4.4 - 0.083 * at for at, name in enumerate(names[:agents])}
    dims = DIMENSIONS[:dimensions]
    values: dict[str, float | None] = {AGGREGATE: 0.62, **{d: 0.75 - 0.1 * at for at, (d, _) in enumerate(dims)}}
    families = {name: f"family {at % 4}" for at, name in enumerate(levels)}
    records = decisions(families, 2500, 12)
    found = kappas(plan, values, 12) + side_measurements(plan, sorted(levels))
    for dimension in values:
        found += agents_measured(plan, levels, dimension, names[min(7, agents - 1)])
    return AssayRun(
        study=plan, plan_hash=PLAN, locked_at="2 March 2026",
        rubric=RubricView(name="v1.0", title="Six sides of a rationale", dimensions=dims),
        verdicts=tuple(verdicts(levels, values, controls="not tested", bent="Teal")), measurements=tuple(found),
        decisions=tuple(records), evidence=tuple(evidence(records, numbers)), invalid={"north-1": 3}, calls=7500,
        in_flight_bound=64,
    )  # fmt: skip


@cache
def withheld() -> AssayRun:
    """The realistic run with nothing permitted: agreement halts everywhere."""
    run = realistic()
    values = dict.fromkeys({**KAPPAS, "coherence": 0.1}, 0.11)
    kept = [m for m in run.measurements if not m.name.startswith(("kappa", "redundancy"))]
    return replace(run, verdicts=tuple(verdicts(LEVELS, values)), measurements=tuple(kept + kappas(run.study, values)))


CANARY = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"


@cache
def hostile() -> AssayRun:
    """Names, quotes, notes and states that try to leave their place."""
    bad = f'Mar"ten{CANARY}'
    levels = {bad: 4.3, "'}--><svg onload=alert(1)>": 4.0, "Otter\u202e\x1b[31m{{7*7}}": 3.6}
    plan = study()
    values = {AGGREGATE: 0.6, "sizing": 0.5}
    families = dict.fromkeys(levels, f"fam{CANARY}")
    records = decisions(families, 30)
    found = kappas(plan, values) + side_measurements(plan, list(levels))
    for dimension in values:
        found += agents_measured(plan, levels, dimension, "nobody")
    claims = [
        replace(v, condition=CANARY, conditions=(Condition(id="agreement", text=CANARY),), reasons=(CANARY,))
        for v in verdicts(levels, values, controls="not tested", bent="nobody")
    ]
    return AssayRun(
        study=plan, plan_hash=PLAN, locked_at=CANARY,
        rubric=RubricView(name=CANARY, title=CANARY, dimensions=(("sizing", CANARY),)),
        verdicts=tuple(claims), measurements=tuple(found), decisions=tuple(records),
        evidence=tuple(evidence(records, 40, CANARY + "{n}\ud800")), invalid={"north-1": 1}, calls=90,
        reference_panel=(PlantedView(name="north-1", family="north", question=CANARY, planted=(CANARY,)),),
        import_notes=(CANARY,), excluded={CANARY: 1},
    )  # fmt: skip


@cache
def minimal() -> AssayRun:
    """One agent, one judge, no evidence: nearly everything is undefined."""
    plan = study((("solo", "only"),))
    state = "not measurable: one judge family, needs two"
    return AssayRun(
        study=plan, plan_hash=PLAN, locked_at=None,
        rubric=RubricView(name="v1.0", title="One side", dimensions=(("sizing", "Sizing"),)),
        verdicts=(), evidence=(), decisions=tuple(decisions({"Marten": "north"}, 2)),
        measurements=(
            measured("kappa.mean_pairwise", {"dimension": AGGREGATE}, None, state=state, n=2),
            measured("lofo.rho", {"dimension": AGGREGATE, "dropped": "only"}, None, state=state, n=1),
        ),
    )  # fmt: skip
