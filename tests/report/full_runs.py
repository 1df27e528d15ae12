"""A run in which every experiment of the protocol was made, written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations

import assay_runs as runs

from assaymark.protocol import AnchorProbe, Contamination, JudgeSpec, Records, Stability
from assaymark.records import (
    AGGREGATE,
    Claim,
    Decision,
    Derivation,
    Judgment,
    Measurement,
    Verdict,
    measurement_id,
    sha256_text,
)  # fmt: skip
from assaymark.report import AssayRun

VALUES = {**runs.KAPPAS, "coherence": 0.81}
RULES = (*runs.RULES, "half-even rounding", "source: percentile bootstrap")
measured = runs.measured


def full(**more) -> AssayRun:
    """The realistic run with an outside judge, controls, probes, single judges, and claims of every kind."""
    return replace(_full(), **more)


@cache
def _full() -> AssayRun:
    base = runs.realistic()
    study = base.study.model_copy(update={
        "stability": Stability(probe=JudgeSpec(name="tarn-1", model="reference/tarn-1", family="tarn")),
        "records": Records(derivations=("honest", "cell_a", "cell_b", "paraphrase", "fact_flip", "ladder")),
        "contamination": Contamination(post_cutoff=("regime 4",)),
        "anchor_probe": AnchorProbe(judge="quay-1"),
    })  # fmt: skip
    found = list(base.measurements)
    found += [*ranks(runs.LEVELS), *singles(study, runs.LEVELS), *outside(), *cells(), *style(), *probes(), *repeats()]
    labels = {"dimension": "limits", "format": "prose"}
    found.append(measured("kappa.mean_pairwise", labels, 0.29, low=0.2, high=0.36, level=0.95))
    claims = [rested(v, found) for v in (*runs.verdicts(runs.LEVELS, VALUES, rules=RULES), *others())]
    return replace(base, study=study, verdicts=tuple(claims), measurements=tuple(found))


@cache
def halted() -> AssayRun:
    """Everything was measured and nothing is permitted: agreement halts on every score and inside every cell."""
    run = full()
    values = dict.fromkeys(VALUES, 0.11)
    claims = [*runs.verdicts(runs.LEVELS, values, rules=RULES), *others(level="no-claim")]
    kept = [m for m in run.measurements if not m.name.startswith(("kappa", "redundancy"))]
    found = tuple(kept + runs.kappas(run.study, values))
    return replace(run, verdicts=tuple(rested(v, run.measurements) for v in claims), measurements=found)


@cache
def long() -> AssayRun:
    """Ten agents and 400 claims with every experiment: what the budgets of the pages are for."""
    base, extra = runs.large(), full()
    levels = {m.labels["agent"]: m.value for m in base.measurements
              if m.name == "score.effect" and m.labels["dimension"] == AGGREGATE}  # fmt: skip
    shared = [m for m in extra.measurements if m.name.startswith(("cell.", "style.", "contamination.", "anchor."))]
    found = [*base.measurements, *shared, *ranks(levels), *singles(extra.study, levels)]
    claims = [rested(v, found) for v in (*base.verdicts, *others())]
    more = {"verdicts": tuple(claims), "measurements": tuple(found), "evidence": base.evidence[:1500]}
    return replace(base, study=extra.study, **more)


@cache
def hostile_full() -> AssayRun:
    """The full run in which every name that can come from outside tries to leave its place."""
    run, bad = full(), runs.CANARY

    def named(item: Measurement) -> Measurement:
        labels = {k: v + bad if k in ("judge", "a", "b", "split", "agent") else v for k, v in item.labels.items()}
        detail = {k: bad if isinstance(v, str) else v for k, v in item.detail.items()}
        detail = {k: [bad, *v] if k == "absent" else v for k, v in detail.items()}
        return replace(item, labels=labels, detail=detail, method=bad, n_of=bad)

    new = ("rank", "single", "probe", "cell", "terse", "style", "anchor", "contamination", "length_matched")
    found = tuple(named(m) if m.name.startswith(new) else m for m in run.measurements)
    extra = measured("cell.gate", {"cell": bad}, 0.1, detail={"outcome": bad}, method=bad)
    claims = tuple(replace(v, amended=(bad,), condition=bad, reasons=(bad,)) for v in run.verdicts)
    odd = replace(claims[0].claim, id=f"cell[cell={bad}]", scope="adversarial-cell", subjects=(bad,))
    return replace(run, measurements=(*found, extra), verdicts=(*claims, replace(claims[0], claim=odd)))


# --- measurements ---------------------------------------------------------------------------------------------------


def ranks(levels: Mapping[str, float]) -> list[Measurement]:
    """The leader always first; the next three share the places behind it; the last is last nine times in ten."""
    order = sorted(levels, key=lambda agent: -levels[agent])
    size, found = len(order), []
    for at, agent in enumerate(order):
        shares = [0.0] * size
        if at == 0:
            shares[0] = 1.0
        elif at == size - 1:
            shares[at - 1], shares[at] = 0.11, 0.89
        else:
            near = [place for place in (at - 1, at, at + 1) if 0 < place < size]
            for place in near:
                shares[place] = 1 / len(near)
        detail = {"shares": shares, "resamples": 126, "exact": True}
        labels = {"dimension": AGGREGATE, "agent": agent}
        found.append(measured("rank.first", labels, shares[0], n=5, n_of="clusters", detail=detail))
    return found


def singles(study, levels: Mapping[str, float]) -> list[Measurement]:
    names, found = sorted(judge.name for judge in study.judges), []
    for at, dimension in enumerate(VALUES):
        for place, (a, b) in enumerate(combinations(names, 2)):
            labels = {"dimension": dimension, "a": a, "b": b}
            found.append(measured("single.rho", labels, 0.2 + 0.3 * place - 0.01 * at, n=len(levels), n_of="agents"))
        for place, judge in enumerate(names):
            for agent, level in levels.items():
                labels = {"dimension": dimension, "judge": judge, "agent": agent}
                found.append(measured("single.level", labels, level + 0.1 * place))
    leader, *rest = sorted(levels, key=lambda agent: -levels[agent])
    for place, judge in enumerate(names):
        detail = {"family": 60, "overlap": 18 - 3 * place, "only": [f"sizing|{leader}|{rest[0]}"] * (9 - 2 * place)}
        found.append(measured("single.discoveries", {"judge": judge}, 27.0 - 5 * place, n=60, detail=detail))
    found.append(measured("panel.discoveries", {}, 20.0, n=60, detail={"family": 60, "found": []}))
    more = {"n": 120, "n_of": "items of known quality", "detail": {"judges": 3, "r": 0.21}}
    found += [measured("panel.effective_judges", {"dimension": dimension}, 2.11, **more) for dimension in VALUES]
    return found


def outside() -> list[Measurement]:
    pairs = [(AGGREGATE, "Otter", "Stoat"), (AGGREGATE, "Badger", "Stoat"), (AGGREGATE, "Weasel", "Stoat")]
    found = [
        measured(
            "probe.contrast", {"dimension": d, "high": high, "low": low}, value, n=240, n_of="common cycles",
            low=value - 0.06, high=value + 0.06, level=0.95, detail={"p": 0.3, "judge": "tarn-1", "family": "tarn"},
        )
        for (d, high, low), value in zip(pairs, (0.031, -0.022, 0.187), strict=True)
    ]  # fmt: skip
    detail = {"pairs": [list(pair) for pair in pairs], "rho": {"north": 1.0, "strand": 1.0, "quay": 0.3}}
    return [*found, measured("probe.state", {}, 3.0, n=3, n_of="pairs", detail=detail)]


CELL = {
    "cell_a": (1.44, -2.61, "passed", 0.0002, "auditor"), "cell_b": (3.97, -0.22, "substance", 0.04, "auditor"),
    "paraphrase": (4.11, -0.04, "invariant", 0.5, None), "fact_flip": (3.52, -0.59, "noticed", 0.0004, "north"),
}  # fmt: skip


def cells() -> list[Measurement]:
    found = []
    honest = {"q1": 3.84, "median": 4.12, "q3": 4.31}
    labels = {"dimension": AGGREGATE}
    found.append(measured("cell.honest", labels, 4.19, low=4.1, high=4.27, level=0.95, detail=honest))
    for at, (cell, (mean, gate, outcome, p, family)) in enumerate(CELL.items()):
        labels = {"cell": cell, "dimension": AGGREGATE}
        values = [round(mean + 0.02 * (place - 25) * (1 + at % 2), 4) for place in range(50)]
        detail = {"q1": values[12], "median": mean, "q3": values[37], "primary": "panel", "clusters": 5}
        more = {"n": 50, "n_of": "trajectories", "level": 0.95}
        more["detail"] = {**detail, "values": values}
        found.append(measured("cell.score", labels, mean, low=mean - 0.07, high=mean + 0.07, **more))
        more.pop("detail")
        found.append(measured("cell.kappa", labels, 0.02, low=-0.1, high=0.14, detail={"clusters": 5}, **more))
        detail = {"status": "publish", "unanimous": True, "leave_one_out": True}
        found.append(measured("cell.agreement", {"cell": cell}, 0.55, detail=detail, n=50, n_of="trajectories"))
        detail = {"outcome": outcome, "p": p, "p_holm": min(4 * p, 1.0), "honest_mean": 4.19}
        bounds = {"low": gate - 0.12, "high": gate + 0.12}
        found.append(measured("cell.gate", {"cell": cell}, gate, detail=detail, **bounds, **more))
        detail = {"family": family, "triggered": False}
        found.append(measured("cell.halo", {"cell": cell}, 0.04 if family else 0.0, detail=detail, **more))
        for family_out in ("north", "strand", "quay"):
            turned = "inconclusive" if (cell, family_out) == ("cell_b", "quay") else outcome
            labels = {"cell": cell, "dropped": family_out}
            found.append(measured("cell.drop", labels, gate - 0.1, detail={"outcome": turned}, **more))
    found.append(measured("cell.score", {"cell": "ladder", "dimension": AGGREGATE}, 3.0, n=40, detail=honest))
    found.append(measured("cell.separation", {"dimension": AGGREGATE}, 2.53, low=2.4, high=2.66, level=0.95))
    for agent, share in zip(sorted(runs.LEVELS), (0.31, 0.0, 0.04, 0.62, 0.09), strict=True):
        bounds = {"low": max(share - 0.05, 0.0), "high": share + 0.06, "level": 0.95}
        found.append(measured("terse.share", {"agent": agent}, share, n=250, n_of="honest records", **bounds))
    return found


def style() -> list[Measurement]:
    scan = [[tokens, round(0.1 + 0.9 / (1 + abs(tokens - 64) / 20), 3), 3 * tokens] for tokens in range(40, 240, 8)]
    detail = {"difference": 0.82, "p": 0.003, "scan": scan}
    found = [measured("style.threshold", {"dimension": AGGREGATE}, 64.0, detail=detail)]
    for high, low in combinations(sorted(runs.LEVELS, key=lambda a: -runs.LEVELS[a]), 2):
        labels = {"dimension": AGGREGATE, "high": high, "low": low}
        gap = runs.LEVELS[high] - runs.LEVELS[low]
        p = 0.001 if gap > 0.3 else 0.4
        found.append(measured("length_matched.contrast", labels, gap / 2, n=90, detail={"p": p, "p_holm": p}))
    return found


def probes() -> list[Measurement]:
    found = []
    for at, (split, gap, p) in enumerate((("all", -0.009, 0.86), ("instrument:ORL", 0.031, 0.55))):
        sides = {"n_post": 250, "n_earlier": 1000 - 100 * at, "clusters_post": 1, "clusters_earlier": 4}
        labels = {"dimension": AGGREGATE, "split": split}
        more = {"low": gap - 0.1, "high": gap + 0.1, "level": 0.95, "detail": {"p": p, **sides, "absent": ["SOL"]}}
        found.append(measured("contamination.gap", labels, gap, **more))
    for dimension in VALUES:
        changed = dimension == "limits"
        shift = -0.42 if changed else 0.01
        detail = {
            "sd_before": 0.6, "sd_after": 0.81 if changed else 0.6, "p": 0.001 if changed else 0.7, "judge": "quay-1",
            "rubric": "v1.1", "order_before": list(runs.LEVELS), "order_after": list(runs.LEVELS)[::-1],
            "flips": 10 if changed else 0, "changed": changed,
        }  # fmt: skip
        more = {"low": shift - 0.09, "high": shift + 0.09, "level": 0.95, "detail": detail}
        found.append(measured("anchor.shift", {"dimension": dimension}, shift, n=120, **more))
    return found


def repeats() -> list[Measurement]:
    labels = {"judge": "strand-2", "ddof": "1"}
    return [measured("noise.repetition_stability", labels, 0.9874, n=250)]


# --- claims ---------------------------------------------------------------------------------------------------------


def others(level: str | None = None) -> list[Verdict]:
    """A claim about each of two cells; ``level`` overrides theirs."""
    found = []
    for cell, words in (("cell_a", "scores low with"), ("cell_b", "scores like honest records with")):
        claim = Claim(
            id=measurement_id("cell", {"cell": cell}), scope="adversarial-cell", subjects=(cell,), dimension=AGGREGATE,
            statement=f"What {cell.replace('_', ' ')} holds {words} this panel.", asserts_order=False,
        )  # fmt: skip
        own = level or ("headline" if cell == "cell_a" else "no-claim")
        agreement = "halt" if level else "publish"
        standing = "stable" if own == "headline" else "judge-dependent"
        found.append(runs.verdict(claim, own, agreement, standing, "passed"))
    return [replace(found[0], amended=("gates.publish",)), *found[1:]]


def rested(verdict: Verdict, measurements: Sequence[Measurement]) -> Verdict:
    """The verdict on the measurements about its subjects, and amended where a kappa cut-off gates it."""
    subjects = set(verdict.claim.subjects)
    names = ("contrast", "lofo.contrast", "lofo.effect", "cell.gate", "cell.halo", "probe.contrast", "recusal.contrast")
    on = [
        m for m in measurements if m.name in names and m.labels.get("dimension", AGGREGATE) == verdict.claim.dimension
    ]
    ids = [m.id for m in on if _about(m, subjects, len(verdict.claim.subjects))]
    amended = ("gates.publish",) if verdict.claim.dimension == "limits" else verdict.amended
    return replace(verdict, measurements=(*verdict.measurements, *ids), amended=amended)


def _about(item: Measurement, subjects: set[str], size: int) -> bool:
    named = {item.labels.get(key) for key in ("high", "low", "agent", "cell")} - {None}
    return bool(named) and (named <= subjects if size > 1 else bool(named & subjects))


# --- the judgments that numbers could come from ----------------------------------------------------------------------

DECISIONS = 60


def judgment(decision: Decision, judge: str, family: str, trial: int = 1, **more) -> Judgment:
    at = int(decision.record_id[-5:]) + trial
    base = {
        "status": "ok",
        "scores": {name: float(1 + (at + place) % 5) for place, (name, _) in enumerate(runs.DIMENSIONS)},
        "evidence": ("41,200", "3.1 %"),
        "lookahead_check": "clean",
    }
    return Judgment(
        trajectory=decision.record_id, judge=judge, family=family, rubric="v1.0", trial=trial,
        call_key=sha256_text(f"{judge} {decision.record_id} {trial}"), **{**base, **more},
    )  # fmt: skip


def control_texts(count: int = 4) -> list[Decision]:
    """Texts of a control cell."""
    made = runs.decisions({"control": ""}, count)
    return [
        replace(one, record_id=f"cell-{at:05d}", derivation=Derivation(kind="cell_b")) for at, one in enumerate(made)
    ]


def judged(**more) -> AssayRun:
    """The realistic run with a panel of three, one of whom repeats, an outside judge, and other anchors."""
    run = runs.realistic(**more)
    kept = run.decisions[:DECISIONS]
    names = {one.record_id for one in kept}
    run = replace(run, decisions=kept, evidence=tuple(one for one in run.evidence if one.decision in names))
    every = [*kept, *control_texts()]
    panel = [judgment(one, spec.name, spec.family) for spec in run.study.judges for one in every]
    first = run.study.judges[0]
    panel += [judgment(one, first.name, first.family, trial=2) for one in every]
    panel[3] = replace(panel[3], status="invalid", scores={}, evidence=(), reason="no JSON object")
    panel[4] = replace(panel[4], status="refused", scores={}, evidence=(), reason=None)
    outside = [judgment(one, "tarn-1", "tarn") for one in run.decisions]
    anchors = [replace(judgment(one, first.name, first.family), rubric="v1.1", call_key="") for one in every[:10]]
    parts = {"panel": panel, "anchors": anchors, "outside": outside}
    return replace(run, judgments=parts, texts=every)
