"""One whole generated set, made once."""

from __future__ import annotations

import pytest

from assaymark.benchmark import questions
from assaymark.market import History, synthetic_history


@pytest.fixture(scope="session")
def market() -> History:
    return synthetic_history(0)


@pytest.fixture(scope="session")
def whole(market) -> questions.QuestionSet:
    """All 6,269 questions of the embedded market."""
    return questions.generate_questions(market)
