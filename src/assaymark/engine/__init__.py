"""Model calls: the call key, the ledger that nothing is lost from, and the runner that asks each call once."""

from __future__ import annotations

from assaymark.engine.calls import CallSpec, Finish, Message, Model, Reply, Role, Text
from assaymark.engine.compute import beside
from assaymark.engine.ledger import Ledger
from assaymark.engine.models import Registry, resolve
from assaymark.engine.rows import Attempt, End, Outcome, Source
from assaymark.engine.runner import Failure, Progress, RunSummary, run_calls

__all__ = [
    "Attempt",
    "CallSpec",
    "End",
    "Failure",
    "Finish",
    "Ledger",
    "Message",
    "Model",
    "Outcome",
    "Progress",
    "Registry",
    "Reply",
    "Role",
    "RunSummary",
    "Source",
    "Text",
    "beside",
    "resolve",
    "run_calls",
]
