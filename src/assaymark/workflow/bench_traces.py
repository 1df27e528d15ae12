"""Each date of an episode as in figures 28 to 30 of PortBench: asked, said, true, scored, and the arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

import numpy as np

from assaymark.benchmark.panel import Known
from assaymark.benchmark.plan import BenchPlan
from assaymark.benchmark.profiles import CLASS_NAMES, profile_named
from assaymark.benchmark.scores import inter_class_score, intra_class_score, weight_accuracy
from assaymark.benchmark.stages import STAGES, DateResult, EpisodeResult, Stage, StageState
from assaymark.engine import CallSpec, Reply
from assaymark.engine.models.exchange import no_reply
from assaymark.portfolio.solution import Floats
from assaymark.report.portbench import DateTrace, EpisodeTrace, StageTrace

EXCERPT: Final = 900
"""Characters of a prompt or a reply that a page shows."""

ROWS: Final = 8


@dataclass(frozen=True, slots=True)
class Heard:
    """Excerpts of one call and its reply; ``missing`` says that none came."""

    prompt: str
    reply: str
    cut: bool
    key: str
    missing: bool


@dataclass(slots=True)
class Notes:
    """What was asked and said in one episode, by date and stage."""

    heard: dict[tuple[date, Stage], Heard] = field(default_factory=dict)

    def add(self, day: date, stage: Stage, call: CallSpec, reply: Reply) -> None:
        """Keep excerpts of one call: how the prompt begins and ends, and how the reply begins."""
        prompt = "".join(part.text for part in call.messages[-1].parts)
        cut = len(prompt) > EXCERPT or len(reply.text) > EXCERPT
        shown = prompt if len(prompt) <= EXCERPT else f"{prompt[: EXCERPT // 2]}\n[...]\n{prompt[-EXCERPT // 2 :]}"
        self.heard[day, stage] = Heard(shown, reply.text[:EXCERPT], cut, call.key, no_reply(reply))


def episode_trace(result: EpisodeResult, notes: Notes, known: Mapping[date, Known], plan: BenchPlan) -> EpisodeTrace:
    """The trace of one episode.

    Parameters
    ----------
    result : EpisodeResult
    notes : Notes
    known : mapping of decision date to Known
        What took part on each date.
    plan : BenchPlan
    """
    return EpisodeTrace(
        model=result.model,
        profile=result.profile,
        window=result.window,
        dates=tuple(_date(one, result, notes, known[one.day], plan) for one in result.dates),
    )


def _date(one: DateResult, result: EpisodeResult, notes: Notes, known: Known, plan: BenchPlan) -> DateTrace:
    views, signals, weights = _views(one, known), _signals(one, known), _weights(one, known, plan)
    parts = {"S1": views, "S2": signals, "S3": weights, "S4": _trade(one), "S5": _risk(one, result, plan)}
    return DateTrace(
        day=str(one.day),
        ceps=one.ceps,
        pas=one.pas,
        stages=tuple(_stage(stage, one, notes, *parts[stage]) for stage in STAGES),
    )


def _stage(
    stage: Stage,
    one: DateResult,
    notes: Notes,
    columns: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    arithmetic: Sequence[str],
) -> StageTrace:
    heard = notes.heard.get((one.day, stage))
    state = one.answers.states.get(stage, StageState("ok"))
    return StageTrace(
        stage=stage,
        score=one.scores[stage],
        state=state.state,
        reason=state.reason,
        prompt=heard.prompt if heard else "",
        reply=heard.reply if heard else "",
        cut=bool(heard and heard.cut),
        key=heard.key if heard else "",
        columns=columns,
        rows=tuple(rows),
        arithmetic=tuple(arithmetic),
    )


Part = tuple[tuple[str, ...], Sequence[tuple[str, ...]], list[str]]


def _views(one: DateResult, known: Known) -> Part:
    part = known.part
    said, true = one.answers.views[part], one.truths.views[part]
    error = np.abs(said - true)
    rows = [(known.tickers[at], f"{said[at]:+.2f}", f"{true[at]:+.2f}", f"{error[at]:.2f}") for at in _largest(error)]
    mean = float(error.mean())
    line = f"1 − {mean:.3f} / 2 = {one.scores['S1']:.3f}; {mean:.3f} is the mean error over {part.size} instruments"
    return ("instrument", "said", "true", "error"), rows, [line]


def _signals(one: DateResult, known: Known) -> Part:
    pairs = [(one.answers.signals[at], one.truths.signals[at]) for at in known.part.tolist()]
    counts = Counter(pairs)
    words = sorted({word for pair in pairs for word in pair})
    rows = [(said, *(str(counts[said, true]) for true in words)) for said in words]
    right = sum(said == true for said, true in pairs)
    line = f"{right} of {len(pairs)} right = {one.scores['S2']:.3f}"
    return ("said", *(f"true {word}" for word in words)), rows, [line]


def _weights(one: DateResult, known: Known, plan: BenchPlan) -> Part:
    part, alpha = known.part, plan.pipeline.alpha
    held, best = one.executed[part], one.truths.weights[part]
    rows = [
        (known.tickers[at], f"{100 * held[at]:.1f} %", f"{100 * best[at]:.1f} %")
        for at in _largest(np.maximum(held, best))
    ]
    accuracy = weight_accuracy(held, best, convention=plan.convention)
    intra = intra_class_score(held, known.scored_by, known.classes)
    inter = inter_class_score(held, known.scored_by, known.classes, convention=plan.convention)
    lines = [
        f"accuracy {accuracy:.3f}, within classes {intra:.3f}, between classes {inter:.3f}",
        f"{alpha:g} × {accuracy:.3f} + {1 - alpha:g} × ({intra:.3f} + {inter:.3f}) / 2 = {one.scores['S3']:.3f}",
        f"the oracle's solver: {one.truths.weights_status}",
        _by_class(held, known),
    ]
    return ("instrument", "held", "oracle"), rows, lines


def _by_class(held: Floats, known: Known) -> str:
    members = np.array(known.classes)
    shares = {name: float(held[members == name].sum()) for name in CLASS_NAMES}
    return "held by class: " + ", ".join(
        f"{name.replace('_', ' ')} {100 * share:.1f} %" for name, share in shares.items() if share > 0
    )


def _trade(one: DateResult) -> Part:
    own, best = one.turnover, one.truths.turnover
    lines = [
        f"traded {own:.3f} of the portfolio, the oracle {best:.3f}",
        f"1 − |{own:.3f} − {best:.3f}| / {max(own, best):.3f} = {one.scores['S4']:.3f}"
        if max(own, best) > 0
        else "neither traded: 1",
    ]
    return (), [], lines


def _risk(one: DateResult, result: EpisodeResult, plan: BenchPlan) -> Part:
    truth = one.truths
    rows = [
        ("value at risk, 95 %", _percent(one.var), _percent(truth.var)),
        ("deepest fall of the lookback", _percent(one.drawdown), _percent(truth.drawdown)),
        ("largest drift of a weight", _percent(one.drift), _percent(truth.drift)),
        ("alarm", _yes(one.rebalance), _yes(truth.rebalance)),
    ]
    limits, same = profile_named(result.profile), int(one.rebalance == truth.rebalance)
    lines = [
        f"limits: drift {100 * plan.pipeline.drift_limit:g} %, value at risk {_percent(limits.var_limit)}",
        f"0.5 × {same} (the same alarm) + 0.5 × (1 − mean of two relative errors) = {one.scores['S5']:.3f}",
        f"alignment with the {result.profile} profile: {one.pas:.3f}",
    ]
    return ("measure", "held", "oracle"), rows, lines


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %".replace("-", "−")


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _largest(values: Floats) -> list[int]:
    """Places of the largest values, largest first; equal ones in order."""
    return [int(at) for at in np.argsort(-values, kind="stable")[:ROWS]]
