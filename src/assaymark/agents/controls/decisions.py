"""Control cells as records: one cell, and a number of them spread over the clusters of a study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from assaymark.agents.controls.checks import CELL_KINDS, DERIVED_KINDS, Composed, failed
from assaymark.agents.controls.compose import fact_flip, length_matched, paraphrase, terse_right, verbose_wrong
from assaymark.errors import InputError, NotMeasurableError, Problem, UnknownNameError
from assaymark.records import Agent, Context, Decision, Derivation, DerivationKind, Provenance, Rationale

MADE_HERE: Final = "assaymark control cells"
"""Where a control cell comes from, in its provenance."""

CONTROL: Final = "control"
"""The agent id of every control cell."""

ORDERS: Final = "orders-v1"
"""The format of the decisions that a cell makes itself; a derived one keeps that of its parent."""

Placed = tuple[str, Context, str]
"""A context's id, the context, and the cluster that it belongs to."""
Source = tuple[str, Context, Decision | None]
"""A context's id, the context, and the honest decision that a derived cell is made from."""


def cell_decision(
    composed: Composed, context_id: str, record_id: str, cluster: str, family: str, seed: int, decided_at: datetime
) -> Decision:
    """A composed cell as a record; NotMeasurableError where it was not checked, or failed a check.

    A cell derived from a decision takes its episode, step, cluster, time and format from it, so that the two can be
    compared as a pair.
    """
    kind, origin, change = composed.kind, composed.original, composed.change
    if not composed.admissibility or failed(composed.admissibility):
        said = "; ".join(map(str, failed(composed.admissibility))) or "it was never checked"
        raise NotMeasurableError(f"{kind} {record_id} is no control cell: {said}")
    episode, step, form, parent = record_id, 1, ORDERS, None
    if origin:
        episode, step, form, parent = origin.episode_id, origin.step, origin.format, origin.record_id
        cluster, decided_at = origin.cluster, origin.decided_at
    return Decision(
        record_id=record_id, episode_id=episode, step=step, cluster=cluster, decided_at=decided_at, format=form,
        agent=Agent(id=CONTROL, family=family, model=f"{CONTROL}/{kind}"), context_id=context_id,
        actions=composed.actions, rationales=(Rationale(text=composed.text, kind="summary"),),
        provenance=Provenance(source=MADE_HERE), confidence=composed.confidence,
        derivation=Derivation(kind=kind, parent=parent, seed=seed, known_scores=dict(composed.known_scores)),
        flags=(f"{change[0].quote} changed to {change[1]}",) if change else (),
    )  # fmt: skip


def _sources(
    contexts: Sequence[Placed], kind: str, count: int, honest: Sequence[Decision], tokens: int | None
) -> dict[str, list[Source]]:
    """What cells are made from, by cluster: contexts, or honest decisions on them; everything that is wrong at once."""
    derived, sources = kind in DERIVED_KINDS, dict[str, list[Source]]()
    known = {key: (context, cluster) for key, context, cluster in contexts}
    for decision in honest if derived else ():
        if decision.context_id in known and decision.derivation.kind == "honest":
            context, cluster = known[decision.context_id]
            sources.setdefault(cluster, []).append((decision.context_id, context, decision))
    for key, context, cluster in () if derived else contexts:
        sources.setdefault(cluster, []).append((key, context, None))
    needed = "an honest decision on one of the contexts" if derived else "a context"
    problems = [Problem("count", f"must not be negative (got {count})")] if count < 0 else []
    if count and not sources:
        problems.append(Problem("contexts", f"{kind} needs {needed} (got none)"))
    if kind == "length_matched" and not tokens:
        problems.append(Problem("tokens", f"length_matched needs the length asked for (got {tokens})"))
    if problems:
        raise InputError("cell_decisions", problems)
    return sources


def cell_decisions(
    contexts: Sequence[Placed], kind: DerivationKind, count: int, seed: int, family: str, style: str = "plain", *,
    honest: Sequence[Decision] = (), tokens: int | None = None, study: str = "",
    reasons: dict[str, str] | None = None,
) -> list[Decision]:  # fmt: skip
    """``count`` control cells, spread evenly over the clusters: their numbers differ by one at most.

    Equal arguments give equal records. A context or decision from which no admissible cell comes is passed over for
    another of its cluster. Cells A and B use a context again once all others of its cluster were used; a derived cell
    is made from a decision once. ``derivation.seed`` of each record repeats its generator. With ``reasons`` it is no
    error that fewer can be made: they say why a context or decision gave none, and "" of one that gave some.

    Raises
    ------
    UnknownNameError
        No such kind.
    InputError
        Nothing to make cells from, a negative count, or no length for length-matched cells; all problems at once.
    NotMeasurableError
        Fewer than ``count`` admissible cells came out of these contexts; the last reason is quoted.
    """
    if kind not in CELL_KINDS:
        raise UnknownNameError("kind of control cell", kind, CELL_KINDS)
    derived, sources = kind in DERIVED_KINDS, _sources(contexts, kind, count, honest, tokens)
    last = "there is nothing left to make one from"
    told = {} if reasons is None else reasons

    def make(context: Context, decision: Decision | None, rng: np.random.Generator) -> Composed:
        if decision is None:
            return (verbose_wrong if kind == "cell_a" else terse_right)(context, rng, style)
        if kind == "length_matched":
            return length_matched(decision, context, tokens or 0, rng)
        return (paraphrase if kind == "paraphrase" else fact_flip)(decision, context, rng)

    def cells(cluster: str, key: list[int]) -> Iterator[tuple[str, Context, Composed, int]]:
        """The admissible cells of one cluster, its sources tried in a drawn order.

        Derived cells use every source once, the others again and again, until a whole round came to nothing.
        """
        nonlocal last
        members = sources[cluster]
        order = np.random.default_rng(key).permutation(len(members))
        idle, draws, reason = 0, 0, "there is nothing left to make one from"
        while idle < len(members):
            for at in order:
                idle, draws = idle + 1, draws + 1
                context_id, context, decision = members[int(at)]
                source = context_id if decision is None else decision.record_id
                own = int(np.random.SeedSequence([*key, draws]).generate_state(1)[0])
                try:
                    composed = make(context, decision, np.random.default_rng(own))
                except NotMeasurableError as exc:
                    reason = str(exc)
                    told.setdefault(source, reason)
                    continue
                idle, told[source] = 0, ""
                yield context_id, context, composed, own
            if derived:
                break
        last = reason

    found, name = list[Decision](), f"{study}/{kind}" if study else kind
    queues = {
        cluster: cells(cluster, [seed, CELL_KINDS.index(kind), number])
        for number, cluster in enumerate(sorted(sources))
    }
    while len(found) < count and queues:
        for cluster in list(queues):
            if len(found) == count:
                break
            if (made := next(queues[cluster], None)) is None:
                del queues[cluster]
                continue
            context_id, context, composed, own = made
            record_id, at = f"{name}-{seed}-{len(found) + 1:04d}", context.cutoff + timedelta(seconds=1)
            found.append(cell_decision(composed, context_id, record_id, cluster, family, own, at))
    if len(found) < count and reasons is None:
        raise NotMeasurableError(f"only {len(found)} of {count} {kind} cells could be made; the last reason: {last}")
    return found
