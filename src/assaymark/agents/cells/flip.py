"""Fact-flip: an honest text with exactly one number made wrong, and every other byte as it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from assaymark.agents.cells.admissibility import RECONCILED, book_if_any, checked
from assaymark.agents.cells.book import held_values, is_held
from assaymark.agents.cells.composed import REDRAWS, Change, Composed, failed, refuse
from assaymark.agents.cells.figures import Figure, figures_in, mentions_in, outside
from assaymark.agents.cells.statements import Stated, statements_of
from assaymark.errors import NotMeasurableError
from assaymark.prompting.texts import judged_text
from assaymark.records import Context, Decision

_SIGNED: Final = ("return", "alpha", "beta", "correlation")
_FACTORS: Final = (1.6, 4.0)


def fact_flip(decision: Decision, context: Context, rng: np.random.Generator) -> Composed:
    """The same decision with one number of its text changed to a wrong one.

    A number that the text gives rightly for a feature of an instrument is taken first, else one of the arithmetic of
    the book, else one that the material holds. Its sign is turned where it prints one that means something, or its
    size is changed; the new value is held nowhere in the material. ``change`` says what was done, and where.

    Parameters
    ----------
    decision : Decision
        An honest decision; its judged texts count as one.
    context : Context
        What it was made on.
    rng : numpy Generator
        Draws the number and its new value.

    Raises
    ------
    NotMeasurableError
        The text has no number that can be made wrong, or no draw was admissible.

    Examples
    --------
    The session in ``docs/cells.md`` makes one of each kind.
    """
    text = judged_text(decision)
    choices = _choices(text, decision, context)
    if not choices:
        raise NotMeasurableError(
            "fact_flip cannot be made from this decision: its text states no number that the material holds"
        )
    held = held_values(context, decision.actions)
    last: Composed | None = None
    for _ in range(REDRAWS):
        figure, signed, place = choices[int(rng.integers(len(choices)))]
        new = _wrong(figure, signed, place, held, rng)
        if new is None:
            continue
        last = checked(
            Composed(
                kind="fact_flip",
                actions=decision.actions,
                text=text[: figure.start] + new + text[figure.end :],
                confidence=decision.confidence,
                original=decision,
                change=Change(figure.quote, new, figure.start),
            ),
            context,
        )
        if not failed(last.admissibility):
            return last
    raise refuse("fact_flip", last.admissibility if last else (), REDRAWS)


Choice = tuple[Figure, bool, bool]
"""A figure, whether its sign can be turned, and whether it is a place between 0 and 1."""


def _choices(text: str, decision: Decision, context: Context) -> list[Choice]:
    """The figures that may be changed: of the best sort that the text has any of."""
    book = book_if_any(context, decision)
    said = statements_of(text, context, decision.actions, book)
    features = [one for one in said.features if one.right and _telling(one.figure)]
    if features:
        return [_choice(one) for one in features]
    amounts = [one for one in said.amounts if one.right and one.about in RECONCILED and _telling(one.figure)]
    if amounts:
        return [(one.figure, False, False) for one in amounts]
    held = held_values(context, decision.actions)
    loose = outside(figures_in(text), mentions_in(text, context))
    return [(one, False, False) for one in loose if _telling(one) and is_held(held, abs(one.value), one.half)]


def _choice(one: Stated) -> Choice:
    kind = one.about.split("_")[0]
    return one.figure, one.figure.signed and kind in _SIGNED, kind == "range" and not one.figure.percent


def _telling(figure: Figure) -> bool:
    """Whether a figure is a measurement: it has a fraction or a percent sign, and is not zero."""
    return (figure.percent or figure.decimals > 0) and figure.value != 0


def _wrong(figure: Figure, signed: bool, place: bool, held: Sequence[float], rng: np.random.Generator) -> str | None:
    """Another value as it is printed; None where none was found."""
    for _ in range(REDRAWS):
        if signed and rng.random() < 0.5:
            return figure.written(-figure.value)
        factor = float(rng.uniform(*_FACTORS))
        value = figure.value * factor if rng.random() < 0.5 else figure.value / factor
        if place:
            value = float(rng.uniform(0.02, 0.98))
        # A size of a few last digits has to move by more of them than a factor gives.
        value = value + np.copysign(8 * figure.step, value) if abs(value - figure.value) < 8 * figure.step else value
        new = figure.written(value)
        size = abs(figures_in(new)[0].value)
        if size and (not place or size <= 1) and not is_held(held, size, figure.half):
            return new
    return None
