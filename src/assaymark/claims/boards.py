"""Which rankings of models the boards of a benchmark support: first ranks, pairs, and pairs within a margin."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final

from assaymark.claims.candidates import first_claim, kind_of, pair_claim, within_claim
from assaymark.claims.evidence import Index, index
from assaymark.claims.fields import NOT_PREREGISTERED, Fields
from assaymark.claims.levels import Rules, other_margins, other_tests, threshold
from assaymark.claims.orders import Orders, Row, Standing, orders_of, ranks_of, row_of, tiers_of
from assaymark.claims.standing import Evidence, Finding, clusters_of
from assaymark.claims.verdicts import with_gap
from assaymark.claims.words import counted, interval_words, listing, p_words, signed
from assaymark.records import AGGREGATE, Claim, Condition, Level, Measurement, StabilityStatus, Verdict
from assaymark.text import NBSP, percent

LEVEL: Final = "bench.level"
MISSING: Final = "missing.share"
SMALL_GAP: Final = Condition(id="small-gap", text="The difference is smaller than the margin that counts as none.")

_OF_ORDERS: Final = ("contrast", "order.autocorrelation")


@dataclass(frozen=True, slots=True)
class Board:
    """One leaderboard."""

    name: str
    words: str
    family: str


@dataclass(frozen=True, slots=True, eq=False)
class Leaderboard:
    """A board with what may be said of its ranking."""

    board: Board
    models: tuple[str, ...]
    levels: Mapping[str, Measurement]
    tiers: tuple[tuple[str, ...], ...]
    ranks: Mapping[str, tuple[int, int]]
    pairs: int = 0
    open_pairs: int = 0
    least: float = 1.0
    alpha: float = 0.0
    unscored: Mapping[str, str] = field(default_factory=dict)


def board_verdicts(
    measurements: Sequence[Measurement], boards: Sequence[Board], rules: Rules, plan_hash: str, other: str
) -> tuple[list[Verdict], list[Leaderboard]]:
    """The verdicts on one family of boards, and the leaderboards that follow from them."""
    family = _Family.of(measurements, boards, rules, other)
    found = {board: [family.verdict(board, claim, plan_hash) for claim in family.claims(board)] for board in boards}
    leaderboards = [family.leaderboard(board, found[board]) for board in boards]
    return [verdict for verdicts in found.values() for verdict in verdicts], leaderboards


@dataclass(frozen=True, slots=True, eq=False)
class _Family:
    """Boards whose orders are decided together."""

    boards: tuple[Board, ...]
    levels: Mapping[Board, Mapping[str, Measurement]]
    known: Index
    rules: Rules
    other: str
    missing: tuple[Measurement, ...] = ()

    @classmethod
    def of(cls, measurements: Sequence[Measurement], boards: Sequence[Board], rules: Rules, other: str) -> _Family:
        names = {board.name for board in boards}
        levels: dict[Board, dict[str, Measurement]] = {
            board: {
                item.labels["model"]: item
                for item in measurements
                if item.name == LEVEL and item.labels["board"] == board.name
            }
            for board in boards
        }
        models = sorted({model for found in levels.values() for model in found})
        mine = [item for item in measurements if item.name in _OF_ORDERS and item.labels["dimension"] in names]
        known = index(mine, agents=models, families=())
        rows: dict[str, tuple[Row, ...]] = {
            cls._scale(boards, board): tuple(
                row_of(known, known.contrast(board.name, *pair)) for pair in combinations(models, 2)
            )
            for board in boards
            if board.name in known.compared
        }
        lacking = [item for item in measurements if item.name == MISSING and item.labels["part"] == boards[0].family]
        return cls(tuple(boards), levels, replace(known, rows=rows, memo={}), rules, other, tuple(lacking))

    @staticmethod
    def _scale(boards: Sequence[Board], board: Board) -> str:
        """How the order procedure calls a board."""
        return AGGREGATE if board == boards[0] else board.name

    def claims(self, board: Board) -> Iterator[Claim]:
        """The candidates of one board."""
        models, where = self.known.agents, board.words
        if board.name not in self.known.compared:
            return
        scored = len(self._scored(board))
        of = f"{counted(scored, 'model')} with a score" if 1 < scored < len(models) else counted(len(models), "model")
        for model in models:
            says = f"{model} ranks first of the {of} on {where}."
            yield replace(first_claim(board.name, model, len(models)), scope="benchmark", statement=says)
        pairs = [self.known.contrast(board.name, *pair) for pair in combinations(models, 2)]
        for pair in pairs:
            claim = pair_claim(board.name, pair.high, pair.low)
            yield replace(claim, scope="benchmark", statement=f"{pair.high} scores above {pair.low} on {where}.")
        for pair in pairs if board == self.boards[0] else ():
            claim = within_claim(pair.high, pair.low, self.rules.margin, board.name)
            one, other = sorted((pair.high, pair.low))
            says = f"{one} and {other} score within {self.rules.margin:g} of each other on {where}."
            yield replace(claim, scope="benchmark", statement=says)

    def _scored(self, board: Board) -> dict[str, Measurement]:
        """The levels of the models that have one."""
        return {model: item for model, item in sorted(self.levels[board].items()) if item.value is not None}

    def verdict(self, board: Board, claim: Claim, plan_hash: str) -> Verdict:
        """The verdict on one claim, with its level under the other rules."""
        fields = self._fields(board, claim, self.rules)
        level = fields.level
        said: list[Condition] = []
        if level != "no-claim":
            said = [condition for one in fields.findings for condition in one.conditions]
            said += [] if self.rules.preregistered else [Condition(id="not-preregistered", text=NOT_PREREGISTERED)]
            small = claim.asserts_order and fields.evidence.state == "ordered-by-less-than-the-margin"
            said += [SMALL_GAP] if small else []
            if kind_of(claim) == "within":
                pair = self.known.contrast(board.name, *claim.subjects)
                claim = replace(claim, statement=with_gap(claim, pair.measurement))
        reasons = [fields.evidence.reason_at(level), *([] if self.rules.preregistered else [NOT_PREREGISTERED])]
        fragility: dict[str, Level] = {
            name: self._fields(board, claim, other).level for name, other in self._variants(claim).items()
        }
        if level != "no-claim":
            fragility |= dict.fromkeys(self._turned(board, claim, fields.evidence.pairs), "no-claim")
        return fields.verdict(plan_hash, claim=claim, reasons=reasons, conditions=said, fragility=fragility)

    def _variants(self, claim: Claim) -> Mapping[str, Rules]:
        if kind_of(claim) == "within":
            return other_margins(self.rules)
        return other_tests(self.rules, self.known.measured_tests(), dimensions=len(self.boards) > 2)

    def leaderboard(self, board: Board, verdicts: Sequence[Verdict]) -> Leaderboard:
        """A board with the tiers and ranks that its claims leave."""
        levels = self._scored(board)
        models = tuple(levels)
        unscored = {model: item.state for model, item in sorted(self.levels[board].items()) if model not in levels}
        claimed = [
            (one.claim.subjects[0], one.claim.subjects[1])
            for one in verdicts
            if kind_of(one.claim) == "pair" and one.publication_level != "no-claim"
        ]
        tiers, ranks = (tiers_of(models, claimed), ranks_of(models, claimed)) if models else ((), {})
        if board.name not in self.known.compared:
            return Leaderboard(board, models, levels, tiers, ranks, unscored=unscored)
        orders, scale = orders_of(self.known, self.rules), self._scale(self.boards, board)
        pairs = [orders.pair(scale, *pair) for pair in combinations(models, 2)]
        still = [pair.gated for pair in pairs if not pair.ordered]
        least, level = min(still, default=1.0), orders.level(scale)
        return Leaderboard(board, models, levels, tiers, ranks, len(pairs), len(still), least, level, unscored)

    # --- one claim ---------------------------------------------------------------------------------------------------

    def _fields(self, board: Board, claim: Claim, rules: Rules) -> Fields:
        orders = orders_of(self.known, rules)
        scale, kind = self._scale(self.boards, board), kind_of(claim)
        if kind == "first":
            evidence = self._first(board, claim, orders, scale, rules)
        else:
            pair = orders.pair(scale, *claim.subjects)
            evidence = (self._within if kind == "within" else self._above)(board, pair, orders.level(scale), rules)
        turned = self._turned(board, claim, evidence.pairs) if evidence.published else {}
        if turned and evidence.status == "stable":
            evidence = replace(evidence, status="rule-dependent")
        findings = [Finding("stability", "turned", conditions=tuple(turned.values()))] if turned else []
        if evidence.published:
            findings += clusters_of(claim, evidence, self.known)
        if claim.asserts_order:
            compared = {name for pair in evidence.pairs for name in (pair.row.high, pair.row.low)}
            findings += missing_findings(self.missing, compared)
        return Fields.unjudged(claim, evidence, findings, preregistered=rules.preregistered)

    def _above(self, board: Board, pair: Standing, level: float, rules: Rules) -> Evidence:
        item = self._contrast(board, pair)
        published = pair.published
        status: StabilityStatus = "stable"
        reason = f"The difference is not resolved: {p_words(pair.gated)} adjusted, {threshold(level)}."
        if not pair.row.testable:
            status, reason = "not tested", self._untested(board, pair)
        elif not published:
            status = "tie-class"
        else:
            over = f"{item.n} items in {int(item.detail['clusters'])} clusters"
            gap = f"The difference is {signed(item.value or 0.0)}{interval_words(item.low, item.high)} over {over}"
            reason = f"{gap}: {p_words(pair.gated)} adjusted, {threshold(level)}."
        return Evidence(
            status, reason, (item.id,), (pair,), published, None, pair.state,
            pair.row.p.get(rules.test, 1.0), pair.gated, pair.headline,
        )  # fmt: skip

    def _first(self, board: Board, claim: Claim, orders: Orders, scale: str, rules: Rules) -> Evidence:
        model, level, scored = claim.subjects[0], orders.level(scale), self._scored(board)
        if model not in scored:
            item = self.levels[board][model]
            return Evidence("not tested", f"{model} has {item.state}.", (item.id,), p=1.0, p_adjusted=1.0)
        pairs = [pair for pair in orders.of(scale, model) if {pair.row.high, pair.row.low} <= scored.keys()]
        rests = tuple(self._contrast(board, pair).id for pair in pairs)
        untested = [
            pair.row.low if pair.row.high == model else pair.row.high for pair in pairs if not pair.row.testable
        ]
        mine = [pair for pair in pairs if pair.row.high == model]
        # Beside a model without a score nobody leads all; whoever is shown to be above each of the others still does.
        ahead = bool(pairs) and all(pair.ordered for pair in mine) and len(mine) == len(pairs)
        first = (orders.leader(scale) == model or ahead) and not untested
        own, adjusted = (
            max(values, default=1.0) if len(mine) == len(pairs) else 1.0
            for values in ([pair.row.p.get(rules.test, 1.0) for pair in pairs], [pair.gated for pair in pairs])
        )
        status: StabilityStatus = "stable"
        if not pairs:
            status, reason = ("not tested", f"{model} is the only model with a score, and cannot be tested.")
        elif untested:
            status, reason = (
                "not tested",
                f"{model} and {listing(sorted(untested))} cannot be compared: too few clusters.",
            )
        elif not first:
            tail = f"(adjusted p-values of all its pairs, {threshold(level)})"
            reason = f"A lead over every other model is not resolved {tail}."
            status = "tie-class"
        else:
            lead = f"The lead over each of the other {counted(len(pairs), 'model')}"
            reason = f"{lead} is significant: {p_words(adjusted)} adjusted at most, {threshold(level)}."
        published = frozenset({"gated"}) if first else frozenset()
        return Evidence(status, reason, rests, tuple(pairs), published, None, None, own, adjusted, adjusted)

    def _within(self, board: Board, pair: Standing, level: float, rules: Rules) -> Evidence:
        del level  # equivalence is a family of its own
        item = self._contrast(board, pair)
        tail = f"{p_words(pair.p_within)} after Holm over all pairs, {threshold(rules.alpha)}"
        status: StabilityStatus = "stable" if pair.within else "tie-class"
        shown = "" if pair.within else "are not shown to "
        reason = f"The two {shown}score within {rules.margin:g} of each other: {tail}."
        if not pair.row.testable:
            status, reason = "not tested", self._untested(board, pair)
        published = frozenset({"gated"}) if pair.within else frozenset()
        own = pair.row.within(rules.margin)
        return Evidence(status, reason, (item.id,), (pair,), published, None, pair.state, own, pair.p_within)

    def _untested(self, board: Board, pair: Standing) -> str:
        """Why a pair has no test."""
        names = {pair.row.high, pair.row.low}
        about = f"{' and '.join(sorted(names))}: " if names <= self._scored(board).keys() else ""
        return f"{about}{self._contrast(board, pair).state}."

    def _contrast(self, board: Board, pair: Standing) -> Measurement:
        return self.known.contrast(board.name, pair.row.high, pair.row.low).measurement

    def _turned(self, board: Board, claim: Claim, pairs: Sequence[Standing]) -> dict[str, Condition]:
        """What takes a claim away, each with the sentence that says so: other formulas, or a part left out."""
        near = self.rules.margin if kind_of(claim) == "within" else None
        found: dict[str, list[str]] = {}
        for pair in pairs:
            for what in turned_by(self._contrast(board, pair), self.other, near):
                found.setdefault(what, []).append(f"{pair.row.high} and {pair.row.low}")
        return {
            what: Condition(
                id="other-convention" if what == self.other else "left-out-part",
                text=_turned_words(
                    f"By {what}" if what == self.other else f"Without {what}",
                    names,
                    len(pairs),
                    further=near is not None,
                ),
            )
            for what, names in sorted(found.items())
        }


def missing_findings(items: Sequence[Measurement], compared: Collection[str] = ()) -> Iterator[Finding]:
    """Models that were left out limit what is said of the smaller board; what is missing of others is only said."""
    gone = [item for item in items if item.detail["left_out"]]
    rest = [item for item in items if item not in gone and item.labels["model"] in compared]
    for some, state in ((gone, "left-out"), (rest, "tolerated")):
        if some:
            said = Condition(id="missing-replies", text=" ".join(map(missing_replies, some)))
            ids = tuple(item.id for item in some)
            found = Finding("missing_replies", state, conditions=(said,), measurements=ids)
            yield replace(found, cap="qualified") if some is gone else found


def missing_replies(item: Measurement) -> str:
    """Which model lacks how much of a part, or why it was left out; ``item`` is its ``missing.share``."""
    model, part, share = item.labels["model"], item.labels["part"], percent(item.value or 0.0, 1).replace(NBSP, " ")
    if item.detail["left_out"]:
        return f"{model} was left out of the {part}: {item.detail['left_out']}."
    return f"{model} gave no reply to {item.detail['missing']} of {item.n} calls of the {part} ({share})."


def turned_by(item: Measurement, other: str, margin: float | None = None) -> tuple[str, ...]:
    """What turns a difference around, or takes it beyond a margin: ``other`` formulas, or a part that is left out."""
    found, without = item.detail.get("other"), item.detail.get("without", {})
    values = {other: found} if isinstance(found, (int, float)) else {}
    values |= {part: value for part, value in sorted(without.items()) if isinstance(value, (int, float))}
    return tuple(what for what, value in values.items() if (value <= 0 if margin is None else abs(value) >= margin))


def _turned_words(under: str, turned: Sequence[str], pairs: int, *, further: bool) -> str:
    """What turns a claim around, and which of its pairs."""
    if further:
        return f"{under} the two score further apart."
    if pairs == 1:
        return f"{under} the order is the other way round."
    if len(turned) == pairs:
        return f"{under} all {pairs} pairs are the other way round."
    which = f": {listing(turned)}" if len(turned) <= 3 else ""
    verb = "is" if len(turned) == 1 else "are"
    return f"{under} {len(turned)} of the {pairs} pairs {verb} the other way round{which}."
