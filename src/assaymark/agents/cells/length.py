"""Length-matched: the same decision and its facts at another length, by whole sentences and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from assaymark.agents.cells import phrases
from assaymark.agents.cells.admissibility import MATCHED_SHARE, checked
from assaymark.agents.cells.composed import REDRAWS, Composed, failed, refuse
from assaymark.agents.cells.features import features_of
from assaymark.agents.cells.figures import figures_in, sentences_of
from assaymark.agents.cells.statements import statements_of
from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.prompting.texts import judged_text, token_count
from assaymark.records import Context, Decision


def length_matched(decision: Decision, context: Context, tokens: int, rng: np.random.Generator) -> Composed:
    """The same decision with a text whose length is within 5 % of ``tokens``.

    A text that is too short gets true sentences behind it, each about a feature that it does not cite yet. One that
    is too long loses whole sentences, those without numbers first and never all that have one; its first sentence
    stays. A text that is within 5 % already stays as it is.

    Parameters
    ----------
    decision : Decision
        An honest decision; its judged texts count as one.
    context : Context
        What it was made on.
    tokens : int
        The length asked for, counted as `token_count` counts.
    rng : numpy Generator
        Draws which sentences are added, and their wording.

    Raises
    ------
    InputError
        ``tokens`` is not positive.
    NotMeasurableError
        The material has too little to add, or no choice of sentences comes near enough.

    Examples
    --------
    The session in ``docs/cells.md`` makes one of each kind.
    """
    if tokens < 1:
        raise InputError("length_matched", [Problem("tokens", f"must be at least 1 (got {tokens})")])
    text = judged_text(decision)
    last: Composed | None = None
    for _ in range(REDRAWS):
        made = _fitted(text, decision, context, tokens, rng)
        if made is None:
            continue
        last = checked(
            Composed(
                kind="length_matched",
                actions=decision.actions,
                text=made,
                confidence=decision.confidence,
                original=decision,
                tokens=tokens,
            ),
            context,
        )
        if not failed(last.admissibility):
            return last
    if last is None:
        raise NotMeasurableError(
            f"length_matched cannot be made from this decision: no choice of sentences brings its {token_count(text)} "
            f"tokens within {MATCHED_SHARE:.0%} of {tokens}"
        )
    raise refuse("length_matched", last.admissibility, REDRAWS)


def _fitted(text: str, decision: Decision, context: Context, tokens: int, rng: np.random.Generator) -> str | None:
    low, high = tokens * (1 - MATCHED_SHARE), tokens * (1 + MATCHED_SHARE)
    have = token_count(text)
    if low <= have <= high:
        return text
    if have > high:
        return _shortened(text, low, high)
    added = _additions(text, decision, context, low - have, high - have, rng)
    return None if added is None else " ".join([text, *added])


def _additions(
    text: str, decision: Decision, context: Context, low: float, high: float, rng: np.random.Generator
) -> list[str] | None:
    """True sentences of ``low`` to ``high`` tokens together, about features that are not cited yet."""
    cited = {(one.instrument, one.about) for one in statements_of(text, context, decision.actions, None).features}
    fresh = [one for one in features_of(context) if (one.instrument, one.field) not in cited]
    found: list[str] = []
    have = 0
    for at in rng.permutation(len(fresh)):
        feature = fresh[int(at)]
        texts = [template.format_map(feature.fill(feature.value)) for template in phrases.ADDITIONS]
        sizes = [token_count(one) for one in texts]
        ends = [one for one, size in zip(texts, sizes, strict=True) if low <= have + size <= high]
        if ends:
            return [*found, ends[int(rng.integers(len(ends)))]]
        # What is left has to hold at least one more of the shortest sentences.
        fits = [one for one, size in zip(texts, sizes, strict=True) if have + size + min(sizes) <= high]
        if fits:
            found.append(fits[int(rng.integers(len(fits)))])
            have += token_count(found[-1])
    return None


def _shortened(text: str, low: float, high: float) -> str | None:
    """The first sentence and as many others as fit, those with numbers before those without; paragraphs are kept.

    Of all choices within the bounds the one with the most numbers is taken, then the longest.
    """
    spans = sentences_of(text)
    sizes = [token_count(text[start:end]) for start, end in spans]
    worth = [len(figures_in(text[start:end])) for start, end in spans]
    best: dict[int, tuple[int, tuple[int, ...]]] = {sizes[0]: (worth[0], (0,))} if spans else {}
    for at in range(1, len(spans)):
        for size, (value, chosen) in list(best.items()):
            total = size + sizes[at]
            if total <= high and best.get(total, (-1, ()))[0] < value + worth[at]:
                best[total] = (value + worth[at], (*chosen, at))
    fits = {size: one for size, one in best.items() if low <= size <= high}
    if not fits:
        return None
    value, chosen = fits[max(fits, key=lambda size: (fits[size][0], size))]
    return None if sum(worth) and not value else _joined(text, spans, chosen)


def _joined(text: str, spans: Sequence[tuple[int, int]], chosen: Sequence[int]) -> str:
    """The chosen sentences, with a new paragraph where one began between them."""
    found = text[spans[chosen[0]][0] : spans[chosen[0]][1]]
    for before, at in pairwise(chosen):
        between = text[spans[before][1] : spans[at][0]]
        found += ("\n\n" if "\n\n" in between else " ") + text[spans[at][0] : spans[at][1]]
    return found
