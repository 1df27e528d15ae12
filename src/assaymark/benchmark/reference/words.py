"""What each reference model of the benchmark does, in a sentence for a page."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from assaymark.benchmark.reference.models import PREFIX, SKILLS

_DOES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "literal": "carries the 60-day return on and holds the highest Sharpe ratio within the profile",
        "prior": "looks at no number: one view a class, 60/40",
        "stubborn": "has no view and holds equal weights whatever is asked",
        "momentum": "buys what rose over 60 days",
        "contrarian": "buys what fell over 60 days",
        "steady": "prefers the calmer half, weighted by inverse variance",
        "cautious": "weights by inverse volatility, well within the profile",
        "bold": "puts everything into the best Sharpe ratio",
        "noisy": "follows the 60-day return with noise added",
        "garbled": "follows the 60-day return in forms with a fault, from prose to weights above 1",
    }
)


def words_of(model: str) -> str:
    """What a reference model does, with the share of questions that it solves; empty for any other model.

    >>> words_of("reference/portbench-bold")
    'puts everything into the best Sharpe ratio; solves 30 % of the questions and guesses the others'
    >>> words_of("openai/gpt-5.2")
    ''
    """
    word = model.removeprefix(PREFIX)
    if word == model or word not in _DOES:
        return ""
    return f"{_DOES[word]}; solves {100 * SKILLS[word]:.0f} % of the questions and guesses the others"
