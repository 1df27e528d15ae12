"""Networked sources of prices and macro series: each an optional client, asked politely, answered by a snapshot.

`pull` asks one source and gives a `Snapshot`; `pull_questions` fetches a file of questions. `SOURCES` says what there
is. Importing this package imports no client library and opens no connection.
"""

from __future__ import annotations

from assaymark.market.sources.huggingface import Questions
from assaymark.market.sources.pulling import SOURCES, pull, pull_questions
from assaymark.market.sources.request import Manners, Request, Source

__all__ = ["SOURCES", "Manners", "Questions", "Request", "Source", "pull", "pull_questions"]
