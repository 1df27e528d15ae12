"""The questions of PortBench: seven templates with exact answers, generated from a market; parsing and scoring."""

# ruff: noqa: F401, I001

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.benchmark.questions.answers import (
        FORMULA, JUDGMENT, MeanScore, ParsedAnswer, QAScore, ScoredReply, read_answer, score_answer, tabulate,
        MeanScore as Cell, ParsedAnswer as Read, ScoredReply as Scored,
    )  # fmt: skip
    from assaymark.benchmark.questions.payloads import (
        ABLATED, CONDITIONS, LEVELS, REGIME_NAMES, SPLITS, TEMPLATES, Answer, Condition, Context, Direction, Number,
        PairAllocation, Payload, PositionSize, Printed, Rebalancing, Regime, RegimeCall, RegimeView, ReturnDirection,
        SharpeAllocation, Split, TailRisk, Template, Trade, Weights,
    )  # fmt: skip
    from assaymark.benchmark.questions.published import (
        COUNTS, QuestionSet, answer_text, dataset_card, generate_questions, manifest, question_line, questions_digest,
        read_questions, split_counts, split_counts as shared_out, split_of, write_questions,
    )  # fmt: skip
    from assaymark.benchmark.questions.render import PROMPT_VERSION, template_digest
    from assaymark.benchmark.questions.templates import CHANGES, Question, answer_of, binds, view_of, view_of as day_of
    from assaymark.benchmark.reference import guess, solve

__all__ = [
    "ABLATED", "CHANGES", "CONDITIONS", "COUNTS", "FORMULA", "JUDGMENT", "LEVELS", "PROMPT_VERSION", "REGIME_NAMES",
    "SPLITS", "TEMPLATES", "Answer", "Condition", "Context", "Direction", "MeanScore", "Number", "PairAllocation",
    "ParsedAnswer", "Payload", "PositionSize", "Printed", "QAScore", "Question", "QuestionSet", "Rebalancing",
    "Regime", "RegimeCall", "RegimeView", "ReturnDirection", "ScoredReply", "SharpeAllocation", "Split", "TailRisk",
    "Template", "Trade", "Weights", "answer_of", "answer_text", "binds", "dataset_card",
    "generate_questions", "guess", "manifest", "question_line", "questions_digest", "read_answer", "read_questions",
    "score_answer", "solve", "split_counts", "split_of", "tabulate", "template_digest", "view_of", "write_questions",
]  # fmt: skip

__getattr__ = exported(__name__)
