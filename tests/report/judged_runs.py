"""Runs with the judgments that their numbers could come from, written by hand."""

from __future__ import annotations

from dataclasses import replace

import assay_runs as runs

from assaymark.records import Decision, Derivation, Judgment, sha256_text
from assaymark.report import AssayRun
from assaymark.report import records as record_pages

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


def cells(count: int = 4) -> list[Decision]:
    """Control texts."""
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
    every = [*kept, *cells()]
    panel = [judgment(one, spec.name, spec.family) for spec in run.study.judges for one in every]
    first = run.study.judges[0]
    panel += [judgment(one, first.name, first.family, trial=2) for one in every]
    panel[3] = replace(panel[3], status="invalid", scores={}, evidence=(), reason="no JSON object")
    panel[4] = replace(panel[4], status="refused", scores={}, evidence=(), reason=None)
    outside = [judgment(one, "tarn-1", "tarn") for one in run.decisions]
    anchors = [replace(judgment(one, first.name, first.family), rubric="v1.1", call_key="") for one in every[:10]]
    parts = {"panel": panel, "anchors": anchors, "outside": outside}
    return replace(run, judged=record_pages.Judged(parts, every))
