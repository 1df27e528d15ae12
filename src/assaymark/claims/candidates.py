"""Which claims are put to the gates, and in which words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final, Literal, get_args

from assaymark.claims.cells import CellState, cell_statement, cell_words
from assaymark.claims.evidence import Index
from assaymark.claims.pairs import TieClass, classes_of, direction
from assaymark.claims.rules import Rules
from assaymark.claims.words import agent_words, count_words, listing, measure_words
from assaymark.errors import NotMeasurableError
from assaymark.protocol import Cells, Claims
from assaymark.records import AGGREGATE, Claim, Scope, measurement_id

ClaimKind = Literal["first", "pair", "ranking", "tie", "cell"]
KINDS: Final[tuple[ClaimKind, ...]] = get_args(ClaimKind)
"""Every kind of claim, in the order in which the claims about one dimension are decided."""

_HEADS: Final[Mapping[str, ClaimKind]] = {
    "first": "first",
    "above": "pair",
    "ranking": "ranking",
    "tie": "tie",
    "cell": "cell",
}
_FEW: Final = 3


def kind_of(claim: Claim) -> ClaimKind:
    """What a claim is about; a class of two agents has as many subjects as a pair, so counting them cannot tell.

    Returns
    -------
    "first", "pair", "ranking", "tie" or "cell"
        "X ranks first"; "X scores above Y"; the whole order of a dimension; agents that form one class; one control
        cell.

    Raises
    ------
    NotMeasurableError
        The claim's id is not of a kind that is known here.

    Examples
    --------
    >>> kind_of(pair_claim("aggregate", "b", "a")), kind_of(tie_claim("aggregate", TieClass(("a", "b"), (), ())))
    ('pair', 'tie')
    """
    head = claim.id.partition("[")[0]
    if head not in _HEADS:
        raise NotMeasurableError(f"claim {claim.id!r} is of no known kind ({', '.join(_HEADS)})")
    return _HEADS[head]


def candidate_claims(
    wanted: Claims,
    agents: Sequence[str],
    dimensions: Sequence[str],
    contrasts: Sequence[tuple[str, str, str]],
    *,
    orders: Mapping[str, Sequence[str]] | None = None,
    classes: Mapping[str, Sequence[TieClass]] | None = None,
    cells: Sequence[tuple[CellState, Cells]] = (),
) -> list[Claim]:
    """The claims of a study: by default every first place, every pair, every whole order, every class, every cell.

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
    orders : mapping of dimension to agents, optional
        The measured order, best first; a ranking is claimed where there are two or more.
    classes : mapping of dimension to classes, optional
        The tie classes that were found.
    cells : sequence of (state, cut-offs), optional
        The control cells that have a gate.

    Returns
    -------
    list of Claim
        The aggregate first, then the dimensions in rubric order; within each firsts, pairs by name, the ranking, the
        classes; claims about control cells last.

    Examples
    --------
    >>> claims = candidate_claims(Claims(), ["a", "b"], [], [("aggregate", "b", "a")], orders={"aggregate": ["b", "a"]})
    >>> [claim.statement for claim in claims][1:]
    ["b ranks first of the two agents on the panel's aggregate score.", "b scores above a on the panel's aggregate \
score.", "The order of the two agents on the panel's aggregate score is b, a."]
    """
    scopes = [AGGREGATE, *dimensions] if wanted.dimensions is None else list(wanted.dimensions)
    seen = {(dimension, frozenset((high, low))): (high, low) for dimension, high, low in contrasts}
    names = sorted(agents)
    claims: list[Claim] = []
    for dimension in scopes:
        if wanted.first:
            claims += [first_claim(dimension, agent, len(names)) for agent in names]
        if wanted.pairs:
            ordered = (seen.get((dimension, frozenset(pair)), pair) for pair in combinations(names, 2))
            claims += [pair_claim(dimension, high, low) for high, low in ordered]
        if wanted.rankings:
            order = (orders or {}).get(dimension, ())
            claims += [ranking_claim(dimension, order)] if len(order) > 1 else []
            claims += [tie_claim(dimension, group) for group in (classes or {}).get(dimension, ())]
    return claims + ([cell_claim(state, limits) for state, limits in cells] if wanted.cells else [])


def claims_of(wanted: Claims, known: Index, rules: Rules, cells: Sequence[CellState]) -> list[Claim]:
    """`candidate_claims` of measurements: their directions, orders, classes and cells under ``rules``."""
    scopes = (AGGREGATE, *known.dimensions) if wanted.dimensions is None else wanted.dimensions
    pairs = list(combinations(known.agents, 2))
    directions = (
        [(scope, *direction(scope, *pair, known)) for scope in scopes for pair in pairs] if wanted.pairs else []
    )
    ranked = wanted.rankings
    return candidate_claims(
        wanted,
        known.agents,
        known.dimensions,
        directions,
        orders={scope: measured_order(scope, known) for scope in scopes} if ranked else {},
        classes={scope: classes_of(scope, known, rules) for scope in scopes} if ranked else {},
        cells=[(state, rules.cells) for state in cells],
    )


def measured_order(dimension: str, known: Index) -> tuple[str, ...]:
    """The agents that have a level, best first; equal levels by name."""
    levels = {agent: item.value for agent in known.agents if (item := known.level(dimension, agent)) is not None}
    found = {agent: value for agent, value in levels.items() if value is not None}
    return tuple(sorted(found, key=lambda agent: (-found[agent], agent)))


def withheld_phrase(claim: Claim) -> str:
    """What is not said, for a claim without permission; never the sentence itself.

    >>> withheld_phrase(pair_claim("aggregate", "b", "a"))
    "Any order of a and b on the panel's aggregate score."
    >>> withheld_phrase(first_claim("position_sizing", "a", 4))
    'A first place for a on position sizing.'
    >>> withheld_phrase(ranking_claim("aggregate", ("c", "a", "b")))
    "A whole order of a, b and c on the panel's aggregate score."
    """
    where, kind = measure_words(claim.dimension), kind_of(claim)
    if kind == "first":
        return f"A first place for {claim.subjects[0]} on {where}."
    if kind == "cell":
        return f"What the panel makes of {cell_words(claim.subjects[0])}."
    names = listing(sorted(claim.subjects))
    return {
        "pair": f"Any order of {names} on {where}.",
        "ranking": f"A whole order of {names} on {where}.",
        "tie": f"That {names} form one class on {where}.",
    }[kind]


def first_claim(dimension: str, agent: str, count: int) -> Claim:
    """ "X ranks first of so many agents"."""
    return Claim(
        id=measurement_id("first", {"dimension": dimension, "agent": agent}),
        scope=_scope(dimension),
        statement=f"{agent} ranks first of the {agent_words(count)} on {measure_words(dimension)}.",
        subjects=(agent,),
        dimension=dimension,
        asserts_order=True,
    )


def pair_claim(dimension: str, high: str, low: str) -> Claim:
    """ "X scores above Y"."""
    return Claim(
        id=measurement_id("above", {"dimension": dimension, "high": high, "low": low}),
        scope="pairwise-contrast",
        statement=f"{high} scores above {low} on {measure_words(dimension)}.",
        subjects=(high, low),
        dimension=dimension,
        asserts_order=True,
    )


def ranking_claim(dimension: str, order: Sequence[str]) -> Claim:
    """The whole order of a dimension, best first."""
    where = measure_words(dimension)
    return Claim(
        id=measurement_id("ranking", {"dimension": dimension}),
        scope=_scope(dimension),
        statement=f"The order of the {agent_words(len(order))} on {where} is {', '.join(order)}.",
        subjects=tuple(order),
        dimension=dimension,
        asserts_order=True,
    )


def tie_claim(dimension: str, group: TieClass) -> Claim:
    """Agents that form one class. An order that is established within it is named, so that the sentence is true.

    >>> print(tie_claim("aggregate", TieClass(("a", "b", "c"), (("a", "c"),), ())).statement)
    a, b and c form one class on the panel's aggregate score: no order among them is established, except a above c.
    """
    names = "+".join(name.replace("%", "%25").replace("+", "%2B") for name in group.agents)
    return Claim(
        id=measurement_id("tie", {"dimension": dimension, "agents": names}),
        scope=_scope(dimension),
        statement=f"{listing(group.agents)} form one class on {measure_words(dimension)}: no order among them is "
        f"established{_except(group)}.",
        subjects=group.agents,
        dimension=dimension,
        asserts_order=False,
    )


def cell_claim(state: CellState, limits: Cells) -> Claim:
    """What the panel makes of one control cell."""
    return Claim(
        id=measurement_id("cell", {"cell": state.cell}),
        scope="adversarial-cell",
        statement=cell_statement(state, limits),
        subjects=(state.cell,),
        dimension=AGGREGATE,
        asserts_order=False,
    )


def _except(group: TieClass) -> str:
    if not group.established:
        return ""
    if len(group.established) > _FEW:
        return f", except for {count_words(len(group.established))} pairs of them"
    return f", except {listing([f'{high} above {low}' for high, low in group.established])}"


def _scope(dimension: str) -> Scope:
    return "aggregate-ranking" if dimension == AGGREGATE else "dimension-ranking"
