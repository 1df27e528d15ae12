"""What is planted in each reference agent, in words: so that nobody takes one of them for a language model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from assaymark.agents.composers import directional, equal_weight, inverse_volatility, minimum_variance, steward
from assaymark.prompting.styles import signature


@dataclass(frozen=True, slots=True)
class Planted:
    """A reference agent in words: the rule it follows, and the properties that a study of it has to find."""

    rule: str
    properties: tuple[str, ...]


def _share(value: float) -> str:
    """A share of equity."""
    return f"{100 * value:.0f}\u00a0%"


_KEEPS: Final = "its orders never break a limit: they shrink until every limit is kept"
_NO_SUMS: Final = "names its largest position and the cap, and no other arithmetic"


def _directional(moved: str) -> tuple[str, ...]:
    """The properties that the two mirror images share."""
    return (
        f"weights by 15-minute return over volatility, together {_share(directional.INVESTED)} of equity",
        f"confidence of 0.5 plus 0.2 times the share of instruments that {moved}",
        _NO_SUMS,
        _KEEPS,
    )


WORDS: Final[Mapping[str, Planted]] = MappingProxyType(
    {
        "reference/momentum": Planted("Buys what rose over the last 15 minutes.", _directional("rose")),
        "reference/contrarian": Planted(
            "Buys what fell over the last 15 minutes: the mirror image of momentum.", _directional("fell")
        ),
        "reference/minimum-variance": Planted(
            "Holds the book of least variance over the bars that it is shown.",
            (
                f"invests {_share(minimum_variance.INVESTED)} of equity and keeps the rest in cash",
                "names weights and their cap, and no other arithmetic",
                "a confidence of 0.45, whatever the bars",
                _KEEPS,
            ),
        ),
        "reference/equal-weight": Planted(
            "Holds equal shares of every instrument.",
            (
                f"spreads {_share(equal_weight.INVESTED)} of equity",
                "terse: most of its texts have fewer than 60 words",
                "a confidence of 0.55, whatever the bars",
                _KEEPS,
            ),
        ),
        "reference/inverse-volatility": Planted(
            "Holds more of what is calm: weights in proportion to one over volatility.",
            (
                f"invests {_share(inverse_volatility.INVESTED)} of equity",
                "an ordinary length, that of momentum and contrarian: weight, move and volatility of every holding",
                "holds every limit against the book in its texts, and says what would be cut first",
                "a confidence of 0.45, whatever the bars",
                _KEEPS,
            ),
        ),
        "reference/steward": Planted(
            "Moves in small steps towards what is strong for its risk.",
            (
                f"inverse-volatility weights tilted towards what rose, together {_share(steward.INVESTED)} of equity",
                "the fullest memo: every holding, what is left out, risks, and when it would change its mind",
                "reconciles cash, exposure and every limit in its texts",
                "a confidence of 0.45, whatever the bars",
                _KEEPS,
            ),
        ),
        "reference/mixed": Planted(
            "Draws for each question which of two mirror-image rules to follow: momentum or contrarian.",
            (
                "two of them with different seeds are exchangeable: a planted tie",
                "the draw depends on the seed and the prompt alone",
                *_directional("moved its way")[2:],
            ),
        ),
    }
)
"""The reference agents by model name."""


def planted_words(model: str, args: Mapping[str, Any]) -> Planted | None:
    """What is planted in an agent of a study; None for a model that is no reference agent.

    The argument ``style`` names a house style, by whose opening words a judge may know the agent; ``brief`` is the
    share of its texts that give its orders alone.

    >>> planted_words("reference/equal-weight", {"style": "dogwood"}).properties[-1]
    'its texts begin with “In brief,”, the words of the house style dogwood'
    >>> planted_words("openai/some-model", {}) is None
    True
    """
    found = WORDS.get(model)
    if found is None:
        return None
    brief, style = float(args.get("brief", 0.0)), str(args.get("style", ""))
    more = [f"gives its orders and no reason in {_share(brief)} of its texts"] if brief else []
    if opening := signature(style):
        more.append(f"its texts begin with “{opening}”, the words of the house style {style}")
    return Planted(found.rule, (*found.properties, *more)) if more else found
