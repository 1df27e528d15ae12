"""Decide the claims about models on a benchmark: rankings on its boards, drawdown limits, and rank agreement."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final

from assaymark.claims import levels as rule
from assaymark.claims.findings import SMALL_GAP, Fields, cluster_findings
from assaymark.claims.levels import Finding, Rules, threshold
from assaymark.claims.messages import count_words, ends_words, interval_words, listing, number, p_words, plural, signed
from assaymark.claims.orders import ClaimEvidence, PairResult, orders_of, row_of, tiers_and_ranks
from assaymark.claims.verdicts import ABOVE, FIRST, ORDERS, WITHIN, ComparisonClaim, higher_first
from assaymark.metrology.contrasts import holm
from assaymark.plan import NOT_PREREGISTERED, OrderRules
from assaymark.records import (
    AGGREGATE,
    Claim,
    Condition,
    Level,
    Measurement,
    StabilityStatus,
    Verdict,
    grouped,
    measurement_id,
)
from assaymark.text import NBSP, percent

LEVEL: Final = "bench.level"
MISSING: Final = "missing.share"
DRAWDOWN = "bench.drawdown"
"""Measurement: the maximum drawdown of a model in a window."""
SHARPE_CONTRAST = "bench.sharpe.contrast"
"""Measurement: the Sharpe ratio of a model minus that of equal weight."""
DISSOCIATION = "bench.dissociation"
"""Measurement: the rank correlation of models on the questions and in the pipeline."""
PIPELINE = "pipeline"
FORMULAS: Final = {
    "paper": "the formulas printed in the PortBench paper",
    "reference": "the formulas of PortBench’s published code",
}
"""Descriptions of the scoring conventions."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Board:
    """One leaderboard."""

    name: str
    words: str
    family: str


@dataclass(frozen=True, slots=True, eq=False)
class Leaderboard:
    """A board with its models' scores and the ranking that the claims support."""

    board: Board
    models: tuple[str, ...]
    levels: Mapping[str, Measurement]
    tiers: tuple[tuple[str, ...], ...]
    ranks: Mapping[str, tuple[int, int]]
    unscored: Mapping[str, str] = field(default_factory=dict)
    pairs: int = 0
    open_pairs: int = 0
    least: float = 1.0
    alpha: float = 0.0


def decide_benchmark(
    measurements: Sequence[Measurement], boards: Sequence[Board], plan_hash: str,
    inference: OrderRules = OrderRules(), *, agreed: float = 0.5, preregistered: bool = True, families: int = 3,
    convention: str = "paper",
) -> tuple[tuple[Verdict, ...], tuple[Leaderboard, ...]]:  # fmt: skip
    """Decide every claim about a benchmark; returns the verdicts in display order and the leaderboards.

    ``families`` of tests share the error rate of ``inference``, each of them for boards whose scores lie in 0..1;
    ``agreed`` is the rank correlation above which questions and pipeline agree.
    """
    scored = Rules(
        0.0, 0.0, inference.alpha / families, share=inference.aggregate_share, margin=inference.margin, span=1.0,
        judged=False, preregistered=preregistered,
    )  # fmt: skip
    other = FORMULAS["reference" if convention == "paper" else "paper"]
    verdicts: list[Verdict] = []
    leaderboards: list[Leaderboard] = []
    for several in grouped(boards, lambda board: board.family).values():
        family = _BoardFamily(measurements, several, scored, other)
        by_board = {
            board: [family.verdict(board, claim, plan_hash) for claim in family.claims(board)] for board in several
        }
        verdicts += [verdict for each in by_board.values() for verdict in each]
        leaderboards += [family.leaderboard(board, by_board[board]) for board in several]
    facts = _FactClaims(plan_hash, scored, other)
    gone = [item for item in measurements if item.name == MISSING and item.detail["left_out"]]
    drawdowns = [item for item in measurements if item.name == DRAWDOWN]
    for profile in dict.fromkeys(item.labels["profile"] for item in drawdowns):
        items = [item for item in drawdowns if item.labels["profile"] == profile and item.detail.get("stress")]
        verdicts += facts.drawdowns(items, profile, [item for item in gone if item.labels["part"] == PIPELINE])
    # A comparison without a value stays in the Holm family, with p = 1.
    ratios = [item for item in measurements if item.name == SHARPE_CONTRAST]
    adjusted = holm([1.0 if item.value is None else float(item.detail["p"]) for item in ratios]) if ratios else ()
    verdicts += [facts.beats(item, float(p)) for item, p in zip(ratios, adjusted, strict=True)]
    verdicts += [facts.agreement(item, gone, agreed) for item in measurements if item.name == DISSOCIATION]
    return tuple(verdicts), tuple(leaderboards)


class _BoardFamily:
    """Boards that form one test family; the ranking procedure treats the first board as the aggregate."""

    def __init__(self, measurements: Sequence[Measurement], boards: Sequence[Board], rules: Rules, other: str) -> None:
        self.boards, self.rules, self.other = tuple(boards), rules, other
        self.scale = {board: board.name for board in boards} | {boards[0]: AGGREGATE}
        self.levels: dict[Board, dict[str, Measurement]] = {}
        for board in boards:
            own = [item for item in measurements if item.name == LEVEL and item.labels["board"] == board.name]
            self.levels[board] = {row.labels["model"]: row for row in sorted(own, key=lambda row: row.labels["model"])}
        self.scored = {
            board: {model: item for model, item in levels.items() if item.value is not None}
            for board, levels in self.levels.items()
        }
        models, names = sorted({model for of in self.levels.values() for model in of}), {board.name for board in boards}
        compared = [item for item in measurements if item.name in ("contrast", "order.autocorrelation")]
        index = rule.index([row for row in compared if row.labels["dimension"] in names], agents=models, families=())
        rows = {
            self.scale[board]: tuple(row_of(index, board.name, *pair) for pair in combinations(models, 2))
            for board in boards
            if board.name in index.compared
        }
        self.known, part = replace(index, rows=rows, memo={}), boards[0].family
        self.missing = [item for item in measurements if item.name == MISSING and item.labels["part"] == part]

    def claims(self, board: Board) -> Iterator[Claim]:
        """Yield the candidate claims of one board."""
        models, name, margin = self.known.agents, board.name, self.rules.margin
        if name not in self.known.compared:
            return
        scored = len(self.scored[board])
        of = f"{plural(scored, 'model')} with a score" if 1 < scored < len(models) else plural(len(models), "model")
        asked: list[tuple[ComparisonClaim, str]] = [(FIRST, of), (ABOVE, "")]
        for kind, size in [*asked, (WITHIN, f"{margin:g}")] if board == self.boards[0] else asked:
            for high, *other in combinations(models, kind.subjects):
                named = (high,) if kind is FIRST else higher_first(name, high, other[0], self.known)
                yield replace(kind.claim(name, *named, size=size, on=board.words), scope="benchmark")

    def verdict(self, board: Board, claim: Claim, plan_hash: str) -> Verdict:
        """Decide one claim, also under the other rules."""
        fields, kind, rules = self._fields(board, claim, self.rules), ORDERS[claim.id.partition("[")[0]], self.rules
        level, text = fields.level, claim.statement
        late = [] if rules.preregistered else [Condition("not-preregistered", NOT_PREREGISTERED)]
        variants = kind.other_rules(rules, self.known.measured_tests(), dimensions=len(self.boards) > 2)
        fragility: dict[str, Level] = {name: self._fields(board, claim, case).level for name, case in variants.items()}
        conditions: list[Condition] = []
        if level != "no-claim":
            conditions = [condition for finding in fields.findings for condition in finding.conditions] + late
            small = claim.asserts_order and fields.evidence.state == "ordered-by-less-than-the-margin"
            conditions += [SMALL_GAP] if small else []
            fragility |= dict.fromkeys(self._reversals(board, claim, fields.evidence.pairs), "no-claim")
            text = kind.says(claim, fields, self.known) if kind is WITHIN else text
        reasons = [fields.evidence.reason_at(level), *(condition.text for condition in late)]
        return fields.verdict(plan_hash, text, reasons, conditions, fragility)

    def leaderboard(self, board: Board, verdicts: Sequence[Verdict]) -> Leaderboard:
        """Return a board with the tiers and ranks that its supported claims imply."""
        levels = self.scored[board]
        models = tuple(levels)
        unscored = {model: item.state for model, item in self.levels[board].items() if model not in levels}
        claimed = [
            (verdict.claim.subjects[0], verdict.claim.subjects[1])
            for verdict in verdicts
            if verdict.claim.id.startswith("above[") and verdict.publication_level != "no-claim"
        ]
        ranking = Leaderboard(board, models, levels, *tiers_and_ranks(models, claimed), unscored)
        if board.name not in self.known.compared:
            return ranking
        orders, scale = orders_of(self.known, self.rules), self.scale[board]
        pairs = [orders.pair(scale, *pair) for pair in combinations(models, 2)]
        still = [pair.gated for pair in pairs if not pair.ordered]
        least = min(still, default=1.0)
        return replace(ranking, pairs=len(pairs), open_pairs=len(still), least=least, alpha=orders.level(scale))

    def _fields(self, board: Board, claim: Claim, rules: Rules) -> Fields:
        evidence = (self._first_rank if len(claim.subjects) == 1 else self._pair_evidence)(board, claim, rules)
        reversals = self._reversals(board, claim, evidence.pairs) if evidence.published else {}
        if reversals and evidence.status == "stable":
            evidence = replace(evidence, status="rule-dependent")
        findings = [Finding("stability", "turned", None, tuple(reversals.values()))] if reversals else []
        if evidence.published:
            findings += cluster_findings(claim, evidence, self.known)
        if claim.asserts_order:
            findings += missing_findings(self.missing, evidence.compared)
        return Fields.unjudged(claim, evidence, findings, rules.preregistered)

    def _pair_evidence(self, board: Board, claim: Claim, rules: Rules) -> ClaimEvidence:
        """Return the evidence on a pair: for an order, or for equivalence, which is a separate test family."""
        orders, scale = orders_of(self.known, rules), self.scale[board]
        pair = orders.pair(scale, *claim.subjects)
        row, item = pair.row, self.known.contrast(board.name, pair.row.high, pair.row.low)
        within = not claim.asserts_order
        headline: float | None = pair.headline
        p, published = row.p.get(rules.test, 1.0), pair.published
        adjusted, tail = pair.gated, f"{p_words(pair.gated)} adjusted, {threshold(orders.level(scale))}"
        if within:
            p, adjusted, headline = row.within(rules.margin), pair.p_within, None
            published = frozenset({"gated"}) if pair.within else frozenset()
            tail = f"{p_words(adjusted)} after Holm over all pairs, {threshold(rules.alpha)}"
        status: StabilityStatus = "stable" if published else "tie-class"
        if not row.testable:
            names = {row.high, row.low}
            about = f"{' and '.join(sorted(names))}: " if names <= self.scored[board].keys() else ""
            status, reason = "not tested", f"{about}{item.state}."
        elif within:
            shown = "" if pair.within else "are not shown to "
            reason = f"The two {shown}score within {rules.margin:g} of each other: {tail}."
        elif not published:
            reason = f"The difference is not resolved: {tail}."
        else:
            over = f"{item.n} items in {int(item.detail['clusters'])} clusters"
            difference = f"{signed(item.value or 0.0)}{interval_words(item.low, item.high)}"
            reason = f"The difference is {difference} over {over}: {tail}."
        return ClaimEvidence(status, reason, (item.id,), (pair,), published, None, pair.state, p, adjusted, headline)

    def _first_rank(self, board: Board, claim: Claim, rules: Rules) -> ClaimEvidence:
        orders, scale, scored = orders_of(self.known, rules), self.scale[board], self.scored[board]
        (model,), level = claim.subjects, orders.level(scale)
        if model not in scored:
            item = self.levels[board][model]
            return ClaimEvidence("not tested", f"{model} has {item.state}.", (item.id,), p=1.0, p_adjusted=1.0)
        pairs = [pair for pair in orders.of(scale, model) if {pair.row.high, pair.row.low} <= scored.keys()]
        ids = tuple(self.known.contrast(board.name, pair.row.high, pair.row.low).id for pair in pairs)
        untested = [pair.other(model) for pair in pairs if not pair.row.testable]
        leads = all(pair.row.high == model for pair in pairs)
        # With an unscored model there is no leader over all; a model above every scored one still counts as first.
        ahead = bool(pairs) and leads and all(pair.ordered for pair in pairs)
        first = (orders.leaders.get((scale, "gated")) == model or ahead) and not untested
        unadjusted = max((pair.row.p.get(rules.test, 1.0) for pair in pairs), default=1.0) if leads else 1.0
        adjusted = max((pair.gated for pair in pairs), default=1.0) if leads else 1.0
        status: StabilityStatus = "stable" if first else "not tested"
        if not pairs:
            status, reason = "not tested", f"{model} is the only model with a score, and cannot be tested."
        elif untested:
            reason = f"{model} and {listing(sorted(untested))} cannot be compared: too few clusters."
        elif not first:
            tail = f"(adjusted p-values of all its pairs, {threshold(level)})"
            status, reason = "tie-class", f"A lead over every other model is not resolved {tail}."
        else:
            lead, largest = f"each of the other {plural(len(pairs), 'model')}", "largest adjusted"
            if len(pairs) == 1:
                lead, largest = "the other model", "adjusted"
            reason = f"The lead over {lead} is significant: {largest} {p_words(adjusted)}, {threshold(level)}."
        published = frozenset({"gated"}) if first else frozenset()
        return ClaimEvidence(status, reason, ids, tuple(pairs), published, None, None, unadjusted, adjusted, adjusted)

    def _reversals(self, board: Board, claim: Claim, pairs: Sequence[PairResult]) -> dict[str, Condition]:
        """Return the changes that reverse a claim (another convention, a part left out), each with its condition."""
        margin = None if claim.asserts_order else self.rules.margin
        reversals: dict[str, list[str]] = {}
        for high, low in ((pair.row.high, pair.row.low) for pair in pairs):
            detail = self.known.contrast(board.name, high, low).detail
            for change, value in [(self.other, detail.get("other")), *sorted(detail.get("without", {}).items())]:
                if isinstance(value, (int, float)) and (value <= 0 if margin is None else abs(value) >= margin):
                    reversals.setdefault(change, []).append(f"{high} and {low}")
        conditions = {}
        for change, reversed in sorted(reversals.items()):
            if margin is not None:
                words = "the two score further apart"
            elif len(pairs) == 1:
                words = "the ranking is reversed"
            elif len(reversed) == len(pairs):
                words = f"all {len(pairs)} pairs are reversed"
            else:
                which = f": {listing(reversed)}" if len(reversed) <= 3 else ""
                verb = "is" if len(reversed) == 1 else "are"
                words = f"{len(reversed)} of the {len(pairs)} pairs {verb} reversed{which}"
            name, by = ("other-convention", "By") if change == self.other else ("left-out-part", "Without")
            conditions[change] = Condition(name, f"{by} {change} {words}.")
        return conditions


def missing_findings(items: Sequence[Measurement], compared: Collection[str] = ()) -> Iterator[Finding]:
    """Yield findings on missing replies: models left out cap claims at qualified, other gaps only add a condition."""
    gone = [item for item in items if item.detail["left_out"]]
    rest = [item for item in items if item not in gone and item.labels["model"] in compared]
    for some, state in ((gone, "left-out"), (rest, "tolerated")):
        if some:
            condition = Condition("missing-replies", " ".join(map(missing_replies, some)))
            cap: Level | None = "qualified" if some is gone else None
            yield Finding("missing_replies", state, cap, (condition,), tuple(item.id for item in some))


def missing_replies(item: Measurement) -> str:
    """Describe the missing replies of a model on a part, or why it was left out; ``item`` is a ``missing.share``."""
    model, part, share = item.labels["model"], item.labels["part"], percent(item.value or 0.0, 1).replace(NBSP, " ")
    if item.detail["left_out"]:
        return f"{model} was left out of the {part}: {item.detail['left_out']}."
    return f"{model} gave no reply to {item.detail['missing']} of {item.n} calls of the {part} ({share})."


class _FactClaims:
    """Decides the claims other than rankings: drawdown limits, equal weight, and rank agreement."""

    def __init__(self, plan_hash: str, rules: Rules, other: str) -> None:
        self.plan_hash, self.rules, self.other = plan_hash, rules, other

    def _verdict(
        self, claim: Claim, reason: str, ids: Sequence[str], withheld: StabilityStatus | None = None,
        reversals: Sequence[str] = (), words: str = "", findings: Sequence[Finding] = (),
    ) -> Verdict:  # fmt: skip
        """Return the verdict on a claim that holds, or is ``withheld``; ``words`` say what ``reversals`` change."""
        early = self.rules.preregistered
        conditions = [Condition("other-convention", f"By {self.other} {words}")] if reversals else []
        conditions += [condition for finding in findings for condition in finding.conditions]
        conditions += [] if early else [Condition("not-preregistered", NOT_PREREGISTERED)]
        status: StabilityStatus = withheld or ("rule-dependent" if reversals else "stable")
        findings = findings if withheld is None else [Finding("score", "not-supported", "no-claim")]
        fields = Fields.unjudged(claim, ClaimEvidence(status, reason, tuple(ids)), findings, early)
        stated, levels = () if fields.level == "no-claim" else conditions, dict.fromkeys(reversals, "no-claim")
        reasons = (reason,) if early else (reason, NOT_PREREGISTERED)
        return fields.verdict(self.plan_hash, claim.statement, reasons, stated, levels)  # type: ignore[arg-type]

    def drawdowns(self, items: Sequence[Measurement], profile: str, left_out: Sequence[Measurement]) -> list[Verdict]:
        """Return the verdict on how many models stay within a profile's drawdown limit, then one for each model."""
        models = sorted({item.labels["model"] for item in items})
        by_model = {model: [item for item in items if item.labels["model"] == model] for model in models}
        each = {model: self._gate(windows, model, profile) for model, windows in by_model.items()}
        windows = [item for item in items if item.value is not None]
        rest = [each[model] for model in dict.fromkeys(item.labels["model"] for item in windows)]
        if len(rest) < 2:
            return [*each.values()]
        passing = sum(" stays within " in verdict.claim.statement for verdict in rest)
        limit = _percent(float(windows[0].detail["tolerance"]))
        findings = [*missing_findings(left_out)]
        of = plural(len(rest), "model") + (" with a score" if findings else "")
        within = f"{'stays' if passing == 1 else 'stay'} within a drawdown of {limit} in every stress window"
        text = f"{count_words(passing).capitalize()} of {of} {within} under the {profile} profile."
        subjects, ids = tuple(verdict.claim.subjects[0] for verdict in rest), [item.id for item in windows]
        claim = _bench_claim("gates", {"profile": profile}, text, subjects, f"drawdown, {profile}")
        if any(verdict.publication_level == "no-claim" for verdict in rest):
            whole = self._verdict(claim, "Not every stress window was run for every model.", ids, "stable")
        else:
            flips = sorted({verdict.claim.subjects[0] for verdict in rest if verdict.fragility})
            reason = "Counted from what happened in each window; each is one history."
            whole = self._verdict(claim, reason, ids, None, flips, f"this differs for {listing(flips)}.", findings)
        return [whole, *each.values()]

    def _gate(self, windows: Sequence[Measurement], model: str, profile: str) -> Verdict:
        """Return the verdict on whether one model stays within the drawdown limit in every stress window."""
        limit = float(windows[0].detail["tolerance"])

        def broken(value: float | None) -> bool:
            return value is None or value > limit + _ROUNDING

        breaches = listing([
            f"{item.labels['window']} ({_percent(item.value)})"
            for item in windows
            if item.value is not None and broken(item.value)
        ])  # fmt: skip
        text = f"falls by more than {_percent(limit)} under the {profile} profile in {breaches}"
        if not breaches:
            every = f"all {count_words(len(windows))} stress windows"
            text = f"stays within a drawdown of {_percent(limit)} in {every} under the {profile} profile"
        labels, ids = {"model": model, "profile": profile}, [item.id for item in windows]
        claim = _bench_claim("gate", labels, f"{model} {text}.", (model,), f"drawdown, {profile}")
        if (lost := next((item for item in windows if item.value is None), None)) is not None:
            return self._verdict(claim, f"{model} has {lost.state}.", [lost.id], "not tested")
        planned, measured = windows[0].detail.get("wanted", ()), {item.labels["window"] for item in windows}
        missing = [str(name) for name in planned if name not in measured] if isinstance(planned, (list, tuple)) else []
        if missing:
            reason = f"The limit is about every stress window, and {listing(missing)} were not run."
            return self._verdict(claim, reason, ids, "stable")
        deepest = max(windows, key=lambda item: item.value or 0.0)
        reason = (
            f"Maximum drawdown: {_percent(deepest.value or 0.0)} in {deepest.labels['window']}, over {deepest.n} days. "
            "Each window is one history: this is what happened, and it has no interval."
        )
        reversals = [item.labels["window"] for item in windows if broken(item.value) != broken(_other_value(item))]
        verb = "falls" if len(reversals) == 1 else "fall"
        return self._verdict(
            claim, reason, ids, None, reversals, f"{listing(reversals)} {verb} on the other side of the limit."
        )

    def beats(self, item: Measurement, p: float) -> Verdict:
        """Return the verdict on whether a model beats equal weight in the calm window; ``p`` is Holm-adjusted."""
        labels, alpha = {name: item.labels[name] for name in ("model", "profile", "window")}, self.rules.alpha
        text = "{model} beats equal weight on the Sharpe ratio of {window} under the {profile} profile."
        model, dimension = labels["model"], f"Sharpe ratio, {labels['profile']}"
        claim = _bench_claim("beats", labels, text.format(**labels), (model,), dimension)
        if item.value is None:
            about = model + " has" if item.state.startswith("no score") else "The difference is"
            return self._verdict(claim, f"{about} {item.state}.", [item.id], "not tested")
        if p > alpha or item.value <= 0:
            # The sign of an unsupported difference is not revealed.
            tail = f" ({p_words(p)} after Holm, {threshold(alpha)})" if item.value > 0 else ""
            return self._verdict(claim, f"The difference is not shown to be above zero{tail}.", [item.id], "tie-class")
        other = _other_value(item)
        reversals = [self.other] if other is not None and other <= 0 else []
        value = f"{number(item.value)}{ends_words(item.low, item.high)}"
        reason = f"The difference is {value}, {p_words(p)} after Holm, {threshold(alpha)}."
        return self._verdict(claim, reason, [item.id], None, reversals, "the difference is not above zero.")

    def agreement(self, item: Measurement, left_out: Sequence[Measurement], agreed: float) -> Verdict:
        """Return the verdict on whether the questions and the pipeline rank models alike (Spearman's rho)."""
        low, high, ends = item.low, item.high, ends_words(item.low, item.high)
        agree = low is not None and low > agreed
        rho = "is not defined" if item.value is None else f"is {number(item.value)}"
        order = f"The order of these {plural(item.n, 'model')} on the questions and in the pipeline"
        text = f"{order} {'agrees' if agree else 'differs'}: Spearman's rank correlation {rho}{ends}."
        claim = _bench_claim("dissociation", dict(item.labels), text, (), "questions and pipeline")
        if low is None or high is None:
            reason = f"The rank correlation has no interval: {item.state}."
            return self._verdict(claim, reason, [item.id], "not tested")
        if low <= agreed <= high:
            reason = f"The interval{ends} contains {number(agreed)}, so neither is shown."
            return self._verdict(claim, reason, [item.id], "tie-class")
        other = _other_value(item)
        reversals = [self.other] if other is not None and (other > agreed) != agree else []
        words = "" if other is None else f"it is {number(other)}."
        side = "above" if agree else "below"
        reason = f"The whole interval lies {side} {number(agreed)}. It is about these models only."
        return self._verdict(claim, reason, [item.id], None, reversals, words, [*missing_findings(left_out)])


def _bench_claim(kind: str, labels: dict[str, str], text: str, subjects: tuple[str, ...], dimension: str) -> Claim:
    return Claim(measurement_id(kind, labels), "benchmark", text, subjects, dimension, asserts_order=kind == "beats")


def _other_value(item: Measurement) -> float | None:
    other = item.detail.get("other", item.value)
    return float(other) if isinstance(other, (int, float)) else None


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %".replace(".0 %", " %")
