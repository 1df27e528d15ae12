"""Provenance pages, from a number back to its calls: judgments, decisions, and single calls with their replies. A
measurement links to the judgments it was computed from, a judgment to its call, and a call to its prompt texts. All
pages are static files below a megabyte, with every text stored once."""

# ruff: noqa: F401  # names for what is outside; nothing of it is promised, and so there is no __all__

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.report.records.answers import AnswerIndex, answer_pages
    from assaymark.report.records.calls import PAGE, AskedCall, JudgeCall, SameAnswers, call_pages, fit_markup, reveal
    from assaymark.report.records.judgments import StudyProvenance, Subject, lineage, row_id

__getattr__ = exported(__name__)
