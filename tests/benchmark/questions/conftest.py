"""One whole generated set, made once."""

from __future__ import annotations

import pickle

import pytest

from assaymark.benchmark import questions
from assaymark.market import History, synthetic_history


@pytest.fixture(scope="session")
def market() -> History:
    return synthetic_history(0)


@pytest.fixture(scope="session")
def whole(once, market) -> questions.QuestionSet:
    """All 6,269 questions of the embedded market, for all workers."""

    def build(folder) -> None:
        (folder / "set").write_bytes(pickle.dumps(questions.generate_questions(market)))

    return pickle.loads((once("all-questions", build) / "set").read_bytes())
