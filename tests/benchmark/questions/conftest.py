"""One whole generated set, made once."""

from __future__ import annotations

import pytest

from assaymark.benchmark.questions import QuestionSet, generate_questions
from assaymark.market import History, synthetic_history


@pytest.fixture(scope="session")
def market() -> History:
    return synthetic_history(0)


@pytest.fixture(scope="session")
def whole(market) -> QuestionSet:
    """All 6,269 questions of the embedded market."""
    return generate_questions(market)
