"""A guesser that knows how answers are distributed and looks at no number: the floor of the questions.

It reads which kind of question is asked and which names its answer needs, and says what is most often right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

GUESSES: Final[Mapping[str, str]] = {
    "value at risk (VaR) of": "-0.012",
    "fixed-fractional rule": "0.5",
    "the portfolio is rebalanced if": "no",
    "trading days from now, against today?": "positive",
    "Which regime is": "regime=sideways; equity=hold, bond=hold, commodity=hold, real_estate=hold, crypto=decrease, "
    "cash=increase",
}
"""What is said to each kind of question; weights are equal."""

_FORM = re.compile(r"(\S+)=<weight>")


def guess(prompt: str) -> str:
    """The reply to a prompt.

    Examples
    --------
    >>> guess("Question: which weights of A and B have the least variance?\\nANSWER: A=<weight>, B=<weight>")
    'ANSWER: A=0.500000, B=0.500000'
    """
    names = _FORM.findall(prompt)
    if names:
        return "ANSWER: " + ", ".join(f"{name}={1.0 / len(names):.6f}" for name in names)
    for words, answer in GUESSES.items():
        if words in prompt:
            return f"ANSWER: {answer}"
    return "This is none of the questions that can be guessed here."
