"""The questions of PortBench: seven templates with exact answers, made from a market, asked, read and scored."""

from assaymark.benchmark.questions.generate import QuestionSet, generate_questions
from assaymark.benchmark.questions.parse import Read, read_answer
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
from assaymark.benchmark.questions.question import Question
from assaymark.benchmark.questions.render import PROMPT_VERSION, template_digest
from assaymark.benchmark.questions.schedule import COUNTS
from assaymark.benchmark.questions.score import QAScore, score_answer

__all__ = [
    "ABLATED",
    "CONDITIONS",
    "COUNTS",
    "LEVELS",
    "PROMPT_VERSION",
    "SPLITS",
    "TEMPLATES",
    "Answer",
    "Condition",
    "Context",
    "Payload",
    "QAScore",
    "Question",
    "QuestionSet",
    "Read",
    "Regime",
    "Split",
    "Template",
    "generate_questions",
    "read_answer",
    "score_answer",
    "template_digest",
]
