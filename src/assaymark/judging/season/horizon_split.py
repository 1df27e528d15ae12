"""Horizons that are longer than a judge's window, cut at step boundaries and never silently.

The rule: parts are filled from the first step on, each as full as the budget allows. A step that alone is longer than
the budget is a part of its own and marked `over`; what the model makes of it is recorded like any reply. From the
second part on some of the budget is kept free for the judge's notes on what came before. Sub-scores of the parts are
averaged by their number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.engine.calls import Text
from assaymark.errors import InputError, Problem
from assaymark.judging.season.horizon_rendering import step_texts
from assaymark.judging.season.horizon_replies import MOST_NOTE_TOKENS
from assaymark.judging.season.horizon_types import Horizon, HorizonBook
from assaymark.prompting.texts import token_count
from assaymark.records import Constraint

BUDGET: Final = 120_000
"""Whitespace tokens of the steps shown in one call, where a plan says nothing else."""

LEAST_BUDGET: Final = 2 * MOST_NOTE_TOKENS


@dataclass(frozen=True, slots=True)
class HorizonPart:
    """Consecutive steps of a horizon that are shown in one call.

    ``at`` counts from 1 to ``of``; ``whole`` are the numbers of the first and the last step of the whole horizon.
    ``body`` is the steps as text, of ``tokens`` whitespace tokens; ``before`` is the book before the first step and
    ``rules`` those in force at it. ``over`` says that its one step alone is longer than the budget.
    """

    at: int
    of: int
    first: int
    last: int
    whole: tuple[int, int]
    tokens: int
    over: bool
    before: HorizonBook | None
    rules: tuple[Constraint, ...]
    body: Text

    @property
    def size(self) -> int:
        """The number of steps shown."""
        return self.last - self.first + 1


def split_horizon(horizon: Horizon, *, budget: int = BUDGET) -> tuple[HorizonPart, ...]:
    """The parts of a horizon, by the rule above; one part if it fits.

    Parameters
    ----------
    budget : int
        Whitespace tokens of the steps in one call (`prompting.texts.token_count`). System message, mandate and the
        fences of the head come on top.

    Raises
    ------
    InputError
        The budget leaves no room beside a judge's notes.
    """
    if budget < LEAST_BUDGET:
        raise InputError("horizon", [Problem("budget", f"must be at least {LEAST_BUDGET} tokens (got {budget})")])
    texts = step_texts(horizon.steps)
    return parts_of(horizon, texts, budget=budget, reserve=MOST_NOTE_TOKENS)


def parts_of(horizon: Horizon, texts: Sequence[str], *, budget: int, reserve: int) -> tuple[HorizonPart, ...]:
    """Steps as text, in parts within the budget; all but the first part keep ``reserve`` tokens free."""
    sizes = [token_count(text) for text in texts]
    cuts = cut(sizes, budget, reserve)
    rooms = [budget, *[budget - reserve] * (len(cuts) - 1)]
    return tuple(_part(horizon, texts, sizes, at, cuts, rooms[at]) for at in range(len(cuts)))


def cut(sizes: Sequence[int], budget: int, reserve: int = 0) -> list[range]:
    """Places of consecutive steps with these sizes, as full as the budget allows.

    >>> cut([4, 4, 4, 9, 1], 8)
    [range(0, 2), range(2, 3), range(3, 4), range(4, 5)]
    """
    cuts: list[range] = []
    start = full = 0
    for at, size in enumerate(sizes):
        room = budget - (reserve if cuts else 0)
        if at > start and full + size > room:
            cuts.append(range(start, at))
            start, full = at, 0
        full += size
    return [*cuts, range(start, len(sizes))]


def _part(
    horizon: Horizon, texts: Sequence[str], sizes: Sequence[int], at: int, cuts: Sequence[range], room: int
) -> HorizonPart:
    """One part."""
    places = cuts[at]
    held = [step.book for step in horizon.steps[: places.start] if step.book is not None]
    tokens = sum(sizes[place] for place in places)
    return HorizonPart(
        at=at + 1,
        of=len(cuts),
        first=horizon.steps[places.start].number,
        last=horizon.steps[places.stop - 1].number,
        whole=(horizon.first, horizon.last),
        tokens=tokens,
        over=len(places) == 1 and tokens > room,
        before=held[-1] if held else horizon.before,
        rules=horizon.steps[places.start].constraints,
        body=Text.of("\n\n".join(texts[place] for place in places)),
    )
