"""What may be said of models on a benchmark: orders, drawdown limits, equal weight, and questions against pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assaymark.claims.boards import OTHER, Board, Standing, order_verdicts, permitted, read_boards, withheld
from assaymark.claims.words import count_words, counted, listing, number, p_words
from assaymark.metrology.contrasts import holm
from assaymark.records import Claim, Measurement, Verdict, measurement_id

DRAWDOWN = "bench.drawdown"
SHARPE_CONTRAST = "bench.sharpe.contrast"
DISSOCIATION = "bench.dissociation"

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class BenchRules:
    """What the verdicts of a benchmark go by.

    Attributes
    ----------
    alpha : float
        Error rate, shared equally by the families of boards and the comparisons with equal weight.
    agreed : float
        Two orders of models agree where the whole interval of their rank correlation lies above this, and dissociate
        where it lies below.
    """

    alpha: float = 0.05
    agreed: float = 0.5


@dataclass(frozen=True, slots=True)
class BenchVerdicts:
    """Verdicts in the order in which they are read, and the standings that they came from."""

    verdicts: tuple[Verdict, ...]
    standings: tuple[Standing, ...]


def decide_benchmark(
    measurements: Sequence[Measurement], boards: Sequence[Board], rules: BenchRules, plan_hash: str
) -> BenchVerdicts:
    """Put every claim about a benchmark to its rule.

    Parameters
    ----------
    measurements : sequence of Measurement
        ``bench.*`` measurements of a run.
    boards : sequence of Board
        The leaderboards, the first one first.
    rules : BenchRules
    plan_hash : str
        Of the plan that the measurements were made under.

    Returns
    -------
    BenchVerdicts
        For each board its cuts, classes and pairs; then drawdown limits, equal weight, and rank agreement.
    """
    ratios = [item for item in measurements if item.name == SHARPE_CONTRAST]
    families = len({board.family for board in boards})
    share = rules.alpha / (families + bool(ratios)) if families or ratios else rules.alpha
    standings = read_boards(measurements, boards, alpha=share * families)
    verdicts = [one for standing in standings for one in order_verdicts(standing, plan_hash)]
    verdicts += _gates([item for item in measurements if item.name == DRAWDOWN], plan_hash)
    verdicts += _beats(ratios, share, plan_hash)
    verdicts += [_rank(item, rules, plan_hash) for item in measurements if item.name == DISSOCIATION]
    return BenchVerdicts(tuple(verdicts), standings)


# --- drawdown limits ------------------------------------------------------------------------------------------------


def _gates(drawdowns: Sequence[Measurement], plan_hash: str) -> list[Verdict]:
    """For each profile how many models stay within its limit under stress, then each model."""
    profiles = list(dict.fromkeys(item.labels["profile"] for item in drawdowns))
    verdicts = []
    for profile in profiles:
        mine = [item for item in drawdowns if item.labels["profile"] == profile and item.detail.get("stress")]
        models = sorted({item.labels["model"] for item in mine})
        each = [_gate([item for item in mine if item.labels["model"] == model], plan_hash) for model in models]
        verdicts += [*([_gate_count(mine, each, profile, plan_hash)] if len(each) > 1 else []), *each]
    return verdicts


def _gate(windows: Sequence[Measurement], plan_hash: str) -> Verdict:
    labels, limit = windows[0].labels, _limit(windows[0])
    broken = [item for item in windows if not _within(item.value, limit)]
    claim = Claim(
        id=measurement_id("gate", {"model": labels["model"], "profile": labels["profile"]}),
        scope="benchmark",
        statement=_gate_words(labels["model"], labels["profile"], limit, windows, broken),
        subjects=(labels["model"],),
        dimension=f"drawdown, {labels['profile']}",
        asserts_order=False,
    )
    missing = [str(name) for name in _missing(windows)]
    if missing:
        reason = f"The limit is about every stress window, and {listing(missing)} were not run."
        return withheld(claim, reason, [item.id for item in windows], plan_hash)
    deepest = max(windows, key=lambda item: item.value or 0.0)
    reason = (
        f"Deepest fall: {_percent(deepest.value or 0.0)} in {deepest.labels['window']}, over {deepest.n} days. Each "
        "window is one history, so this is what happened and carries no interval."
    )
    turned = [item.labels["window"] for item in windows if _within(item.value, limit) != _within(_other(item), limit)]
    verb = "falls" if len(turned) == 1 else "fall"
    conditions = [f"By the other convention {listing(turned)} {verb} on the other side of the limit."] if turned else []
    return permitted(claim, reason, conditions, [item.id for item in windows], plan_hash, turned=turned)


def _gate_words(
    model: str, profile: str, limit: float, windows: Sequence[Measurement], broken: Sequence[Measurement]
) -> str:
    within = f"a drawdown of {_percent(limit)}"
    if not broken:
        every = f"all {count_words(len(windows))} stress windows"
        return f"{model} stays within {within} in {every} under the {profile} profile."
    where = listing([f"{item.labels['window']} ({_percent(item.value or 0.0)})" for item in broken])
    return f"{model} falls by more than {_percent(limit)} under the {profile} profile in {where}."


def _gate_count(windows: Sequence[Measurement], each: Sequence[Verdict], profile: str, plan_hash: str) -> Verdict:
    passing = sum(" stays within " in one.claim.statement for one in each)
    limit = _limit(windows[0])
    verb = "stays" if passing == 1 else "stay"
    claim = Claim(
        id=measurement_id("gates", {"profile": profile}),
        scope="benchmark",
        statement=f"{count_words(passing).capitalize()} of {counted(len(each), 'model')} {verb} within a drawdown of "
        f"{_percent(limit)} in every stress window under the {profile} profile.",
        subjects=tuple(one.claim.subjects[0] for one in each),
        dimension=f"drawdown, {profile}",
        asserts_order=False,
    )
    rests = [item.id for item in windows]
    if any(one.publication_level == "no-claim" for one in each):
        return withheld(claim, "Not every stress window was run for every model.", rests, plan_hash)
    turned = sorted({one.claim.subjects[0] for one in each if one.fragility})
    conditions = [f"By the other convention this is otherwise for {listing(turned)}."] if turned else []
    reason = "Counted from what happened in each window; each is one history."
    return permitted(claim, reason, conditions, rests, plan_hash, turned=turned)


def _limit(item: Measurement) -> float:
    return float(item.detail["tolerance"])


def _missing(windows: Sequence[Measurement]) -> list[object]:
    wanted = windows[0].detail.get("wanted", ())
    seen = {item.labels["window"] for item in windows}
    return [name for name in wanted if name not in seen] if isinstance(wanted, (list, tuple)) else []


def _other(item: Measurement) -> float | None:
    other = item.detail.get("other", item.value)
    return float(other) if isinstance(other, (int, float)) else None


def _within(value: float | None, limit: float) -> bool:
    return value is not None and value <= limit + _ROUNDING


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %".replace(".0 %", " %")


# --- equal weight ---------------------------------------------------------------------------------------------------


def _beats(ratios: Sequence[Measurement], alpha: float, plan_hash: str) -> list[Verdict]:
    """For each model and profile whether it beats equal weight in the calm window."""
    if not ratios:
        return []
    tested = [item for item in ratios if item.value is not None]
    adjusted = (
        dict(zip([item.id for item in tested], holm([float(item.detail["p"]) for item in tested]), strict=True))
        if tested
        else {}
    )
    return [_beat(item, adjusted.get(item.id), alpha, plan_hash) for item in ratios]


def _beat(item: Measurement, p: float | None, alpha: float, plan_hash: str) -> Verdict:
    model, profile, window = (item.labels[name] for name in ("model", "profile", "window"))
    claim = Claim(
        id=measurement_id("beats", {"model": model, "profile": profile, "window": window}),
        scope="benchmark",
        statement=f"{model} beats equal weight on the Sharpe ratio of {window} under the {profile} profile.",
        subjects=(model,),
        dimension=f"Sharpe ratio, {profile}",
        asserts_order=True,
    )
    if item.value is None or p is None:
        return withheld(claim, f"The difference is {item.state}.", [item.id], plan_hash)
    ends = "" if item.low is None or item.high is None else f" ({number(item.low)} to {number(item.high)})"
    said = f"{number(item.value)}{ends}, {p_words(p)} after Holm"
    if p > alpha or item.value <= 0:
        word = "below zero" if item.value <= 0 else "within the noise of one window"
        return withheld(claim, f"The difference is {word}: {said}.", [item.id], plan_hash, status="tie-class")
    other = _other(item)
    turned = [OTHER] if other is not None and other <= 0 else []
    conditions = ["By the other convention the difference is not above zero."] if turned else []
    return permitted(claim, f"The difference is {said}.", conditions, [item.id], plan_hash, turned=turned)


# --- questions against pipeline -------------------------------------------------------------------------------------


def _rank(item: Measurement, rules: BenchRules, plan_hash: str) -> Verdict:
    count = counted(item.n, "model")
    agree = item.low is not None and item.low > rules.agreed
    said = "is not defined" if item.value is None else f"is {number(item.value)}"
    ends = "" if item.low is None or item.high is None else f" ({number(item.low)} to {number(item.high)})"
    claim = Claim(
        id=measurement_id("dissociation", dict(item.labels)),
        scope="benchmark",
        statement=f"The order of these {count} on the questions and in the pipeline "
        f"{'agrees' if agree else 'differs'}: Spearman's rank correlation {said}{ends}.",
        subjects=(),
        dimension="questions and pipeline",
        asserts_order=False,
    )
    low, high = item.low, item.high
    if low is None or high is None:
        return withheld(claim, f"The rank correlation has no interval: {item.state}.", [item.id], plan_hash)
    if low <= rules.agreed <= high:
        reason = f"The interval{ends} holds {number(rules.agreed)}, so it tells neither."
        return withheld(claim, reason, [item.id], plan_hash)
    other = _other(item)
    turned = [OTHER] if other is not None and (other > rules.agreed) != agree else []
    conditions = [f"By the other convention it is {number(other)}."] if turned and other is not None else []
    side = "above" if agree else "below"
    reason = f"The whole interval lies {side} {number(rules.agreed)}. It is about these models only."
    return permitted(claim, reason, conditions, [item.id], plan_hash, turned=turned)
