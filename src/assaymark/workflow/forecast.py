"""What a run will cost and what it has cost: `--dry-run`, `--budget`, and the line after a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from assaymark.engine import CallSpec, Ledger, Model, SpendLimit
from assaymark.engine.prices import CHARACTERS_PER_TOKEN, Estimate, Prices, costs_nothing, load_prices
from assaymark.engine.providers.registry import Models
from assaymark.errors import InputError, Problem
from assaymark.judging import PLANTED, Rubric, load_rubric, plan_calls, rubric_of, user_messages
from assaymark.judging.pairs import (
    PLANTED_PAIRS,
    STRICT,
    TIE_ALLOWED,
    build_stimuli,
    finance_tasks,
    load_tasks,
    plan_pair_calls,
    point_stimuli,
)
from assaymark.protocol import JudgeSpec, Study, parse_study
from assaymark.report import PaidView, money
from assaymark.workflow.lock import check_plan, open_locked, prepare, probe_calls
from assaymark.workflow.publish import asked
from assaymark.workflow.run_folder import RunFolder, missing, read_text, require_version_2
from assaymark.workflow.study_calls import agent_calls, anchor_sample, stand_in
from assaymark.workflow.tables import CYCLES, DECISIONS, Store
from assaymark.workflow.track import planned_decisions, select
from assaymark.workflow.tracks.datasheet import point_calls, tested_by


@dataclass(frozen=True, slots=True)
class Stage:
    """Calls that one part of a study makes. ``stand_in``: made of texts that are not written yet."""

    what: str
    calls: Sequence[CallSpec]
    stand_in: bool = False


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What one model has to answer: calls by stage, how many have their reply, and the estimate of the others."""

    model: str
    stages: Mapping[str, int]
    already: int
    rest: Estimate

    @property
    def planned(self) -> int:
        """All calls."""
        return sum(self.stages.values())


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would be asked and cost: for each model, and in lines to print."""

    models: tuple[CostEstimate, ...]
    lines: tuple[str, ...]

    @property
    def usd(self) -> float | None:
        """What all of it may cost; None where a price is not known."""
        known = [model.rest.cost for model in self.models if model.rest.cost is not None]
        return sum(known) if len(known) == len(self.models) else None

    def noting(self, line: str) -> Forecast:
        """The same with one more line before the last."""
        return replace(self, lines=(*self.lines[:-1], line, self.lines[-1]))


def paid_models(
    models: Mapping[str, Model], budget: float | None, prices: Path | None, *, strict: bool = False
) -> Models:
    """``models`` at the prices of a file, or those that come with assaymark, within a budget in USD if there is one."""
    if prices is not None and not prices.exists():
        raise missing(prices, "file of prices")
    found = load_prices(prices)
    try:
        purse = None if budget is None else SpendLimit(budget, found.bound, found.paid, found.share)
    except ValueError as exc:
        raise InputError("--budget", [Problem("", str(exc))]) from None
    whole = models if isinstance(models, Models) else Models(models, {})
    return whole.paid_from(purse, found, strict)


def expect_study(folder: RunFolder, text: str, source: str, models: Mapping[str, Model], prices: Prices) -> Forecast:
    """What `assaymark run` would ask and cost. Nothing is sent, and nothing is written into the folder."""
    require_version_2(folder)
    study = parse_study(text, source)
    there = study.substrate is None or (folder.tables / "manifest.json").is_file()
    # Where the cycles are not cut yet, they are cut into another folder, which goes away again.
    with nullcontext("") if there else TemporaryDirectory() as path:
        where = folder.require() if there else RunFolder(Path(path) / "run")
        if not there:
            prepare(where, study)
        check_plan(where, study, source, models)
        probe = [] if folder.lock.is_file() else probe_calls(study)
        stages = [Stage("date probe", probe), *_stages(where, study, datasheets=True)]
        return forecast(stages, folder, study, prices)


def expect_judging(folder: RunFolder, prices: Prices) -> Forecast:
    """What `assaymark judge` would ask and cost; see `expect_study`."""
    study = open_locked(folder).study
    return forecast(_stages(folder, study, datasheets=False), folder, study, prices)


def expect_datasheets(
    folder: RunFolder, judges: Sequence[JudgeSpec], prices: Prices, tasks: Path | None, seed: int, strict: bool,
    pointwise: bool, rubric: Rubric,
) -> Forecast:  # fmt: skip
    """What `assaymark datasheet` would ask and cost; see `expect_study`."""
    stage = Stage("datasheets", list(_datasheet_calls(judges, tasks, seed, strict, pointwise, rubric)))
    return forecast([stage], folder, None, prices)


def _stages(folder: RunFolder, study: Study, *, datasheets: bool) -> list[Stage]:
    """Everything that a study asks once it is locked, but for the outside judge."""
    store = Store(folder)
    stages = [] if study.substrate is None else [Stage("agents", agent_calls(study, store))]
    made = store.digest(DECISIONS) is not None
    # A text of likely length stands in the place of each that is not written yet.
    planned = [] if made else planned_decisions(study, store.read(CYCLES))
    decisions = store.read(DECISIONS) if made else [stand_in(one) for one in planned]
    shown = user_messages(decisions, store.each_context(), study)
    graded = plan_calls(decisions, {}, study, rubric_of(study.rubric), shown=shown)
    stages.append(Stage("judges", [one.call for one in graded], stand_in=not made))
    if (probe := study.anchor_probe) is not None:
        judges = [one for one in study.judges if one.name == probe.judge]
        only = anchor_sample(select(decisions, study).honest, study)
        again = plan_calls(decisions, {}, study, load_rubric(probe.rubric), judges=judges, only=only, shown=shown)
        stages.append(Stage("anchor probe", [one.call for one in again], stand_in=not made))
    if datasheets and study.datasheets is not None:
        stages.append(Stage("datasheets", list(_datasheet_calls(asked(study), None, 7, True, True, tested_by(study)))))
    return stages


def _datasheet_calls(
    judges: Sequence[JudgeSpec], tasks: Path | None, seed: int, strict: bool, pointwise: bool, rubric: Rubric
) -> Iterator[CallSpec]:
    given = finance_tasks() if tasks is None else load_tasks(read_text(tasks, "task file"), str(tasks))
    pairs, points = build_stimuli(given, seed), point_stimuli(given, seed)
    for judge in judges:
        if judge.model not in PLANTED:
            variants = (TIE_ALLOWED, STRICT) if strict else (TIE_ALLOWED,)
            yield from (one.call for one in plan_pair_calls(pairs, judge, variants))
        if judge.model in PLANTED or (pointwise and judge.model not in PLANTED_PAIRS):
            yield from (one.call for one in point_calls(points, judge, rubric))


def expected(
    stages: Sequence[Stage], held: Iterable[str], prices: Prices, *, batch: bool = False
) -> list[CostEstimate]:
    """What each model has to answer, by name; ``held`` are the keys of calls that have a reply."""
    replied = set(held)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    rest: defaultdict[str, list[CallSpec]] = defaultdict(list)
    calls: dict[str, tuple[str, CallSpec]] = {}
    for stage in stages:
        for call in stage.calls:
            calls.setdefault(call.key, (stage.what, call))
    for key, (what, call) in calls.items():
        counts[call.model][what] += 1
        if key not in replied:
            rest[call.model].append(call)
    return [
        CostEstimate(name, of, of.total() - len(rest[name]), prices.estimate_all(rest[name], batch))
        for name, of in sorted(counts.items())
    ]


def forecast(
    stages: Sequence[Stage], folder: RunFolder, study: Study | None, prices: Prices, batch: bool = False
) -> Forecast:
    """What each model has to answer, and the sum. ``batch`` where no study says it."""
    held = {call.key for stage in stages for call in stage.calls} if folder.has_ledger else set()
    if folder.has_ledger:
        with Ledger.open(folder.ledger, create=False) as ledger:
            held -= set(ledger.pending(held))
    found = expected(stages, held, prices, batch=batch if study is None else study.engine.batch)
    lines = []
    for one in found:
        each = ", ".join(f"{what} {n:,}" for what, n in one.stages.items())
        cost = "costs nothing"
        if not costs_nothing(one.model):
            basis = one.rest.basis.rpartition("output tokens: ")[2]
            tokens = f"about {one.rest.tokens:,} input and {one.rest.output_tokens:,} output tokens ({basis})"
            cost = f"{tokens}, {'no price known' if one.rest.cost is None else _money(one.rest.cost)}"
        lines.append(f"{one.model}: {one.planned:,} calls ({each}), {one.already:,} answered already; {cost}")
    # What all models may cost together; not known where that of one is not.
    paid = [one for one in found if one.rest.cost is None or not costs_nothing(one.model)]
    known = [one.rest.cost for one in paid if one.rest.cost is not None]
    whole = f"about {_money(sum(known))}" if paid else "costs nothing"
    if unpriced := ", ".join(one.model for one in paid if one.rest.cost is None):
        others = f"; the other models: {whole}" if known else ""
        whole = f"cost not known, because there is no price of {unpriced} (--prices FILE){others}"
    planned, already = sum(one.planned for one in found), sum(one.already for one in found)
    lines.append(f"in all {planned:,} calls, {already:,} answered already; the rest: {whole}")
    if any(stage.stand_in for stage in stages):
        lines.append("judges' calls are estimated: their number is known, texts of 300 tokens stand in for the agents'")
    if study is not None and (probe := study.stability.probe) is not None:
        lines.append(f"not counted: {probe.name}, asked only about pairs that the panel leaves open")
    if any(not costs_nothing(one.model) for one in found):
        lines.append(f"input tokens: characters / {CHARACTERS_PER_TOKEN}; prices: {prices.source}")
    return Forecast(tuple(found), (*lines, "dry run: nothing was sent"))


def paid_lines(views: Sequence[PaidView]) -> list[str]:
    """What the replies of a run cost, in lines to print; none where none costs anything."""
    lines = []
    for paid in views:
        known = paid.calls - paid.unpriced
        unknown = f", {paid.unpriced:,} of unknown price" if paid.unpriced else ""
        cost = f"{_money(paid.usd)} for {known:,} replies{unknown}"
        if not known:
            cost = f"not known, because there is no price of its {paid.calls:,} replies"
        lines.append(f"paid for {paid.model}: {cost}")
    return lines


def _money(amount: float) -> str:
    """An amount in USD, as the pages show it."""
    return f"{money(amount)} USD"
