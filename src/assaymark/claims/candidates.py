"""Which claims are put to the gates, and in which words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from assaymark.protocol import Claims
from assaymark.records import AGGREGATE, Claim, measurement_id

_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def candidate_claims(
    wanted: Claims, agents: Sequence[str], dimensions: Sequence[str], contrasts: Sequence[tuple[str, str, str]]
) -> list[Claim]:
    """The claims of a study: by default "X ranks first" for every agent and "X above Y" for every pair.

    Parameters
    ----------
    wanted : Claims
        The study file's choice.
    agents : sequence of agent ids
    dimensions : sequence of str
        The rubric's dimensions, without the aggregate.
    contrasts : sequence of (dimension, higher, lower)
        The measured direction of every pair. A pair is claimed in the direction that the panel saw; claiming the
        other one could only be refused.

    Returns
    -------
    list of Claim
        The aggregate first, then the dimensions in rubric order; within each, firsts and then pairs by name.

    Examples
    --------
    >>> claims = candidate_claims(Claims(), ["a", "b"], [], [("aggregate", "b", "a")])
    >>> [claim.statement for claim in claims][1:]
    ["b ranks first of the two agents on the panel's aggregate score.", "b scores above a on the panel's aggregate \
score."]
    """
    scopes = [AGGREGATE, *dimensions] if wanted.dimensions is None else list(wanted.dimensions)
    seen = {(dimension, frozenset((high, low))): (high, low) for dimension, high, low in contrasts}
    names = sorted(agents)
    claims: list[Claim] = []
    for dimension in scopes:
        if wanted.first:
            claims += [_first(dimension, agent, len(names)) for agent in names]
        if wanted.pairs:
            ordered = (seen.get((dimension, frozenset(pair)), pair) for pair in combinations(names, 2))
            claims += [_pair(dimension, high, low) for high, low in ordered]
    return claims


def measure_words(dimension: str) -> str:
    """How a sentence calls the score of a dimension.

    >>> measure_words("aggregate"), measure_words("position_sizing")
    ("the panel's aggregate score", 'position sizing')
    """
    return "the panel's aggregate score" if dimension == AGGREGATE else dimension.replace("_", " ")


def count_words(count: int) -> str:
    """Small numbers as words, others as digits.

    >>> count_words(5), count_words(40)
    ('five', '40')
    """
    return _SMALL[count] if count < len(_SMALL) else str(count)


def agent_words(count: int) -> str:
    """So many agents, in words.

    >>> agent_words(5), agent_words(1)
    ('five agents', 'one agent')
    """
    return f"{count_words(count)} agent{'' if count == 1 else 's'}"


def withheld_phrase(claim: Claim) -> str:
    """What is not said, for a claim without permission; never the sentence itself.

    >>> withheld_phrase(_pair("aggregate", "b", "a"))
    "Any order of a and b on the panel's aggregate score."
    >>> withheld_phrase(_first("position_sizing", "a", 4))
    'A first place for a on position sizing.'
    """
    where = measure_words(claim.dimension)
    if len(claim.subjects) == 1:
        return f"A first place for {claim.subjects[0]} on {where}."
    return f"Any order of {' and '.join(sorted(claim.subjects))} on {where}."


def _first(dimension: str, agent: str, count: int) -> Claim:
    return Claim(
        id=measurement_id("first", {"dimension": dimension, "agent": agent}),
        scope="aggregate-ranking" if dimension == AGGREGATE else "dimension-ranking",
        statement=f"{agent} ranks first of the {agent_words(count)} on {measure_words(dimension)}.",
        subjects=(agent,),
        dimension=dimension,
        asserts_order=True,
    )


def _pair(dimension: str, high: str, low: str) -> Claim:
    return Claim(
        id=measurement_id("above", {"dimension": dimension, "high": high, "low": low}),
        scope="pairwise-contrast",
        statement=f"{high} scores above {low} on {measure_words(dimension)}.",
        subjects=(high, low),
        dimension=dimension,
        asserts_order=True,
    )
