"""From a number back to what was asked: pages of judgments, of decisions, and of single calls with their replies. A
measurement links to the judgments that it rests on, a judgment to its call, and a call to the texts that it showed. All
of it is static: pages that work from a file, each below a megabyte, with every text stored once."""

# ruff: noqa: F401  # names for what is outside; nothing of it is promised, and so there is no __all__

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.report.records.answers import Booklet, answer_pages
    from assaymark.report.records.calls import PAGE, Asked, AskedCall, SameAnswers, call_pages, shown_text, visible
    from assaymark.report.records.judgments import Subject, Trail, anchor, lineage

__getattr__ = exported(__name__)
