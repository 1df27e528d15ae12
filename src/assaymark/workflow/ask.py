"""Calls through the ledger of a run folder: cost estimates, asking, spend, and reading calls in chunks for pages."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

import assaymark.engine as calling
from assaymark.agents.llm import NOT_USABLE, DecisionKey, decision_of
from assaymark.engine import CallSpec, Ledger, Model, Reply, RunSummary, SpendLimit, Text, Unusable, Watch, run_calls
from assaymark.engine import prices as tariffs
from assaymark.engine.prices import CallEstimate, Prices, costs_nothing, load_prices
from assaymark.engine.providers.http_agent import is_outside, patience
from assaymark.engine.providers.registry import Models, batch_providers, check_ready
from assaymark.engine.rate_limits import KEPT, endpoint_of
from assaymark.errors import InputError, LedgerError, ModelError, PlanError, StoppedError
from assaymark.prompting import NotJson, Rejected, strict_reply
from assaymark.protocol import AgentSpec, EngineChoice, JudgeSpec
from assaymark.records import Context, Decision, Judgment, canonical_json, grouped, sha256_text, write_atomic
from assaymark.text import money
from assaymark.workflow.progress import cost_callback, counts, say
from assaymark.workflow.run_folder import RunFolder, anchor_lock, missing
from assaymark.workflow.tables import PAIRS, POINTS, Store

if TYPE_CHECKING:
    from assaymark.judging import PlannedCall
    from assaymark.report import PaidView
    from assaymark.report.records.answers import AnswerIndex
    from assaymark.report.records.calls import AskedCall, ReadCalls

_LOG: Final = logging.getLogger(__name__)
MANNER, _PLAN, _PRICES = "manner", "plan", "prices"  # keys of notes in a ledger
_LOOKED_AT: Final = 200  # replies of earlier runs that are examined for each model
_LANE: Final = 8  # agents that are called at once
_MARGIN_S: Final = 10.0
_AT_ONCE: Final = 200  # calls that are read at once for pages
_STAYS: Final = "stored verbatim and not retried"
_ALL: Final = (
    "; if the model cannot produce the required JSON, name another one: assaymark amend (while no reply of this judge "
    "is usable), or a new run folder"
)
_ALL_OF_AGENT: Final = "; if it cannot answer in this form, give this agent another model in a new run folder"

# --- Messages on unusable replies -------------------------------------------------------------------------------------


def reply_lines(judgments: Sequence[Judgment]) -> list[str]:
    """Return a line for each judge that was asked again for JSON, then one for each with unusable replies."""
    totals, ok = Counter(judgment.judge for judgment in judgments), Counter[str]()
    again: Counter[str] = Counter(judgment.judge for judgment in judgments if judgment.first_key)
    ok.update(judgment.judge for judgment in judgments if judgment.first_key and judgment.status == "ok")
    lines = [retry_line(judge, again[judge], totals[judge], ok[judge]) for judge in sorted(again)]
    for judge in sorted(totals):
        bad = [judgment for judgment in judgments if judgment.judge == judge and judgment.status != "ok"]
        refused = sum(judgment.status == "refused" for judgment in bad)
        parts = [f"{refused:,} refused"] if refused else []
        if other := len(bad) - refused:
            first = next((f" (first: {one.reason})" for one in bad if one.status != "refused" and one.reason), "")
            parts.append(f"{other:,} not in the required form{first}")
        if bad:
            share = f"{len(bad):,} of {totals[judge]:,} replies have no scores: {', '.join(parts)}"
            lines.append(f"{judge}: {share}; {_STAYS}{_ALL if len(bad) == totals[judge] else ''}")
    return lines


def retry_line(judge: str, n: int, of: int, ok: int) -> str:
    """The line for a judge of whose ``of`` calls ``n`` were made again, with usable scores in ``ok`` of them."""
    share = f"{n:,} of {of:,} replies ({n / of:.1%})"
    return f"{judge}: {share} were no JSON; asked once more (trial 1b), {ok:,} of them have scores"


def unusable_decisions(decisions: Sequence[Decision]) -> list[str]:
    """Return a line for each agent that has replies without a decision."""
    totals, bad = Counter(decision.agent.id for decision in decisions), defaultdict[str, Counter[str]](Counter)
    for decision in decisions:
        bad[decision.agent.id].update(set(decision.flags) & set(NOT_USABLE))
    return [
        f"{agent}: {kinds.total():,} of {totals[agent]:,} replies have no decision ({', '.join(sorted(kinds))}); "
        f"{_STAYS}{_ALL_OF_AGENT if kinds.total() == totals[agent] else ''}"
        for agent, kinds in sorted(bad.items()) if kinds
    ]  # fmt: skip


def unusable_of(planned: Sequence[PlannedCall[Any, Any]]) -> Unusable:
    """Return a function for `run_all` that names the judge and the reason if a reply is unusable."""
    by_key: dict[str, PlannedCall[Any, Any]] = {}

    def reason_of(call: CallSpec, reply: Reply) -> tuple[str, str] | None:
        if not by_key:  # computing keys is slow, and most runs never need them
            by_key.update({item.call.key: item for item in planned})
        planned_call = by_key[call.key]
        reason = planned_call.read(reply).reason
        return None if reason is None else (planned_call.judge.name, reason)

    return reason_of


# --- Asking -----------------------------------------------------------------------------------------------------------


def _ask_in_batches(ledger: Ledger, batched: Sequence[CallSpec], engine: EngineChoice, step: str) -> None:
    """Send calls in provider batches and wait for all replies; raises if some are missing at the end."""
    from assaymark.engine.batching import run_batches

    if waiting := len(ledger.pending({call.key for call in batched})):
        say(
            f"{step}: {waiting:,} calls without a reply go in batches, polled every {engine.batch_poll_s:g} s; this "
            "can take a day. It can be stopped at any time: the same command finds its batches again"
        )
    summary = run_batches(
        ledger, batched, batch_providers(), poll_s=engine.batch_poll_s, attempts=engine.attempts,
        progress=counts(f"{step} in batches"), say=say,
    )  # fmt: skip
    if waiting:
        say(f"{step}: {summary.made:,} replies collected from batches, {waiting - summary.made:,} calls without one")
    hint = "every reply so far is kept, and the same command collects the rest"
    problem = "; ".join(summary.stopped)
    if not problem and summary.failed:
        first = min(summary.failed, key=lambda failure: failure.key)
        problem = f"{len(summary.failed)} calls in batches failed (first: {first.key[:12]}..., {first.reason}); {hint}"
    elif not problem and (summary.under_way or summary.left):
        problem = f"stopped waiting: {summary.under_way} calls are in batches that continue at the provider; {hint}"
    if problem:
        raise StoppedError(problem) if summary.interrupted else ModelError(problem, retryable=True)


def run_all(
    ledger: Ledger, calls: Sequence[CallSpec], models: Mapping[str, Model], engine: EngineChoice, stage: str,
    unusable: Unusable | None = None, *, first: bool = True,
) -> RunSummary:  # fmt: skip
    """Make the calls without a reply, directly or in batches as the plan says; new models get one trial call first."""
    # Check that every external model that has calls left is known and has its key.
    outside = {call.key: call for call in calls if not call.model.startswith("reference/")}
    samples = {(one.model, canonical_json(one.args)): one for one in map(outside.get, ledger.pending(outside)) if one}
    for _, call in sorted(samples.items()):
        if call.model in models:
            check_ready(models[call.model], call)
    if ledger.leases is not None:  # for workers that have nothing but the ledger
        ledger.notes.set(MANNER, engine.model_dump_json())
    tariff = models.prices if isinstance(models, Models) else None
    if tariff is not None and tariff.source != tariffs.SHIPPED:  # the report is made without the price file
        ledger.notes.set(_PRICES, tariffs.text_of_prices(tariff))
    budget = budget_of(models)
    if engine.batch:
        batched = [call for call in calls if calling.provider_of(call.model) in batch_providers()]
        if budget is not None:
            budget.check_affordable(ledger, batched)
        if batched:
            _ask_in_batches(ledger, batched, engine, stage)
    models_asked = sorted(Counter(call.model for call in calls).items())
    _LOG.info("%s: %s", stage, ", ".join(f"{n:,} calls of {model}" for model, n in models_asked))
    pay, prices = cost_callback(), prices_of(models)
    on_reply = None if pay is None else lambda model, reply: pay(prices.paid(model, reply) or 0.0)
    paid = {"budget": budget, "on_reply": on_reply, **run_options(engine)}
    # First one call to each paid model that has several calls and has not replied on this ledger yet.
    by_model: dict[str, list[CallSpec]] = {}
    for call in calls if first else ():
        if call.model not in ledger.responded and not costs_nothing(call.model):
            by_model.setdefault(call.model, []).append(call)
    tried, canaries = None, list[CallSpec]()
    if by_model:
        ledger.responded |= {model for model, (_, answered) in ledger.answer_counts().items() if answered}
        canaries = [group[0] for model, group in by_model.items() if model not in ledger.responded and len(group) > 1]
        ledger.responded |= by_model.keys()
    if canaries:
        tried = run_calls(ledger, canaries, models, watch=Watch(), **paid)
        if tried.interrupted or tried.stopped:
            require_not_stopped(tried, ledger.name)
            raise ModelError("; ".join(tried.stopped), retryable=True)
    lost = {failure.key for failure in tried.failed} if tried is not None else set()
    watch = Watch(unusable) if first or unusable is not None else None
    if unusable is not None and watch is not None:
        # Replies of earlier runs count for models without any usable reply.
        before: defaultdict[str, list[CallSpec]] = defaultdict(list)
        for call in calls:
            if not call.model.startswith("reference/") and len(before[call.model]) < _LOOKED_AT:
                before[call.model].append(call)
        recent = {call.key: call for group in before.values() for call in group}
        for key, reply in ledger.replies(recent):
            watch.replied(recent[key], reply)
    summary = run_calls(
        ledger, [call for call in calls if call.key not in lost] if lost else calls, models,
        progress=counts(stage), watch=watch, **paid,
    )  # fmt: skip
    if tried is None:
        return summary
    both = replace(
        summary, planned=summary.planned + len(tried.failed), already=summary.already - tried.made,
        made=summary.made + tried.made, failed=(*tried.failed, *summary.failed),
        retried=summary.retried + tried.retried, orphaned=summary.orphaned + tried.orphaned,
        deferred=summary.deferred + tried.deferred,
    )  # fmt: skip
    # A call that its model rejected is sent again once the model has replied to others; a second rejection counts.
    answered = ledger.answer_counts() if any(failure.refused for failure in tried.failed) else {}
    alone = {failure.key for failure in tried.failed if failure.refused and answered[failure.model][1]}
    if not alone or both.interrupted or both.stopped:
        return both
    again = run_calls(ledger, [call for call in calls if call.key in alone], models, watch=Watch(), **paid)
    return replace(
        both, made=both.made + again.made, elsewhere=both.elsewhere + again.already + again.elsewhere,
        failed=(*(failure for failure in both.failed if failure.key not in alone), *again.failed),
        stopped=again.stopped, interrupted=again.interrupted,
    )  # fmt: skip


def print_raised(models: Mapping[str, Model]) -> None:
    """Print the exceptions that Python agents raised, each once."""
    for line in models.raised() if isinstance(models, Models) else ():
        say(line)


def budget_of(models: Mapping[str, Model]) -> SpendLimit | None:
    """Return the budget that these models are paid from; None if there is none."""
    return models.budget if isinstance(models, Models) else None


def prices_of(models: Mapping[str, Model]) -> Prices:
    """Return the prices that these models were given, else the built-in ones."""
    return (models.prices if isinstance(models, Models) else None) or load_prices()


def run_options(engine: EngineChoice) -> Any:
    """Return the settings for calls from a plan as keyword arguments of `run_calls`."""
    return engine.model_dump(include={"concurrency", "deadline_s", "attempts", "backoff_s"}) | {"limits": engine.limits}


def agent_engine(engine: EngineChoice, agents: Iterable[AgentSpec]) -> EngineChoice:
    """Return the engine settings for calling agents: few at once, so that a decision's seconds do not include queueing,
    and a deadline above the longest that an external agent may take, because a call cut off would be sent again."""
    outside = (patience(agent.args) + _MARGIN_S for agent in agents if is_outside(agent.model))
    limits = {"concurrency": min(engine.concurrency, _LANE), "deadline_s": max([engine.deadline_s, *outside])}
    return engine.model_copy(update=limits)


@dataclass(frozen=True, slots=True)
class PlannedDecision:
    """A planned decision: one agent about one context, with its call."""

    spec: AgentSpec
    place: DecisionKey
    context: Context
    call: CallSpec

    def decision(self, reply: Reply, prices: Prices, batch: bool = False) -> Decision:
        """Return the decision in a reply, with its cost if a price is known."""
        tokens = reply.input_tokens, reply.output_tokens, reply.cached_tokens
        cost = prices.cost_of(self.call.model, *tokens, batch)
        return decision_of(self.spec, self.context, self.place, reply, self.call.key, cost)


def ask(
    folder: RunFolder, calls: Sequence[CallSpec], models: Mapping[str, Model], judge: str, stage: str,
    engine: EngineChoice | None = None, unusable: Unusable | None = None,
) -> dict[str, Reply]:  # fmt: skip
    """Return the replies to the calls of one judge by key; only calls without a stored reply are made."""
    with Ledger.open(folder.ledger) as ledger:
        anchor_lock(folder, ledger)
        settings = models, engine or EngineChoice()
        return require_replies(folder, ledger, calls, *settings, f"{stage} {judge}", judge, unusable)[0]


def require_replies(
    folder: RunFolder, ledger: Ledger, calls: Sequence[CallSpec], models: Mapping[str, Model], engine: EngineChoice,
    stage: str, judge: str, unusable: Unusable | None = None,
) -> tuple[dict[str, Reply], int]:  # fmt: skip
    """Return the replies to all calls by key, and how many are new; raises `ModelError` if any is missing."""
    ledger.plan(calls)
    summary = run_all(ledger, calls, models, engine, stage, unusable)
    require_all(summary, judge, folder)
    return stored_replies(ledger, calls), summary.made


def stored_replies(ledger: Ledger, calls: Sequence[CallSpec]) -> dict[str, Reply]:
    """Return the replies to calls that were all answered; raises `LedgerError` if any cannot be found."""
    keys = [call.key for call in calls]  # computing keys is slow
    replies = dict(ledger.replies(keys))
    if lost := sum(key not in replies for key in keys):
        raise LedgerError(f"{lost} replies that were recorded cannot be found in the call log; it is damaged")
    return replies


def require_all(summary: RunSummary, judge: str, folder: RunFolder) -> None:
    """Raise `ModelError` unless every call of a judge has its reply, `StoppedError` if the run was interrupted."""
    require_not_stopped(summary, folder)
    advice = f"every reply so far is kept in {folder.path}; run the same command to resume"
    calls, problem = f"of {summary.planned} calls of {judge}", "; ".join(summary.stopped)
    if not problem and summary.failed:
        first = min(summary.failed, key=lambda failure: failure.key)
        problem = f"{len(summary.failed)} {calls} failed (first: {first.key[:12]}..., {first.reason}); {advice}"
    elif not problem and summary.left:
        problem = f"{summary.left} {calls} were given up elsewhere; {advice}"
    if problem:
        raise ModelError(problem, retryable=True)


def require_not_stopped(summary: RunSummary, folder: RunFolder | str) -> None:
    """Raise `StoppedError` if a run of calls was interrupted."""
    if summary.interrupted:
        answered = summary.already + summary.made + summary.elsewhere
        place = folder if isinstance(folder, str) else folder.path
        raise StoppedError(
            f"stopped: {answered:,} of {summary.planned:,} calls are answered and kept in {place}; "
            "run the same command to resume"
        )


# --- One trial call to each model before a plan is locked: finds a wrong name, key or reply form ----------------------

_NOTHING: Final = "nothing is locked, and at most one call a model was sent"
_CHECK: Final = (
    "This only checks that you can be asked; nothing is decided or graded by it. Answer with one JSON object of this "
    "form, with any content:"
)


@dataclass(eq=False)
class Canaries:
    """Trial calls: the first planned call of each model, made before the lock and stored under its key after it."""

    models: Mapping[str, Model]
    engine: EngineChoice = field(default_factory=EngineChoice)
    problems: list[str] = field(default_factory=list)
    kept: dict[str, tuple[CallSpec, Reply]] = field(default_factory=dict)
    _asked: set[tuple[str, ...]] = field(default_factory=set)
    _twice: bool = False

    def ask(
        self, calls: Iterable[CallSpec], *, ours: bool = False, further: Callable[[], Iterable[CallSpec]] = tuple
    ) -> None:
        """Make the first of these calls to each model not called yet; built-in models are called only with ``ours``."""

        def place(call: CallSpec) -> tuple[str, ...]:  # the model and its endpoint
            return (call.model, *map(str, endpoint_of(call)))

        firsts, all_calls = [], list(calls)
        for call in all_calls:
            if place(call) in self._asked or (call.model.startswith("reference/") and not ours):
                continue
            self._asked.add(place(call))
            try:
                check_ready(self.models[call.model], call)
            except ModelError as exc:
                self.problems.append(str(exc) if str(exc).startswith(call.model) else f"{call.model}: {exc}")
            else:
                firsts += [] if is_outside(call.model) else [call]
        refused = self._send(firsts) if firsts else []
        # For each model that rejected its first call as a request, try the next call with another text.
        second: dict[str, tuple[CallSpec, str]] = {}
        planned = [*all_calls, *further()] if refused else []
        for call, reason in refused:
            alike = (other for other in planned if place(other) == place(call) and other.messages != call.messages)
            if (other := next(alike, None)) is None:
                self.problems.append(reason if reason.startswith(call.model) else f"{call.model}: {reason}")
            else:
                second[other.key] = other, reason
        self._twice = self._twice or bool(second)
        for call, reason in self._send([call for call, _ in second.values()]) if second else []:
            self.problems.append(f"{call.model}: {second[call.key][1]}; its next call was refused too: {reason}")

    def _send(self, calls: Sequence[CallSpec]) -> list[tuple[CallSpec, str]]:
        """Make these calls; returns those that were rejected as requests, with the reason."""
        budget = budget_of(self.models)
        with TemporaryDirectory() as path, Ledger.open(Path(path) / "ledger.db") as ledger:
            summary = run_calls(
                ledger, calls, self.models, budget=None if budget is None else budget.fresh(),
                progress=counts("asking each model once"), **run_options(self.engine),
            )  # fmt: skip
            replies = dict(ledger.replies([call.key for call in calls]))
        require_not_stopped(summary, "no folder, because nothing is locked yet")
        by_key = {call.key: call for call in calls}
        # Drop the provider from the reason, because the name of the model has it.
        failed = [(one, one.reason.removeprefix(f"{one.model.partition('/')[0]}: ")) for one in summary.failed]
        self.problems += [f"{failure.model}: {reason}" for failure, reason in failed if not failure.refused]
        ended = {*replies, *(failure.key for failure in summary.failed)}
        for call in (call for call in calls if call.key not in ended):
            starts = (call.model.partition("/")[0], "budget")
            reason = "; ".join(line.removesuffix(f"; {KEPT}") for line in summary.stopped if line.startswith(starts))
            self.problems.append(f"{call.model}: not asked to the end ({reason})")
        for key, reply in replies.items():
            call, missed = by_key[key], False
            if call.schema is not None and reply.finish == "stop":  # one code fence around the JSON is accepted
                try:
                    missed = not isinstance(strict_reply(reply.text), dict)
                except Rejected as exc:
                    missed = isinstance(exc, NotJson)
            if missed:
                shown = f"begins {calling.first_line(reply.text)}" if reply.text.strip() else "is empty"
                problem = f"wrote no JSON object where one is asked for; its reply {shown}"
                self.problems.append(f"{call.model}: {problem}")
            else:
                self.kept[key] = call, reply
        return [(by_key[failure.key], reason) for failure, reason in failed if failure.refused]

    def require(self) -> None:
        """Raise `ModelError` that lists all problems, if there are any."""
        nothing = f"{_NOTHING}, and a second one where that was refused" if self._twice else _NOTHING
        if len(self.problems) == 1:
            raise ModelError(f"{self.problems[0]}; {nothing}", retryable=False)
        if self.problems:
            head = f"{len(self.problems)} models cannot be called; {nothing}"
            raise ModelError("\n  ".join([head, *self.problems]), retryable=False)

    def keep(self, folder: RunFolder, locked: Any = None) -> None:
        """Store the replies in the ledger of the locked plan, so that these calls are not made again."""
        if self.kept:
            with Ledger.open(folder.ledger) as ledger:
                if locked is not None:
                    check_plan_hash(folder, ledger, locked)
                calls = [call for call, _ in self.kept.values()]
                run_calls(ledger, calls, dict.fromkeys((call.model for call in calls), self))

    async def complete(self, call: CallSpec) -> Reply:
        """Return the reply to a call made before, so that `keep` can pass this object as a model."""
        return self.kept[call.key][1]


def check_call(spec: AgentSpec | JudgeSpec, schema: str) -> CallSpec:
    """Return a trial call to a model whose first real call depends on data that does not exist yet."""
    form = Text.of(schema)
    return CallSpec.to(spec, (calling.Message("user", (Text.of(_CHECK), form)),), sha256_text(_CHECK), form)


# --- One ledger for several machines ----------------------------------------------------------------------------------


def name_ledger(folder: RunFolder, url: str) -> None:
    """Make a database the ledger of a run folder that has none yet; naming the same one again changes nothing."""
    if check_ledger_name(folder, url):
        with Ledger.open(url):
            write_atomic(folder.ledger_url, url + "\n")


def check_ledger_name(folder: RunFolder, url: str) -> bool:
    """True if `name_ledger` still has to write; raises the same errors, but connects to no database."""
    problem = ""
    try:
        parsed = sa.make_url(url)
        if parsed.password or "password" in parsed.query:
            problem = "must not hold a password, it would be written down; set PGPASSWORD, or use a .pgpass file"
    except ArgumentError:
        problem = "is not the URL of a database (not shown: it may hold a password)"
    if problem:
        raise InputError("--ledger", [problem])
    if folder.has_ledger and folder.ledger != url:
        raise PlanError(f"{folder.path} has its call log elsewhere already ({folder.ledger}); use a new run folder")
    return not folder.has_ledger


def check_plan_hash(folder: RunFolder, ledger: Ledger, locked: Any) -> None:
    """Before calls: anchor the lock in the ledger; raises `PlanError` if a shared ledger is of another plan."""
    if ledger.leases is not None:
        plan = locked.amendments[0].plan_before if locked.amendments else locked.plan_hash
        stored = ledger.notes.setdefault(_PLAN, plan)
        if stored != plan:
            raise PlanError(
                f"{ledger.name} holds the calls of another plan ({stored[:12]}..., this one is {plan[:12]}...); "
                "one call log is for one plan: name another database, or another schema of it"
            )
    anchor_lock(folder, ledger)


# --- Estimated and actual cost of a run: `--dry-run`, `--budget`, and the lines after a run ---------------------------


def paid_models(models: Mapping[str, Model], budget: float | None, prices: Path | None, strict: bool = False) -> Models:
    """Return ``models`` with the prices of a file (default: the built-in ones) and with a budget in USD if given."""
    if prices is not None and not prices.exists():
        raise missing(prices, "file of prices")
    tariff = load_prices(prices)
    try:
        limit = None if budget is None else SpendLimit(budget, tariff)
    except ValueError as exc:
        raise InputError("--budget", [str(exc)]) from None
    registry = models if isinstance(models, Models) else Models(models, {})
    return registry.paid_from(limit, tariff, strict)


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The calls of one model: counts by stage, how many have a reply already, and the estimate for the rest."""

    model: str
    stages: Mapping[str, int]
    already: int
    rest: CallEstimate


@dataclass(frozen=True, slots=True)
class Forecast:
    """The result of a dry run: estimates by model, their sum in USD (None if a price is unknown), and lines."""

    models: tuple[CostEstimate, ...]
    usd: float | None
    lines: tuple[str, ...]

    def with_note(self, line: str) -> Forecast:
        """Return a copy with one more line before the last."""
        return replace(self, lines=(*self.lines[:-1], line, self.lines[-1]))


def forecast(
    stages: Mapping[str, Iterable[CallSpec]], folder: RunFolder, prices: Prices, batch: bool = False,
    notes: Sequence[str] = (),
) -> Forecast:  # fmt: skip
    """Estimate the calls of each model in the stages of a run, and their sum; ``notes`` are lines on the rest."""
    calls: dict[str, tuple[str, CallSpec]] = {}
    for stage, group in stages.items():
        for call in group:
            calls.setdefault(call.key, (stage, call))
    pending = set(calls)
    if folder.has_ledger:
        with Ledger.open(folder.ledger, create=False) as ledger:
            pending = set(ledger.pending(pending))
    counts, rest = defaultdict[str, Counter[str]](Counter), defaultdict[str, list[CallSpec]](list)
    for key, (step, call) in calls.items():
        counts[call.model][step] += 1
        if key in pending:
            rest[call.model].append(call)
    estimates = [CostEstimate(name, tally, tally.total() - len(rest[name]), prices.estimate_all(rest[name], batch))
             for name, tally in sorted(counts.items())]  # fmt: skip
    lines = []
    for estimate in estimates:
        each = ", ".join(f"{stage} {n:,}" for stage, n in estimate.stages.items())
        cost = "costs nothing"
        if not costs_nothing(estimate.model):
            basis = estimate.rest.basis.rpartition("output tokens: ")[2]
            tokens = f"about {estimate.rest.tokens:,} input and {estimate.rest.output_tokens:,} output tokens ({basis})"
            cost = f"{tokens}, {'no price known' if estimate.rest.cost is None else f'{money(estimate.rest.cost)} USD'}"
        total = counts[estimate.model].total()
        lines.append(f"{estimate.model}: {total:,} calls ({each}), {estimate.already:,} answered already; {cost}")
    # The sum for all models; unknown if the cost of one is.
    paid = [estimate for estimate in estimates if estimate.rest.cost is None or not costs_nothing(estimate.model)]
    priced = [estimate.rest.cost for estimate in paid if estimate.rest.cost is not None]
    amount = f"about {money(sum(priced))} USD" if paid else "costs nothing"
    if unpriced := ", ".join(estimate.model for estimate in paid if estimate.rest.cost is None):
        others = f"; the other models: {amount}" if priced else ""
        amount = f"cost not known, because there is no price of {unpriced} (--prices FILE){others}"
    already = sum(estimate.already for estimate in estimates)
    lines.append(f"in all {len(calls):,} calls, {already:,} answered already; the rest: {amount}")
    lines += notes
    if any(not costs_nothing(estimate.model) for estimate in estimates):
        lines.append(f"input tokens: characters / {tariffs.CHARACTERS_PER_TOKEN}; prices: {prices.source}")
    costs = [estimate.rest.cost for estimate in estimates if estimate.rest.cost is not None]
    usd = sum(costs) if len(costs) == len(estimates) else None
    return Forecast(tuple(estimates), usd, (*lines, "dry run: nothing was sent"))


def stored_prices(ledger: Ledger) -> Prices:
    """Return the prices stored with the calls of a ledger, else the built-in ones."""
    noted = ledger.notes.get(_PRICES)
    return load_prices() if noted is None else tariffs.prices_of_text(noted)


def paid_views(folder: RunFolder, prices: Prices | None = None) -> tuple[PaidView, ...]:
    """Return calls, tokens and spend of each paid model of a run; empty if no model is paid."""
    if not folder.has_ledger:
        return ()
    with Ledger.open(folder.ledger, create=False) as ledger:
        # Sorted by key: sums of floats in another order differ in the last digit.
        answered = sorted(ledger.answered(without=tariffs.FREE), key=attrgetter("key"))
        batched = set(ledger.batches.answered_in_batches([answer.key for answer in answered]))
        prices = prices or stored_prices(ledger)
    if not answered:
        return ()
    from assaymark.report import PaidView

    views = []
    for model, answers in sorted(grouped(answered, attrgetter("model")).items()):
        replies, price = [answer.reply for answer in answers], prices.of(model)
        costs = [prices.paid(model, answer.reply, answer.key in batched) for answer in answers]
        priced = [cost for cost in costs if cost is not None]
        cached = [reply.cached_tokens for reply in replies if reply.cached_tokens is not None]
        view = PaidView(
            model=model, calls=len(replies), usd=sum(priced), unpriced=len(costs) - len(priced),
            input_tokens=sum(reply.input_tokens or 0 for reply in replies),
            cached_tokens=sum(cached) if cached else None,
            output_tokens=sum(reply.output_tokens or 0 for reply in replies),
            untold=sum(reply.input_tokens is None or reply.output_tokens is None for reply in replies),
            in_batches=sum(answer.key in batched for answer in answers),
            price_of=None if price is None else price.as_of.isoformat(),
        )  # fmt: skip
        views.append(view)
    return tuple(views)


def paid_lines(views: Sequence[PaidView]) -> list[str]:
    """Return lines on the spend of each paid model, to print after a run."""
    lines = []
    for paid in views:
        priced = paid.calls - paid.unpriced
        unknown = f", {paid.unpriced:,} of unknown price" if paid.unpriced else ""
        cost = f"{money(paid.usd)} USD for {priced:,} replies{unknown}"
        if not priced:
            cost = f"not known, because there is no price of its {paid.calls:,} replies"
        lines.append(f"paid for {paid.model}: {cost}")
    return lines


# --- Calls and answers as pages read them -----------------------------------------------------------------------------


def stored_answers(folder: RunFolder) -> AnswerIndex:
    """Return the pages of judges' replies for the datasheets of a folder; empty for datasheets read from a log."""
    from assaymark.report.records.answers import AnswerIndex

    store, judge_of = Store(folder), attrgetter("judge")
    return AnswerIndex.of(grouped(store.stored(PAIRS), judge_of), grouped(store.stored(POINTS), judge_of))


def calls_of(folder: RunFolder) -> ReadCalls | None:
    """Return a reader of the run folder's calls by key; None if there is no ledger."""
    return partial(raw_calls, folder) if folder.has_ledger else None


def raw_calls(folder: RunFolder, keys: Sequence[str]) -> Iterator[AskedCall]:
    """Yield the calls with these keys and their replies, in order; the first call with a text includes its words."""
    from assaymark.report.records.calls import AskedCall

    texts: dict[str, Text] = {}
    with Ledger.open(folder.ledger, create=False) as ledger:
        prices = stored_prices(ledger)
        for start in range(0, len(keys), _AT_ONCE):
            chunk = keys[start : start + _AT_ONCE]
            calls = ledger.load(chunk, dict(texts))
            replies, attempts = dict(ledger.replies(chunk)), ledger.attempt_counts(chunk)
            cheap = ledger.batches.answered_in_batches(chunk)
            for key, call in zip(chunk, calls, strict=True):
                new = tuple(text for text in dict.fromkeys(call.texts) if text.sha256 not in texts)
                texts.update((text.sha256, Text("", text.sha256)) for text in new)
                reply = replies.pop(key, None)
                usd = None if reply is None else prices.paid(call.model, reply, key in cheap)
                yield AskedCall(key, call, new, reply, attempts.get(key, 0), usd, key in cheap)
