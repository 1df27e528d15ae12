"""Imported records with control cells beside them, a table of grades by people, and a study that uses everything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from imported_records import imported_records
from made_records import STUDY

from assaymark.records import Agent, Decision, Derivation, Rationale
from assaymark.workflow import RunFolder, store_records

DIMENSIONS = (
    "action_coherence", "constraint_awareness", "information_use", "position_sizing", "risk_alignment",
    "uncertainty_handling",
)  # fmt: skip
BOAST = (
    "This will certainly triple, without any doubt whatever, and nobody who understands markets can see it otherwise. "
    "The return of 999.9% that we saw proves it, volatility of 0.001 shows that risk has ended, and a yield of 77.7% "
) * 3


def derived(one: Decision, kind: str, text: str, *, parent: bool, known: dict[str, float] | None = None) -> Decision:
    return replace(
        one, record_id=f"{one.record_id}~{kind}",
        agent=one.agent if parent else Agent(id=f"composer-{kind}", family="composer"),
        rationales=(Rationale(text=text, kind="summary"),),
        derivation=Derivation(kind=kind, parent=one.record_id if parent else None, known_scores=known or {}),
    )  # fmt: skip


def cells(decisions: list[Decision]) -> list[Decision]:
    """Confident and wrong, terse, and one number changed, from every fourth record."""
    found = []
    for one in decisions[::4]:
        text = "\n".join(rationale.text for rationale in one.rationales)
        found.append(derived(one, "cell_a", BOAST, parent=False, known=dict.fromkeys(DIMENSIONS, 1.0)))
        found.append(derived(one, "cell_b", text[:160], parent=False))
        found.append(derived(one, "fact_flip", text.replace("1", "7"), parent=True))
    return found


def make(folder: Path) -> RunFolder:
    """A run folder with those records imported."""
    decisions, contexts = imported_records()
    run = RunFolder(folder)
    run.path.mkdir(parents=True)
    store_records(run, [*decisions, *cells(list(decisions))], contexts, ())
    return run


def grades(path: Path, *, seed: int = 1) -> Path:
    """A table of grades by two people, half points included, a few rows left blank."""
    rng = np.random.default_rng(seed)
    lines = [",".join(("trajectory", "judge", *DIMENSIONS))]
    decisions, _ = imported_records()
    for one in [*decisions, *cells(list(decisions))]:
        for judge in ("committee-1", "committee-2"):
            given = np.clip(np.round(2 * rng.normal(3.2, 0.8, len(DIMENSIONS))) / 2, 1, 5)
            shown = [f"{value:g}" for value in given] if rng.random() > 0.02 else [""] * len(DIMENSIONS)
            lines.append(",".join((one.record_id, judge, *shown)))
    path.write_text("\n".join(lines) + "\n")
    return path


def study(path: Path, *, people: bool = False, extra: str = "") -> Path:
    """Their study, which has an outside judge and an anchor probe, with control cells and people."""
    text = STUDY.read_text().replace(
        'derivations = ["honest"]', 'derivations = ["honest", "cell_a", "cell_b", "fact_flip"]'
    )
    if people:
        for name in ("committee-1", "committee-2"):
            text = text.replace(
                "# --- what is judged",
                f'[[judges]]\nname = "{name}"\nfamily = "human"\nmodel = "human/table"\n\n# --- what is judged', 1,
            )  # fmt: skip
    path.write_text(text + extra)
    return path
