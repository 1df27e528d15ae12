"""The questions of PortBench: seven templates with exact answers, made from a market, asked, read and scored."""

from __future__ import annotations

from assaymark.benchmark.questions.answers import (
    FORMULA,
    JUDGMENT,
    Cell,
    QAScore,
    QATable,
    Read,
    Scored,
    read_answer,
    score_answer,
    tabulate,
)
from assaymark.benchmark.questions.payloads import (
    ABLATED,
    CONDITIONS,
    LEVELS,
    SPLITS,
    TEMPLATES,
    Answer,
    Condition,
    Context,
    Payload,
    Regime,
    Split,
    Template,
)
from assaymark.benchmark.questions.published import (
    COUNTS,
    QuestionSet,
    answer_text,
    dataset_card,
    generate_questions,
    manifest,
    question_line,
    questions_digest,
    read_questions,
    write_questions,
)
from assaymark.benchmark.questions.render import PROMPT_VERSION, template_digest
from assaymark.benchmark.questions.templates import Question
from assaymark.benchmark.reference import guess, solve

__all__ = [
    "ABLATED", "CONDITIONS", "COUNTS", "FORMULA", "JUDGMENT", "LEVELS", "PROMPT_VERSION", "SPLITS", "TEMPLATES",
    "Answer", "Cell", "Condition", "Context", "Payload", "QAScore", "QATable", "Question", "QuestionSet", "Read",
    "Regime", "Scored", "Split", "Template", "answer_text", "dataset_card", "generate_questions", "guess", "manifest",
    "question_line", "questions_digest", "read_answer", "read_questions", "score_answer", "solve", "tabulate",
    "template_digest", "write_questions",
]  # fmt: skip
