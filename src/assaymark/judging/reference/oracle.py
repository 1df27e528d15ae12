"""The constraint-arithmetic oracle as a judge, and its scores of the decisions of a study."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from assaymark.engine.calls import CallSpec, Message, Reply
from assaymark.errors import InputError, ModelError
from assaymark.judging.oracle import Book, Reconciliation, book_of, oracle_score, reconcile
from assaymark.judging.prompts import user_messages
from assaymark.judging.reading import read_decision
from assaymark.judging.reference.judges import ORACLE, dimensions_of
from assaymark.judging.rubric import Rubric, load_rubric
from assaymark.prompting.fences import sections
from assaymark.prompting.material_reading import read_material

if TYPE_CHECKING:
    from assaymark.protocol import Study
    from assaymark.records import Context, Decision

ORACLE_VERSION = "1"
"""Changes with anything that can change a score; part of the fingerprint."""

DIMENSION = "constraint_awareness"
"""All that the oracle knows anything about."""

RUBRIC = "constraints-1.0"
"""The rubric that asks for this dimension alone, in the words of v1.1."""

_MOST_QUOTES = 12
_MOST_QUOTED = 200


class ConstraintOracle:
    """A judge of constraint awareness by rule: it reads one rendered prompt, like any judge, and works the book out.

    It has no noise, no taste and no arguments. It answers under rubrics that ask for ``constraint_awareness`` alone
    (`RUBRIC`) and refuses every other one: a score that it has no ground for would be a guess.
    """

    name = ORACLE

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call.

        Raises
        ------
        ModelError
            The reply schema asks for other dimensions, arguments were given, the prompt is none of this package's, or
            the decision is not made of orders on a portfolio with prices. Asking again cannot help.
        """
        if call.args:
            raise ModelError(f"{ORACLE} takes no arguments (got {', '.join(sorted(call.args))})", retryable=False)
        if (asked := dimensions_of(call)) != (DIMENSION,):
            raise ModelError(
                f"{ORACLE} knows {DIMENSION} alone (asked for {', '.join(asked)}); use rubric {RUBRIC}", retryable=False
            )
        parts = [part.text for message in call.messages if message.role == "user" for part in message.parts]
        try:
            found = _graded(parts)
        except InputError as exc:
            raise ModelError(f"{ORACLE} cannot read the prompt: {exc}", retryable=False) from None
        if found is None:
            raise ModelError(f"{ORACLE} needs orders on a portfolio with prices; there are none here", retryable=False)
        return Reply(text=_answer(*found), model=ORACLE, fingerprint=f"{ORACLE}@{ORACLE_VERSION}")


def asked_alike(rubric: Rubric) -> bool:
    """Whether a rubric asks for constraint awareness in the words that the oracle scores by.

    Only then is the oracle's score known quality under that rubric.

    >>> asked_alike(load_rubric("v1.1")), asked_alike(load_rubric("v1.0"))
    (True, False)
    """
    wording = {one.name: one for one in rubric.dimensions}
    return wording.get(DIMENSION) == load_rubric(RUBRIC).dimensions[0]


def oracle_scores(
    decisions: Sequence[Decision], contexts: Iterable[tuple[str, Context]], study: Study
) -> dict[str, int]:
    """The oracle's score of constraint awareness of every decision of a study that is made of orders, by record id.

    Each is read from the same rendered and blinded prompt that the judges are shown. Decisions that are not made of
    orders, or whose material has no portfolio or lacks the price of a holding, have no score and are not listed.

    Parameters
    ----------
    decisions : sequence of Decision
        All of the records, as for `user_messages`; those that the study leaves out get no score.
    contexts : iterable of (context id, Context)
        At least those of the decisions; they may come one after the other.
    study : Study
        For the records it is about and the names that stay.

    Raises
    ------
    InputError
        A decision's context is missing, or holds anything from after the decision.
    """
    return message_scores(user_messages(decisions, contexts, study))


def message_scores(shown: Mapping[str, Message]) -> dict[str, int]:
    """The same from messages that were rendered already, by record id."""
    graded = {name: _graded([part.text for part in message.parts]) for name, message in shown.items()}
    return {name: oracle_score(found, kept=book.kept) for name, (book, found) in _known(graded)}


Graded = tuple[Book, Reconciliation]
"""The book of a decision, and what its text states about it."""


def _known(graded: Mapping[str, Graded | None]) -> Iterable[tuple[str, Graded]]:
    return ((name, found) for name, found in graded.items() if found is not None)


def _graded(parts: Sequence[str]) -> Graded | None:
    """A prompt worked out; None where there is no book to be made. Orders that cannot be carried out reconcile nothing.

    Raises InputError where the parts are no material and decision of this package.
    """
    if len(parts) != 2:
        raise InputError("prompt", [f"a material and a decision are needed (got {len(parts)} parts)"])
    context = _context(parts[0])
    shown = read_decision(sections(parts[1]))
    book = book_of(context, shown.actions)
    if book is None:
        return None
    if book.after is None:
        return book, Reconciliation(())
    text = "\n\n".join(one.text for one in shown.texts)
    return book, reconcile(text, book.after, context.constraints, names=[item.id for item in context.instruments])


@lru_cache(maxsize=16)
def _context(text: str) -> Context:
    """One reading serves every decision of a context."""
    return read_material(sections(text))


def _answer(book: Book, found: Reconciliation) -> str:
    """The reply as JSON text: the wrong statements as evidence, every verdict in the comment."""
    stated = [part for part in found.parts if part.verdict != "absent"]
    wrong = [quote for part in stated if part.verdict == "wrong" for quote in part.quotes]
    broken = [check.rule for check in book.checks if not check.kept]
    words = [f"{part.quantity} {part.verdict}" for part in stated] or ["nothing is reconciled"]
    if book.after is None:
        words = ["the orders cannot be carried out"]
    return json.dumps(
        {
            "scores": {DIMENSION: oracle_score(found, kept=book.kept)},
            "evidence": [_printable(quote) for quote in wrong[:_MOST_QUOTES]],
            "lookahead_check": "unsure",
            "comment": "; ".join([*words, *(f"{rule} broken" for rule in broken)]),
        }
    )


def _printable(quote: str) -> str:
    """A passage cut short, in characters that UTF-8 can carry."""
    return quote[:_MOST_QUOTED].encode("utf-8", "replace").decode("utf-8")
