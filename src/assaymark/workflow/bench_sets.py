"""`assaymark bench questions`: a whole set of questions as files, for use anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from assaymark.benchmark.questions.card import dataset_card, manifest
from assaymark.benchmark.questions.generate import generate_questions
from assaymark.benchmark.questions.published import write_questions
from assaymark.market import open_history, synthetic_history
from assaymark.workflow.folder import write_atomic, write_json
from assaymark.workflow.progress import Progress, silent


@dataclass(frozen=True, slots=True)
class Written:
    """A set that was written: how many questions, and the hash of the file that they are in."""

    questions: int
    sha256: str


def write_set(folder: Path, *, market: str | None, seed: int, progress: Progress = silent) -> Written:
    """Write a set, its card and its manifest.

    The same market and seed make the same bytes on any machine.

    Raises
    ------
    InputError
        The snapshot cannot be read, or is too short or lacks classes: says what is needed.
    """
    progress("making questions", 0, 1)
    history = synthetic_history(seed) if market is None else open_history(Path(market))
    made = generate_questions(history, seed=seed)
    folder.mkdir(parents=True, exist_ok=True)
    digest = write_questions(folder / "questions.jsonl", made.questions)
    write_atomic(folder / "card.md", dataset_card(made))
    write_json(folder / "manifest.json", manifest(made))
    progress("making questions", 1, 1)
    return Written(len(made.questions), digest)
