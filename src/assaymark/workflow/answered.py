"""What judges answered for their datasheets, as a run folder keeps it."""

from __future__ import annotations

from collections import defaultdict

from assaymark.records import Judgment, PairCall
from assaymark.report.trail.answers import Answers
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.tables import PAIRS, POINTS, Store


def stored_answers(folder: RunFolder) -> Answers:
    """What judges answered for the datasheets of a folder; empty for those read from a log.

    Raises
    ------
    LedgerError
        A table is damaged.
    """
    store = Store(folder)
    pairs: defaultdict[str, list[PairCall]] = defaultdict(list)
    for pair in store.read(PAIRS) if store.rows(PAIRS) else ():
        pairs[pair.judge].append(pair)
    texts: defaultdict[str, list[Judgment]] = defaultdict(list)
    for text in store.read(POINTS) if store.rows(POINTS) else ():
        texts[text.judge].append(text)
    return Answers(pairs, texts)
