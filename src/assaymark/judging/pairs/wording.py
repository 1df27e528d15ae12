"""Fixed sentences and words that stimuli are made of beside their tasks: none of them meets anything."""

from __future__ import annotations

import re

CLOSERS = {
    1: "Noted.",
    2: "Note ends.",
    3: "Note ends here.",
    4: "The note ends here.",
    5: "The whole note ends here.",
    6: "The whole note ends here now.",
    7: "The whole note ends here for now.",
    8: "The whole note ends here for the moment.",
    9: "The whole note ends here, as such notes do.",
    10: "The whole note ends here, as such notes usually do.",
    11: "The whole note ends here, as notes of this kind do.",
    12: "The whole note ends here, as notes of this kind usually do.",
}
"""Sentences by their length in whitespace tokens."""

BEFORE_CLOSERS = (
    "It was written on the usual form today.",
    "It was filed in the usual place today.",
)
"""Sentences of eight tokens that stand before a closer where one closer is too short."""

FILLERS = (
    "As ever, the matter was looked at with great care and from a good many different sides.",
    "It goes without saying that a decision of this kind is never taken lightly by anyone who is involved.",
    "There are, of course, always several ways in which one may look at a question such as this one.",
    "Time will tell, and we remain attentive to all that may turn out to be of relevance here.",
    "In the end it is a question of judgement, of experience, and of a certain calm in the face of noise.",
    "We have given thought to what others may think, and we respect that they may well see it otherwise.",
    "All in all, the picture that emerges is a rounded one, and we feel comfortable with it as a whole.",
    "Needless to say, we shall go on following events with the same attention that we have always given them.",
)
"""Sentences that lengthen a text and say nothing."""

FIXED_SENTENCES = (*CLOSERS.values(), *BEFORE_CLOSERS, *FILLERS)
"""Every sentence above; no requirement may be named by a word of them."""

SYNONYMS = (("whole", "entire"), ("usual", "customary"), ("large", "big"), ("about", "around"), ("because", "since"))
"""Words and what they are swapped for, the first that stands in a text."""

UNITS = (
    (re.compile(r"(?<=\d) %"), " percent"),
    (re.compile(r"(?<=\d)%"), " percent"),
    (re.compile(r"(?<=\d) percent\b"), " %"),
    (re.compile(r"(?<=\d) bps\b"), " bp"),
    (re.compile(r"\$(\d[\d.,]*\d|\d)"), r"\1 dollars"),
)
"""Units and another way to write each, the first that stands in a text; the value stays."""


def closing(tokens: int) -> str:
    """A neutral ending of exactly ``tokens`` whitespace tokens.

    >>> closing(3), len(closing(47).split())
    ('Note ends here.', 47)
    """
    found: list[str] = []
    while tokens > max(CLOSERS):
        found.append(BEFORE_CLOSERS[len(found) % len(BEFORE_CLOSERS)])
        tokens -= 8
    return " ".join([*found, *([CLOSERS[tokens]] if tokens > 0 else [])])
