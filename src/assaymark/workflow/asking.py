"""Calls through the ledger of a run folder: every one has its reply, or the work stops here and can go on."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from assaymark.engine import (
    CallSpec,
    Ledger,
    Limits,
    Model,
    Purse,
    Reply,
    RunSummary,
    Unusable,
    Watch,
    run_calls,
)
from assaymark.engine.models import Models, check_ready
from assaymark.engine.models.prices import Prices, costs_nothing, load_prices
from assaymark.errors import InputError, ModelError, StoppedError
from assaymark.protocol import EngineChoice
from assaymark.records import canonical_json, problems_of
from assaymark.workflow.batched import ask_in_batches, batched_calls
from assaymark.workflow.folder import RunFolder, anchor_lock
from assaymark.workflow.paid import leave_prices
from assaymark.workflow.progress import Progress, paying, saying

_LOG: Final = logging.getLogger(__name__)
_MANNER: Final = "manner"
_LOOKED_AT: Final = 200  # calls of each model whose replies of earlier runs are looked at


def run_all(
    ledger: Ledger,
    calls: Sequence[CallSpec],
    models: Mapping[str, Model],
    engine: EngineChoice,
    *,
    what: str,
    progress: Progress,
    unusable: Unusable | None = None,
    first: bool = True,
) -> RunSummary:
    """Ask every call that has no reply yet, in the manner that a plan sets: in batches, if it says so.

    Whoever answers is first seen to be ready. Of a model that has answered nothing on this ledger yet, one call is
    asked before all others: what no call of it can pass, is found by that one. With a purse, nothing is asked that it
    does not pay; calls in batches, which cannot be stopped one by one, have to fit into it together.

    Parameters
    ----------
    unusable : callable, optional
        Says why nothing can be made of a reply: a model whose first replies are all unusable is asked no further.
    first : bool
        Without it, all calls are asked together, and what a model cannot do stops nothing but its own calls.

    Raises
    ------
    ModelError
        A model is not ready: no key, nobody at its address. Nothing was sent. Or its first call failed in a way that
        all others would: nothing else was sent.
    PlanError
        There is a budget, and a call without a known price, or batches that do not fit.
    """
    _check_ready(ledger, calls, models)
    if ledger.leases is not None:  # for workers that have nothing but the ledger
        ledger.notes.replace(_MANNER, engine.model_dump_json())
    leave_prices(ledger, models.prices if isinstance(models, Models) else None)
    purse = purse_of(models)
    if engine.batch:
        if purse is not None:
            purse.afford(ledger, batched_calls(calls))
        ask_in_batches(ledger, calls, engine, what=what, progress=progress)
    _LOG.info("%s: %s", what, ", ".join(f"{n:,} calls of {model}" for model, n in _counts(calls).items()))
    told = _cost_told(models, progress)
    tried = None
    if first and (ones := _unheard(ledger, calls)):
        tried = run_calls(ledger, ones, models, purse=purse, told=told, watch=Watch(), **manner(engine))
        if tried.interrupted or tried.stopped:
            require_not_stopped(tried, ledger.name)
            raise ModelError("; ".join(tried.stopped), retryable=True)
    lost = {one.key for one in tried.failed} if tried is not None else set()
    summary = run_calls(
        ledger,
        [call for call in calls if call.key not in lost] if lost else calls,
        models,
        purse=purse,
        progress=lambda done, total: progress(what, done, total),
        told=told,
        watch=_watch(ledger, calls, unusable) if first or unusable is not None else None,
        **manner(engine),
    )
    if tried is None:
        return summary
    both = _both(tried, summary)
    # What may be wrong with one call alone is asked again beside replies to others: then it counts as refused.
    answered = ledger.standing() if any(one.turned_away for one in tried.failed) else {}
    some = {one.key for one in tried.failed if one.turned_away and answered[one.model][1]}
    if not some or both.interrupted or both.stopped:
        return both
    back = [call for call in calls if call.key in some]
    again = run_calls(ledger, back, models, purse=purse, told=told, watch=Watch(), **manner(engine))
    failed = (*(one for one in both.failed if one.key not in some), *again.failed)
    return replace(
        both,
        made=both.made + again.made,
        elsewhere=both.elsewhere + again.already + again.elsewhere,
        failed=failed,
        stopped=again.stopped,
        interrupted=again.interrupted,
    )


def _both(tried: RunSummary, rest: RunSummary) -> RunSummary:
    """The calls that were asked first, and all others, as one run."""
    return replace(
        rest,
        planned=rest.planned + len(tried.failed),
        already=rest.already - tried.made,
        made=rest.made + tried.made,
        failed=(*tried.failed, *rest.failed),
        retried=rest.retried + tried.retried,
        orphaned=rest.orphaned + tried.orphaned,
        put_off=rest.put_off + tried.put_off,
    )


def _unheard(ledger: Ledger, calls: Sequence[CallSpec]) -> list[CallSpec]:
    """The first call of each provider's model that has several and has answered nothing on this ledger yet."""
    by_model: dict[str, list[CallSpec]] = {}
    for call in calls:
        if call.model not in ledger.heard and not costs_nothing(call.model):
            by_model.setdefault(call.model, []).append(call)
    if not by_model:
        return []
    ledger.heard |= {model for model, (_, answered) in ledger.standing().items() if answered}
    found = [ones[0] for model, ones in by_model.items() if model not in ledger.heard and len(ones) > 1]
    ledger.heard |= by_model.keys()
    return found


def _watch(ledger: Ledger, calls: Sequence[CallSpec], unusable: Unusable | None) -> Watch:
    """Watches the replies of now; those of earlier runs count for models of which no reply was usable."""
    watch = Watch(unusable)
    if unusable is not None:
        before: dict[str, list[CallSpec]] = {}
        for call in calls:
            if not call.model.startswith("reference/") and len(some := before.setdefault(call.model, [])) < _LOOKED_AT:
                some.append(call)
        asked = {call.key: call for some in before.values() for call in some}
        for key, reply in ledger.replies(asked):
            watch.replied(asked[key], reply)
    return watch


def _counts(calls: Sequence[CallSpec]) -> dict[str, int]:
    return dict(sorted(Counter(call.model for call in calls).items()))


def _cost_told(models: Mapping[str, Model], progress: Progress) -> Callable[[str, Reply], None] | None:
    """Tells whoever watches what each reply cost; None where nobody wants to know, or nothing costs anything."""
    pay = paying(progress)
    if pay is None:
        return None
    prices = prices_of(models)

    def told(model: str, reply: Reply) -> None:
        if cost := prices.paid(model, reply):
            pay(cost)

    return told


def manner_left(ledger: Ledger) -> EngineChoice | None:
    """The manner in which calls of a shared ledger were asked last; None if none were.

    Raises
    ------
    InputError
        It is of a form that this version does not know.
    """
    text = ledger.notes.read(_MANNER)
    try:
        return None if text is None else EngineChoice.model_validate_json(text)
    except ValidationError as exc:
        raise InputError(f"{ledger.name}, how its calls are asked", problems_of(exc, EngineChoice)) from None


def _check_ready(ledger: Ledger, calls: Sequence[CallSpec], models: Mapping[str, Model]) -> None:
    """See that every model that is not ours, and has something left to answer, is there and has its key."""
    outside = {call.key: call for call in calls if not call.model.startswith("reference/")}
    wanted = {
        (call.model, canonical_json(call.args)): call for call in map(outside.get, ledger.pending(outside)) if call
    }
    for _, call in sorted(wanted.items()):
        if call.model in models:
            check_ready(models[call.model], call.args)


def say_raised(models: Mapping[str, Model], progress: Progress) -> None:
    """Show what Python agents raised, once each."""
    for line in models.raised() if isinstance(models, Models) else ():
        saying(progress)(line)


def purse_of(models: Mapping[str, Model]) -> Purse | None:
    """The budget that these models are paid from, if there is one."""
    return models.purse if isinstance(models, Models) else None


def prices_of(models: Mapping[str, Model]) -> Prices:
    """What these models cost: the prices that they were given, else those that come with assaymark."""
    found = models.prices if isinstance(models, Models) else None
    return load_prices() if found is None else found


def manner(engine: EngineChoice) -> Any:
    """How a plan has calls made, as arguments of the runner."""
    return {
        "concurrency": engine.concurrency,
        "deadline_s": engine.deadline_s,
        "attempts": engine.attempts,
        "backoff_s": engine.backoff_s,
        "limits": {
            provider: Limits(limit.requests_per_minute, limit.tokens_per_minute)
            for provider, limit in engine.limits.items()
        },
    }


def ask(
    folder: RunFolder,
    calls: Sequence[CallSpec],
    models: Mapping[str, Model],
    *,
    judge: str,
    what: str,
    progress: Progress,
    engine: EngineChoice | None = None,
    unusable: Unusable | None = None,
) -> dict[str, Reply]:
    """The replies to one judge's calls by key, asking only for those that the ledger does not have.

    Raises
    ------
    ModelError
        Calls failed for good.
    StoppedError
        The run was asked to stop.
    """
    with Ledger.open(folder.ledger) as ledger:
        anchor_lock(folder, ledger)
        ledger.plan(calls)
        summary = run_all(
            ledger, calls, models, engine or EngineChoice(), what=f"{what} {judge}", progress=progress,
            unusable=unusable,
        )  # fmt: skip
        require_all(summary, judge, folder)
        return dict(ledger.replies([call.key for call in calls]))


def require_all(summary: RunSummary, judge: str, folder: RunFolder) -> None:
    """Stop here unless every call of a judge has its reply.

    Raises
    ------
    ModelError
        Calls failed for good; says which came first, and that replies are kept.
    StoppedError
        The run was asked to stop; says how many have their reply.
    """
    require_not_stopped(summary, folder)
    kept = f"every reply so far is kept in {folder.path}, and the same command goes on"
    if summary.stopped:
        raise ModelError("; ".join(summary.stopped), retryable=True)
    if summary.failed:
        first = min(summary.failed, key=lambda failure: failure.key)
        failed = f"{len(summary.failed)} of {summary.planned} calls of {judge} failed"
        raise ModelError(f"{failed} (first: {first.key[:12]}..., {first.reason}); {kept}", retryable=True)
    if summary.left:
        raise ModelError(f"{summary.left} of {summary.planned} calls of {judge} were given up elsewhere; {kept}",
                         retryable=True)  # fmt: skip


def require_not_stopped(summary: RunSummary, folder: RunFolder | str) -> None:
    """Stop here if a run of calls was asked to stop before its end.

    Raises
    ------
    StoppedError
        It was; says how many calls have their reply, and where that is kept.
    """
    if summary.interrupted:
        answered = summary.already + summary.made + summary.elsewhere
        where = folder if isinstance(folder, str) else folder.path
        raise StoppedError(
            f"stopped: {answered:,} of {summary.planned:,} calls are answered and kept in {where}; "
            "the same command goes on from there"
        )
