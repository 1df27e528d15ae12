"""What the agents of a study did, from its records: the inputs of the conduct measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator

from assaymark.agents.llm import NOT_USABLE
from assaymark.errors import InputError
from assaymark.judging import judged_text, token_count
from assaymark.metrology import Conduct, conduct_measurements
from assaymark.portfolio.orders import audit, fee_of, prices_of, settle
from assaymark.records import Context, Decision, Measurement
from assaymark.workflow.locking import Locked
from assaymark.workflow.tables import DECISIONS, Store

UNSETTLED = "settlement"
"""The rule that orders break which cannot be settled at all."""


def measured_conduct(store: Store, locked: Locked) -> list[Measurement]:
    """How the agents behaved that a study asked itself; nothing for imported records.

    Every honest decision counts, those that no judge was shown because their reply could not be used included.
    """
    if locked.study.substrate is None:
        return []
    decisions = [one for one in store.read(DECISIONS) if one.derivation.kind == "honest" and one.replicate == 1]
    return list(conduct_measurements(_conduct(decisions, store), level=locked.study.inference.level))


def _conduct(decisions: list[Decision], store: Store) -> Iterator[Conduct]:
    """Every decision beside its context, one context at a time."""
    asked: dict[str, list[Decision]] = {}
    for one in decisions:
        asked.setdefault(one.context_id, []).append(one)
    for name, context in store.each_context():
        for one in asked.get(name, ()):
            yield conduct_of(one, context)


def conduct_of(decision: Decision, context: Context) -> Conduct:
    """What a decision shows of the conduct of its agent.

    The limits are those of the context, held against its book after the orders at its last prices; see
    `assaymark.portfolio.orders.audit`. Orders that cannot be settled break the one rule `UNSETTLED`.
    """
    usable = not set(decision.flags) & set(NOT_USABLE)
    timed = decision.call.timing_source != "absent"
    return Conduct(
        agent=decision.agent.id,
        cluster=decision.cluster,
        usable=usable,
        flags=decision.flags,
        checks=_checks(decision, context) if usable else None,
        seconds=decision.call.seconds if timed else None,
        output_tokens=decision.call.output_tokens,
        tokens=token_count(judged_text(decision)),
    )


def _checks(decision: Decision, context: Context) -> tuple[tuple[str, bool], ...] | None:
    """Every numeric limit and whether it is kept; None without a book."""
    if context.portfolio is None:
        return None
    try:
        after = settle(context.portfolio, prices_of(context), decision.actions, fee_bps=fee_of(context.constraints))
    # Amounts beyond what a float holds make sums of infinities.
    except (InputError, ValueError, OverflowError):
        return ((UNSETTLED, False),)
    if not math.isfinite(after.equity + after.exposure):
        return ((UNSETTLED, False),)
    return tuple((check.rule, check.kept) for check in audit(after, context.constraints))
