"""Agreement of `assaymark proofread` with a person on the labelled sentences of ``tests/claims/sentences.jsonl``."""

from __future__ import annotations

import csv
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from assaymark.claims.proofread import WORST, RunVerdicts
from assaymark.cli import main
from assaymark.workflow.proofread import Document, proofread, read_decided

SENTENCES = Path(__file__).resolve().parents[1] / "tests" / "claims" / "sentences.jsonl"
COLUMNS = ("part", "sentences", "compare", "found", "right", "marks")
UNSEEN: Mapping[str, tuple[float, float]] = {
    "2": (0.902, 0.961), "3": (0.805, 0.943), "4": (0.762, 0.970), "5": (0.871, 0.964), "6": (0.921, 1.0),
    "7": (0.968, 0.989),
}  # fmt: skip
"""Recall and precision of a part when it was first counted, before any phrase was changed for it."""

OPTIONS = ("--dimensions", "clarity,risk_control", "--cluster", "week")
LEVELS = {"GPT-5.5": 0.9, "Claude-Opus-4.1": 0.8, "gemini-2.5-pro": 0.1, "Qwen3 32B": -0.5}


def table_of_models(path: Path) -> None:
    """A table of scores of four models by three judges; the first two are alike."""
    draw = random.Random(6)  # with it the four are apart on every score, but for the first two
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["item", "week", "agent", "judge", "clarity", "risk_control"])
        for item in range(48):
            base = 3 + draw.gauss(0, 0.4)
            for agent, level in LEVELS.items():
                true = [base + level + draw.gauss(0, 0.45) for _ in range(2)]
                for judge in ("auditor", "reader", "skeptic"):
                    grades = [min(5, max(1, int(one + draw.gauss(0, 0.4) + 0.5))) for one in true]
                    rows.writerow([item, item // 4, agent, judge, *grades])


def labelled() -> list[dict[str, object]]:
    """Every sentence with its run, its part, whether it compares agents, and its mark."""
    return [json.loads(line) for line in SENTENCES.read_text(encoding="utf-8").splitlines()]


def read_label(one: Mapping[str, object], run: RunVerdicts) -> tuple[bool, str | None]:
    """Return whether a sentence is found to compare agents, and its mark."""
    found = proofread(Document(Path("text.txt"), str(one["text"]), "text", lambda _: False), run).found
    worst = min((each.finding for each in found), key=lambda each: WORST.index(each.mark), default=None)
    return worst is not None and worst.about == "comparison", None if worst is None else worst.mark


def count_labels(runs: Mapping[str, RunVerdicts]) -> Iterator[dict[str, int]]:
    """A row for each part."""
    counts: dict[object, Counter[str]] = {}
    for one in labelled():
        row = counts.setdefault(one["part"], Counter())
        compares, mark = read_label(one, runs[str(one["run"])])
        row["sentences"] += 1
        row["compare"] += bool(one["compares"])
        row["found"] += compares
        row["right"] += compares and bool(one["compares"])
        row["marks"] += mark == one["mark"] and compares == one["compares"]
    for part, row in counts.items():
        yield {"part": int(str(part)), **{name: row[name] for name in COLUMNS[1:]}}


def count_sentences(path: Path) -> None:
    """Make the two runs, and write the table."""
    with tempfile.TemporaryDirectory() as made:
        demo, table, models = (Path(made) / name for name in ("demo", "models.csv", "models"))
        table_of_models(table)
        measured = ["check", str(table), *OPTIONS, "--out", str(models)]
        for words in (["demo", "--out", str(demo)], measured):
            assert main([*words, "--quiet"]) == 0
        rows = list(count_labels({"demo": read_decided(demo), "models": read_decided(models)}))
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
