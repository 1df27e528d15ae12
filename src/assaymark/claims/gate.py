"""Claims in a short grammar, held against the verdicts of a run: what `assaymark gate` passes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from assaymark.claims.messages import listing
from assaymark.claims.proofread import MARKS, Decided, Mark, said, statement_key, why_not
from assaymark.claims.sentences import Relation, name_key
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.records import AGGREGATE, Level

GRAMMAR: Final = "A > B, A < B, A ~ B or A first, with “on SCORE” if it is not the overall score, or the id of a claim"

_CLAIM: Final = re.compile(
    r"(?P<a>.{1,200}?)\s*(?:(?P<op>[<>~≈])|\b(?P<word>above|below|beats)\b)\s*(?P<b>.{1,200})", re.S
)
_FIRST_CLAIM: Final = re.compile(r"(?P<a>.{1,200}?)\s+(?:ranks\s+)?first", re.S)


def parse_claim(text: str, run: Decided) -> tuple[Relation, str]:
    """The relation and the score of a claim in `GRAMMAR`, or of the id of a claim in ``verdicts.json``."""
    text = " ".join(text.split())
    for verdict in run.verdicts:
        head = verdict.claim.id.partition("[")[0]
        if text == verdict.claim.id and head in ("above", "first", "within"):
            kind: Literal["above", "first", "level"] = {"above": "above", "first": "first", "within": "level"}[head]  # type: ignore[assignment]
            subjects = verdict.claim.subjects
            return Relation(kind, subjects[:1], subjects[1:]), verdict.claim.dimension
    head, on, where = text.rpartition(" on ")
    body, scored = (head, where) if on else (text, "")
    known = [one.replace("_", " ") for one in run.names.scores]
    found = _CLAIM.fullmatch(body) or _FIRST_CLAIM.fullmatch(body)
    if found is None:
        raise InputError("--claim", [Problem("", f"must be {GRAMMAR} (got {text!r:.120})")])
    score = run.names.find_score(scored) if scored else AGGREGATE
    if score is None:
        raise UnknownNameError("score", scored, ("the overall score", *known))
    agents = list[str]()
    for name in (found[part] for part in ("a", "b") if part in found.re.groupindex):
        plain = " ".join(name.strip(" '\"").split())
        near = [agent for agent in run.names.agents if agent == plain]
        near = near or [agent for agent in run.names.agents if agent.casefold() == plain.casefold()]
        if not near and (alias := run.names.by_key.get(name_key(plain))):
            near = [alias]
        if not near:
            raise UnknownNameError("agent", plain, run.names.agents)
        agents.append(near[0])
    if len(set(agents)) < len(agents):
        raise InputError("--claim", [Problem("", f"names one agent twice ({agents[0]})")])
    if len(agents) == 1:
        return Relation("first", (agents[0],)), run.score(score)
    sign = found["op"] or {"above": ">", "beats": ">", "below": "<"}[found["word"]]
    if sign in "~≈":
        return Relation("level", (agents[0],), (agents[1],)), run.score(score)
    high, low = agents if sign == ">" else agents[::-1]
    return Relation("above", (high,), (low,)), run.score(score)


@dataclass(frozen=True, slots=True)
class Gated:
    """A claim against the level that was asked for."""

    passed: bool
    mark: Mark
    level: Level
    sentence: str
    why: str
    conditions: tuple[str, ...]


def gate_claim(text: str, run: Decided, at_least: Level = "headline") -> Gated:
    """Whether a run supports a claim at a level; an unsupported claim is named without its direction."""
    named = next(
        (verdict for verdict in run.verdicts if text.strip() == verdict.claim.id), None
    ) or run.by_statement.get(statement_key(text))
    if named is not None and not named.claim.id.startswith(("above[", "first[", "within[")):
        reached = named.publication_level
        if reached == "no-claim":
            return Gated(False, "-", reached, f"The claim {named.claim.id}.", why_not(named), ())
        conditions = tuple(one.text for one in named.conditions)
        return Gated(reached in ("headline", at_least), MARKS[reached], reached, said(named), "", conditions)
    relation, score = parse_claim(named.claim.id if named is not None else text, run)
    ruling = run.rule(relation, score)
    if ruling.mark not in ("x", "/"):
        names, where = sorted({*relation.left, *relation.right}), run.words(score)
        about = {"first": f"A first rank for {listing(names)}", "level": f"That {listing(names)} score alike"}
        sentence = f"{about.get(relation.kind, f'Any ranking of {listing(names)}')} on {where}."
        why = f"the run supports “{said(ruling.by[0])}”" if ruling.mark == "!" and ruling.by else ruling.why
        return Gated(False, ruling.mark, "no-claim", sentence, why, ())
    level: Level = "headline" if ruling.mark == "x" else "qualified"
    conditions = tuple(condition.text for one in ruling.by for condition in one.conditions)
    sentence = " ".join(said(one) for one in ruling.by)
    passed = level == "headline" or at_least == "qualified"
    return Gated(passed, ruling.mark, level, sentence, "", tuple(dict.fromkeys(conditions)))
