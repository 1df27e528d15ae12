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
    facts = _Facts(plan_hash, rules)
    gone = [item for item in measurements if item.name == MISSING and item.detail["left_out"]]
    pipeline = [item for item in gone if item.labels["part"] == PIPELINE]
    verdicts += facts.drawdowns([item for item in measurements if item.name == DRAWDOWN], pipeline)
    # A comparison that cannot be made keeps its place among those that are corrected for.
    ratios = [item for item in measurements if item.name == SHARPE_CONTRAST]
    adjusted = holm([1.0 if item.value is None else float(item.detail["p"]) for item in ratios]) if ratios else ()
    verdicts += [facts.beats(item, float(p), share) for item, p in zip(ratios, adjusted, strict=True)]
    verdicts += [facts.agreement(item, gone) for item in measurements if item.name == DISSOCIATION]
    return BenchVerdicts(tuple(verdicts), tuple(leaderboards))


class _Facts:
    """Makes the verdicts of claims that are no ranking of models: drawdown limits, equal weight, rank agreement."""

    def __init__(self, plan_hash: str, rules: BenchRules) -> None:
        self.plan_hash, self.rules = plan_hash, rules

    def _permitted(
        self, claim: Claim, reason: str, rests: Sequence[str], turned: Sequence[str], words: str,
        findings: Sequence[Finding] = (),
    ) -> Verdict:  # fmt: skip
        """Of a claim that holds; ``words`` say what the other formulas make of it, where it ``turned``."""
        said = [Condition(id="other-convention", text=f"By {self.rules.other} {words}")] if turned else []
        status: StabilityStatus = "rule-dependent" if turned else "stable"
        said += [condition for one in findings for condition in one.conditions]
        return self._verdict(claim, Evidence(status, reason, tuple(rests)), findings, said, turned)

    def _withheld(self, claim: Claim, reason: str, rests: Sequence[str], status: StabilityStatus) -> Verdict:
        """Of a claim that the numbers do not support."""
        return self._verdict(
            claim, Evidence(status, reason, tuple(rests)), [Finding("score", "not-supported", "no-claim")]
        )

    def _verdict(
        self, claim: Claim, evidence: Evidence, findings: Sequence[Finding], said: Sequence[Condition] = (),
        turned: Sequence[str] = (),
    ) -> Verdict:  # fmt: skip
        late = [] if self.rules.preregistered else [NOT_PREREGISTERED]
        fields = Fields.unjudged(claim, evidence, findings, preregistered=self.rules.preregistered)
        conditions = [*said, *(Condition(id="not-preregistered", text=text) for text in late)]
        return fields.verdict(
            self.plan_hash,
            reasons=(evidence.reason, *late),
            conditions=() if fields.level == "no-claim" else conditions,
            fragility=dict.fromkeys(turned, "no-claim"),
        )

    def drawdowns(self, items: Sequence[Measurement], gone: Sequence[Measurement]) -> list[Verdict]:
        """For each profile how many models stay within its limit under stress, then each model."""
        verdicts = []
        for profile in dict.fromkeys(item.labels["profile"] for item in items):
            mine = [item for item in items if item.labels["profile"] == profile and item.detail.get("stress")]
            models = sorted({item.labels["model"] for item in mine})
            each = {model: self._gate([item for item in mine if item.labels["model"] == model]) for model in models}
            scored = [item for item in mine if item.value is not None]
            rest = [each[model] for model in dict.fromkeys(item.labels["model"] for item in scored)]
            whole = [self._gate_count(scored, rest, profile, gone)] if len(rest) > 1 else []
            verdicts += [*whole, *each.values()]
        return verdicts

    def _gate(self, windows: Sequence[Measurement]) -> Verdict:
        """Whether one model stays within the limit in every stress window."""
        model, profile = (windows[0].labels[name] for name in ("model", "profile"))
        limit = float(windows[0].detail["tolerance"])

        def broken(value: float | None) -> bool:
            return value is None or value > limit + _ROUNDING

        where = listing([
            f"{item.labels['window']} ({_percent(item.value)})"
            for item in windows
            if item.value is not None and broken(item.value)
        ])  # fmt: skip
        says = f"falls by more than {_percent(limit)} under the {profile} profile in {where}"
        if not where:
            every = f"all {count_words(len(windows))} stress windows"
            says = f"stays within a drawdown of {_percent(limit)} in {every} under the {profile} profile"
        labels, dimension = {"model": model, "profile": profile}, f"drawdown, {profile}"
        claim = _claim("gate", labels, f"{model} {says}.", (model,), dimension)
        ids = [item.id for item in windows]
        if (lost := next((item for item in windows if item.value is None), None)) is not None:
            return self._withheld(claim, f"{model} has {lost.state}.", [lost.id], "not tested")
        wanted, seen = windows[0].detail.get("wanted", ()), {item.labels["window"] for item in windows}
        missing = [str(name) for name in wanted if name not in seen] if isinstance(wanted, (list, tuple)) else []
        if missing:
            reason = f"The limit is about every stress window, and {listing(missing)} were not run."
            return self._withheld(claim, reason, ids, "stable")
        deepest = max(windows, key=lambda item: item.value or 0.0)
        reason = (
            f"Maximum drawdown: {_percent(deepest.value or 0.0)} in {deepest.labels['window']}, over {deepest.n} days. "
            "Each window is one history: this is what happened, and it has no interval."
        )
        turned = [item.labels["window"] for item in windows if broken(item.value) != broken(_other(item))]
        verb = "falls" if len(turned) == 1 else "fall"
        words = f"{listing(turned)} {verb} on the other side of the limit."
        return self._permitted(claim, reason, ids, turned, words)

    def _gate_count(
        self, windows: Sequence[Measurement], each: Sequence[Verdict], profile: str, gone: Sequence[Measurement]
    ) -> Verdict:
        """How many models stay within the limit."""
        passing = sum(" stays within " in one.claim.statement for one in each)
        limit = _percent(float(windows[0].detail["tolerance"]))
        findings = [*missing_findings(gone)]
        of = counted(len(each), "model") + (" with a score" if findings else "")
        within = f"{'stays' if passing == 1 else 'stay'} within a drawdown of {limit} in every stress window"
        says = f"{count_words(passing).capitalize()} of {of} {within} under the {profile} profile."
        models = tuple(one.claim.subjects[0] for one in each)
        claim = _claim("gates", {"profile": profile}, says, models, f"drawdown, {profile}")
        rests = [item.id for item in windows]
        if any(one.publication_level == "no-claim" for one in each):
            return self._withheld(claim, "Not every stress window was run for every model.", rests, "stable")
        turned = sorted({one.claim.subjects[0] for one in each if one.fragility})
        reason = "Counted from what happened in each window; each is one history."
        return self._permitted(claim, reason, rests, turned, f"this differs for {listing(turned)}.", findings)

    def beats(self, item: Measurement, p: float, alpha: float) -> Verdict:
        """Whether a model beats equal weight in the calm window; ``p`` is adjusted."""
        model, profile, window = (item.labels[name] for name in ("model", "profile", "window"))
        says = f"{model} beats equal weight on the Sharpe ratio of {window} under the {profile} profile."
        labels, dimension = {"model": model, "profile": profile, "window": window}, f"Sharpe ratio, {profile}"
        claim = _claim("beats", labels, says, (model,), dimension, asserts_order=True)
        if item.value is None:
            about = model + " has" if item.state.startswith("no score") else "The difference is"
            return self._withheld(claim, f"{about} {item.state}.", [item.id], "not tested")
        if p > alpha or item.value <= 0:
            # Nothing here says on which side of zero an unsupported difference lies.
            tail = f" ({p_words(p)} after Holm, {threshold(alpha)})" if item.value > 0 else ""
            reason = f"The difference is not shown to be above zero{tail}."
            return self._withheld(claim, reason, [item.id], "tie-class")
        other = _other(item)
        turned = [self.rules.other] if other is not None and other <= 0 else []
        reason = f"The difference is {number(item.value)}{_ends(item)}, {p_words(p)} after Holm, {threshold(alpha)}."
        return self._permitted(claim, reason, [item.id], turned, "the difference is not above zero.")

    def agreement(self, item: Measurement, gone: Sequence[Measurement]) -> Verdict:
        """Whether the questions and the pipeline rank models alike."""
        low, high, ends, agreed = item.low, item.high, _ends(item), self.rules.agreed
        agree = low is not None and low > agreed
        said = "is not defined" if item.value is None else f"is {number(item.value)}"
        order = f"The order of these {counted(item.n, 'model')} on the questions and in the pipeline"
        says = f"{order} {'agrees' if agree else 'differs'}: Spearman's rank correlation {said}{ends}."
        claim = _claim("dissociation", dict(item.labels), says, (), "questions and pipeline")
        if low is None or high is None:
            reason = f"The rank correlation has no interval: {item.state}."
            return self._withheld(claim, reason, [item.id], "not tested")
        if low <= agreed <= high:
            reason = f"The interval{ends} contains {number(agreed)}, so neither is shown."
            return self._withheld(claim, reason, [item.id], "tie-class")
        other = _other(item)
        turned = [self.rules.other] if other is not None and (other > agreed) != agree else []
        words = "" if other is None else f"it is {number(other)}."
        side = "above" if agree else "below"
        reason = f"The whole interval lies {side} {number(agreed)}. It is about these models only."
        return self._permitted(claim, reason, [item.id], turned, words, [*missing_findings(gone)])


def _claim(
    kind: str, labels: dict[str, str], says: str, subjects: tuple[str, ...], dimension: str, *,
    asserts_order: bool = False,
) -> Claim:  # fmt: skip
    return Claim(
        id=measurement_id(kind, labels), scope="benchmark", statement=says, subjects=subjects, dimension=dimension,
        asserts_order=asserts_order,
    )  # fmt: skip


def _other(item: Measurement) -> float | None:
    other = item.detail.get("other", item.value)
    return float(other) if isinstance(other, (int, float)) else None


def _ends(item: Measurement) -> str:
    return "" if item.low is None or item.high is None else f" ({number(item.low)} to {number(item.high)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %".replace(".0 %", " %")
