"""Networked sources of prices and macro series: each an optional client, asked politely, answered by a snapshot."""

from __future__ import annotations

from assaymark.market.sources.huggingface import Questions
from assaymark.market.sources.pulling import SOURCES, pull, pull_questions
from assaymark.market.sources.request import Manners, Request, Source

__all__ = ["SOURCES", "Manners", "Questions", "Request", "Source", "pull", "pull_questions"]
