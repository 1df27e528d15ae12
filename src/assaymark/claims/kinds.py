"""Which claims about models on a benchmark the scores support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from assaymark.claims.boards import MISSING, Board, Leaderboard, board_verdicts, missing_findings
from assaymark.claims.fields import NOT_PREREGISTERED, Fields
from assaymark.claims.levels import Rules, threshold
from assaymark.claims.standing import Evidence, Finding
from assaymark.claims.words import count_words, counted, listing, number, p_words
from assaymark.metrology.contrasts import holm
from assaymark.plan import OrderRules
from assaymark.records import Claim, Condition, Measurement, StabilityStatus, Verdict, measurement_id

DRAWDOWN = "bench.drawdown"
SHARPE_CONTRAST = "bench.sharpe.contrast"
DISSOCIATION = "bench.dissociation"
PIPELINE = "pipeline"

FORMULAS: Final = {
    "paper": "the formulas printed in the PortBench paper",
    "reference": "the formulas of PortBench’s published code",
}
"""The conventions, by what they are."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class BenchRules:
    """The decision rules of a benchmark."""

    inference: OrderRules = field(default_factory=OrderRules)
    agreed: float = 0.5
    preregistered: bool = True
    families: int = 3
    convention: str = "paper"

    @property
    def other(self) -> str:
        """The formulas that scores are compared with, by what they are."""
        return FORMULAS["reference" if self.convention == "paper" else "paper"]

    def of_boards(self, alpha: float) -> Rules:
        """The rules of one family of boards, whose scores lie in 0..1."""
        plan = self.inference
        return Rules(
            0.0, 0.0, alpha, share=plan.aggregate_share, margin=plan.margin, span=1.0, judged=False,
            preregistered=self.preregistered,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class BenchVerdicts:
    """Verdicts in the order in which they are read, and the leaderboards that follow from them."""

    verdicts: tuple[Verdict, ...]
    leaderboards: tuple[Leaderboard, ...]


def decide_benchmark(
    measurements: Sequence[Measurement], boards: Sequence[Board], rules: BenchRules, plan_hash: str
) -> BenchVerdicts:
    """Decide every claim about a benchmark."""
    ratios = [item for item in measurements if item.name == SHARPE_CONTRAST]
    families: dict[str, list[Board]] = {}
    for board in boards:
        families.setdefault(board.family, []).append(board)
    share = rules.inference.alpha / rules.families
    verdicts: list[Verdict] = []
    leaderboards: list[Leaderboard] = []
    for family in families.values():
        decided, standing = board_verdicts(measurements, family, rules.of_boards(share), plan_hash, rules.other)
        verdicts += decided
        leaderboards += standing
    facts = _Facts(plan_hash, rules.other, preregistered=rules.preregistered)
    gone = [item for item in measurements if item.name == MISSING and item.detail["left_out"]]
    pipeline = [item for item in gone if item.labels["part"] == PIPELINE]
    verdicts += _gates([item for item in measurements if item.name == DRAWDOWN], facts, pipeline)
    verdicts += _beats(ratios, share, facts)
    verdicts += [_rank(item, rules, facts, gone) for item in measurements if item.name == DISSOCIATION]
    return BenchVerdicts(tuple(verdicts), tuple(leaderboards))


@dataclass(frozen=True, slots=True)
class _Facts:
    """Makes the verdicts of claims that are no ranking of models."""

    plan_hash: str
    other: str
    preregistered: bool

    def permitted(
        self,
        claim: Claim,
        reason: str,
        rests: Sequence[str],
        turned: Sequence[str],
        words: str,
        findings: Sequence[Finding] = (),
    ) -> Verdict:
        """Of a claim that holds; ``words`` say what the other formulas make of it, where it ``turned``."""
        said = [Condition(id="other-convention", text=f"By {self.other} {words}")] if turned else []
        status: StabilityStatus = "rule-dependent" if turned else "stable"
        said += [condition for one in findings for condition in one.conditions]
        return self._verdict(claim, reason, rests, status, findings, said, turned)

    def withheld(self, claim: Claim, reason: str, rests: Sequence[str], status: StabilityStatus) -> Verdict:
        """Of a claim that the numbers do not support."""
        return self._verdict(claim, reason, rests, status, (Finding("score", "not-supported", "no-claim"),), (), ())

    def _verdict(
        self,
        claim: Claim,
        reason: str,
        rests: Sequence[str],
        status: StabilityStatus,
        findings: Sequence[Finding],
        said: Sequence[Condition],
        turned: Sequence[str],
    ) -> Verdict:
        late = [] if self.preregistered else [NOT_PREREGISTERED]
        fields = Fields.unjudged(claim, Evidence(status, reason, tuple(rests)), findings,
                                 preregistered=self.preregistered)  # fmt: skip
        conditions = [*said, *(Condition(id="not-preregistered", text=text) for text in late)]
        return fields.verdict(
            self.plan_hash,
            reasons=(reason, *late),
            conditions=() if fields.level == "no-claim" else conditions,
            fragility=dict.fromkeys(turned, "no-claim"),
        )


# --- drawdown limits ------------------------------------------------------------------------------------------------


def _gates(drawdowns: Sequence[Measurement], facts: _Facts, gone: Sequence[Measurement]) -> list[Verdict]:
    """For each profile how many models stay within its limit under stress, then each model."""
    profiles = list(dict.fromkeys(item.labels["profile"] for item in drawdowns))
    verdicts = []
    for profile in profiles:
        mine = [item for item in drawdowns if item.labels["profile"] == profile and item.detail.get("stress")]
        models = sorted({item.labels["model"] for item in mine})
        each = {model: _gate([item for item in mine if item.labels["model"] == model], facts) for model in models}
        scored = [item for item in mine if item.value is not None]
        rest = [each[model] for model in dict.fromkeys(item.labels["model"] for item in scored)]
        whole = [_gate_count(scored, rest, profile, facts, gone)] if len(rest) > 1 else []
        verdicts += [*whole, *each.values()]
    return verdicts


def _gate(windows: Sequence[Measurement], facts: _Facts) -> Verdict:
    labels, limit = windows[0].labels, _limit(windows[0])
    broken = [item for item in windows if item.value is not None and not _within(item.value, limit)]
    claim = Claim(
        id=measurement_id("gate", {"model": labels["model"], "profile": labels["profile"]}),
        scope="benchmark",
        statement=_gate_words(labels["model"], labels["profile"], limit, windows, broken),
        subjects=(labels["model"],),
        dimension=f"drawdown, {labels['profile']}",
        asserts_order=False,
    )
    if (lost := next((item for item in windows if item.value is None), None)) is not None:
        return facts.withheld(claim, f"{labels['model']} has {lost.state}.", [lost.id], "not tested")
    missing = [str(name) for name in _missing(windows)]
    if missing:
        reason = f"The limit is about every stress window, and {listing(missing)} were not run."
        return facts.withheld(claim, reason, [item.id for item in windows], "stable")
    deepest = max(windows, key=lambda item: item.value or 0.0)
    reason = (
        f"Maximum drawdown: {_percent(deepest.value or 0.0)} in {deepest.labels['window']}, over {deepest.n} days. "
        "Each window is one history: this is what happened, and it has no interval."
    )
    turned = [item.labels["window"] for item in windows if _within(item.value, limit) != _within(_other(item), limit)]
    verb = "falls" if len(turned) == 1 else "fall"
    words = f"{listing(turned)} {verb} on the other side of the limit."
    return facts.permitted(claim, reason, [item.id for item in windows], turned, words)


def _gate_words(
    model: str, profile: str, limit: float, windows: Sequence[Measurement], broken: Sequence[Measurement]
) -> str:
    within = f"a drawdown of {_percent(limit)}"
    if not broken:
        every = f"all {count_words(len(windows))} stress windows"
        return f"{model} stays within {within} in {every} under the {profile} profile."
    where = listing([f"{item.labels['window']} ({_percent(item.value or 0.0)})" for item in broken])
    return f"{model} falls by more than {_percent(limit)} under the {profile} profile in {where}."


def _gate_count(
    windows: Sequence[Measurement], each: Sequence[Verdict], profile: str, facts: _Facts, gone: Sequence[Measurement]
) -> Verdict:
    passing = sum(" stays within " in one.claim.statement for one in each)
    limit = _limit(windows[0])
    verb = "stays" if passing == 1 else "stay"
    findings = [*missing_findings(gone)]
    of = counted(len(each), "model") + (" with a score" if findings else "")
    claim = Claim(
        id=measurement_id("gates", {"profile": profile}),
        scope="benchmark",
        statement=f"{count_words(passing).capitalize()} of {of} {verb} within a drawdown of "
        f"{_percent(limit)} in every stress window under the {profile} profile.",
        subjects=tuple(one.claim.subjects[0] for one in each),
        dimension=f"drawdown, {profile}",
        asserts_order=False,
    )
    rests = [item.id for item in windows]
    if any(one.publication_level == "no-claim" for one in each):
        return facts.withheld(claim, "Not every stress window was run for every model.", rests, "stable")
    turned = sorted({one.claim.subjects[0] for one in each if one.fragility})
    reason = "Counted from what happened in each window; each is one history."
    return facts.permitted(claim, reason, rests, turned, f"this differs for {listing(turned)}.", findings)


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


def _beats(ratios: Sequence[Measurement], alpha: float, facts: _Facts) -> list[Verdict]:
    """For each model and profile whether it beats equal weight in the calm window."""
    if not ratios:
        return []
    # A comparison that cannot be made keeps its place among those that are corrected for.
    p = [1.0 if item.value is None else float(item.detail["p"]) for item in ratios]
    return [_beat(item, adjusted, alpha, facts) for item, adjusted in zip(ratios, holm(p).tolist(), strict=True)]


def _beat(item: Measurement, p: float, alpha: float, facts: _Facts) -> Verdict:
    model, profile, window = (item.labels[name] for name in ("model", "profile", "window"))
    claim = Claim(
        id=measurement_id("beats", {"model": model, "profile": profile, "window": window}),
        scope="benchmark",
        statement=f"{model} beats equal weight on the Sharpe ratio of {window} under the {profile} profile.",
        subjects=(model,),
        dimension=f"Sharpe ratio, {profile}",
        asserts_order=True,
    )
    if item.value is None:
        about = model + " has" if item.state.startswith("no score") else "The difference is"
        return facts.withheld(claim, f"{about} {item.state}.", [item.id], "not tested")
    if p > alpha or item.value <= 0:
        # Nothing here says on which side of zero an unsupported difference lies.
        tail = f" ({p_words(p)} after Holm, {threshold(alpha)})" if item.value > 0 else ""
        return facts.withheld(claim, f"The difference is not shown to be above zero{tail}.", [item.id], "tie-class")
    ends = "" if item.low is None or item.high is None else f" ({number(item.low)} to {number(item.high)})"
    other = _other(item)
    turned = [facts.other] if other is not None and other <= 0 else []
    words = "the difference is not above zero."
    reason = f"The difference is {number(item.value)}{ends}, {p_words(p)} after Holm, {threshold(alpha)}."
    return facts.permitted(claim, reason, [item.id], turned, words)


# --- questions against pipeline -------------------------------------------------------------------------------------


def _rank(item: Measurement, rules: BenchRules, facts: _Facts, gone: Sequence[Measurement]) -> Verdict:
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
        return facts.withheld(claim, f"The rank correlation has no interval: {item.state}.", [item.id], "not tested")
    if low <= rules.agreed <= high:
        reason = f"The interval{ends} contains {number(rules.agreed)}, so neither is shown."
        return facts.withheld(claim, reason, [item.id], "tie-class")
    other = _other(item)
    turned = [facts.other] if other is not None and (other > rules.agreed) != agree else []
    words = "" if other is None else f"it is {number(other)}."
    side = "above" if agree else "below"
    reason = f"The whole interval lies {side} {number(rules.agreed)}. It is about these models only."
    return facts.permitted(claim, reason, [item.id], turned, words, [*missing_findings(gone)])
