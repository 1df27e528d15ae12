"""What may be said of the order of models on a benchmark: pairs, groups whose order stands, and classes without one.

There are no judges here, so nothing is said of agreement or of control cells. An order has evidence when its difference
is significant after Holm; it is firm when no window and no other convention of the formulas turns it around.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal

from assaymark.claims.words import counted, listing, p_words, signed
from assaymark.metrology.contrasts import holm
from assaymark.records import Claim, Level, Measurement, StabilityStatus, Verdict, measurement_id

LEVEL = "bench.level"
CONTRAST = "bench.contrast"
OTHER = "the other convention"


@dataclass(frozen=True, slots=True)
class Board:
    """One leaderboard.

    Attributes
    ----------
    name : str
        The label ``board`` of its measurements.
    words : str
        What is scored, as a sentence ends: "CEPS under the balanced profile".
    family : str
        Boards of one family share one correction for the number of tests.
    caution : str
        What has to be said with every order on it, a sentence; empty if nothing has.
    """

    name: str
    words: str
    family: str
    caution: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """One pair on one board: who is higher, and whether that may be said.

    ``turned`` names what turns the order around (a window left out, the other convention).
    """

    high: str
    low: str
    contrast: Measurement
    p: float
    alpha: float
    turned: tuple[str, ...]

    @property
    def significant(self) -> bool:
        """Whether the difference has evidence after Holm."""
        return self.p <= self.alpha and (self.contrast.value or 0.0) > 0


@dataclass(frozen=True, slots=True)
class Standing:
    """A board that was read: its models from high to low, its pairs, and the groups between firm cuts.

    ``groups`` are in the order of their scores; within a group no order is claimed by layout, so names are sorted.
    """

    board: Board
    models: tuple[str, ...]
    orders: Mapping[frozenset[str], Order]
    groups: tuple[tuple[str, ...], ...]
    levels: Mapping[str, Measurement]


def read_boards(measurements: Sequence[Measurement], boards: Sequence[Board], *, alpha: float) -> tuple[Standing, ...]:
    """The standings of the boards that were measured.

    Parameters
    ----------
    measurements : sequence of Measurement
        With `LEVEL` of every model and `CONTRAST` of every pair, labelled with their board.
    boards : sequence of Board
    alpha : float
        Shared equally by the families of boards.
    """
    families = sorted({board.family for board in boards})
    share = alpha / max(1, len(families))
    adjusted: dict[str, float] = {}
    for family in families:
        names = {board.name for board in boards if board.family == family}
        tests = [item for item in measurements if item.name == CONTRAST and item.labels["board"] in names]
        if tests:
            values = holm([float(item.detail["p"]) for item in tests])
            adjusted |= {item.id: float(p) for item, p in zip(tests, values, strict=True)}
    return tuple(_standing(board, measurements, adjusted, share) for board in boards)


def _standing(
    board: Board, measurements: Sequence[Measurement], adjusted: Mapping[str, float], alpha: float
) -> Standing:
    mine = [item for item in measurements if item.labels.get("board") == board.name]
    levels = {item.labels["model"]: item for item in mine if item.name == LEVEL and item.value is not None}
    orders = {
        frozenset((item.labels["high"], item.labels["low"])): Order(
            item.labels["high"], item.labels["low"], item, adjusted[item.id], alpha, turned_by(item)
        )
        for item in mine
        if item.name == CONTRAST
    }
    models = tuple(sorted(levels, key=lambda name: (-(levels[name].value or 0.0), name)))
    return Standing(board, models, orders, _groups(models, orders), levels)


def turned_by(item: Measurement) -> tuple[str, ...]:
    """What turns a difference around: the other convention, or a part that is left out."""
    other, without = item.detail.get("other"), item.detail.get("without")
    turned = [OTHER] if isinstance(other, (int, float)) and other <= 0 else []
    if isinstance(without, Mapping):
        turned += [part for part, left in sorted(without.items()) if isinstance(left, (int, float)) and left <= 0]
    return tuple(turned)


def _groups(models: Sequence[str], orders: Mapping[frozenset[str], Order]) -> tuple[tuple[str, ...], ...]:
    """The models between cuts; a cut stands where everybody above it is significantly above everybody below."""
    groups: list[tuple[str, ...]] = []
    start = 0
    for at in range(1, len(models) + 1):
        crossing = product(models[:at], models[at:])
        firm = all(
            (pair := orders.get(frozenset(two))) and pair.high == two[0] and pair.significant for two in crossing
        )
        if at == len(models) or firm:
            groups.append(tuple(sorted(models[start:at])))
            start = at
    return tuple(groups)


def order_verdicts(standing: Standing, plan_hash: str) -> list[Verdict]:
    """Verdicts of one board: its cuts from high to low, its classes, then every pair by name."""
    cuts = [_cut(standing, at, plan_hash) for at in range(len(standing.groups) - 1)]
    ties = [_tie(standing, group, plan_hash) for group in standing.groups if len(group) > 1]
    pairs = [
        _pair(standing, standing.orders[frozenset(two)], plan_hash)
        for two in combinations(sorted(standing.models), 2)
        if frozenset(two) in standing.orders
    ]
    return [*cuts, *ties, *pairs]


def _cut(standing: Standing, at: int, plan_hash: str) -> Verdict:
    board, upper, lower = standing.board, standing.groups[at], standing.groups[at + 1]
    pairs = [standing.orders[frozenset(two)] for two in product(upper, lower)]
    claim = Claim(
        id=measurement_id("cut", {"board": board.name, "upper": "+".join(upper), "lower": "+".join(lower)}),
        scope="benchmark",
        statement=_cut_words(standing, at),
        subjects=(*upper, *lower),
        dimension=board.name,
        asserts_order=True,
    )
    closest = max(pairs, key=lambda pair: pair.p)
    reason = (
        f"{'The difference' if len(pairs) == 1 else f'Each of the {len(pairs)} differences'} is significant after Holm "
        f"({'' if len(pairs) == 1 else f'the closest, {closest.high} and {closest.low}: '}{p_words(closest.p)}, "
        f"{signed(closest.contrast.value or 0.0)})."
    )
    turned = tuple(sorted({what for pair in pairs for what in pair.turned}))
    conditions = [_turned_words(what, pairs) for what in turned]
    return _verdict(claim, board, reason, conditions, turned, [pair.contrast.id for pair in pairs], plan_hash)


def _turned_words(what: str, pairs: Sequence[Order]) -> str:
    """What turns an order around, and which pairs it turns."""
    under = f"Under {what}" if what == OTHER else f"Without {what}"
    turned = [f"{pair.high} and {pair.low}" for pair in pairs if what in pair.turned]
    if len(pairs) == 1:
        return f"{under} the order is the other way round."
    if len(turned) == len(pairs):
        return f"{under} all {len(pairs)} pairs are the other way round."
    which = f": {listing(turned)}" if len(turned) <= 3 else ""
    verb = "is" if len(turned) == 1 else "are"
    return f"{under} {len(turned)} of the {len(pairs)} pairs {verb} the other way round{which}."


def _cut_words(standing: Standing, at: int) -> str:
    groups, count = standing.groups, counted(len(standing.models), "model")
    upper, lower, where = groups[at], groups[at + 1], standing.board.words
    if at == 0 and len(upper) == 1:
        return f"{upper[0]} scores highest of the {count} on {where}."
    if at == len(groups) - 2 and len(lower) == 1:
        return f"{lower[0]} scores lowest of the {count} on {where}."
    verb = "score" if len(upper) > 1 else "scores"
    return f"{listing(upper)} {verb} above {listing(lower)} on {where}."


def _tie(standing: Standing, group: Sequence[str], plan_hash: str) -> Verdict:
    board = standing.board
    inside = [standing.orders[frozenset(two)] for two in combinations(group, 2)]
    firm = [pair for pair in inside if pair.significant]
    except_ = f", except {listing([f'{p.high} above {p.low}' for p in firm])}" if 0 < len(firm) <= 3 else ""
    if len(firm) > 3:
        except_ = f", except for {len(firm)} of the {len(inside)} pairs"
    claim = Claim(
        id=measurement_id("tie", {"board": board.name, "models": "+".join(group)}),
        scope="benchmark",
        statement=f"{listing(group)} form one class on {board.words}: no order among them is established{except_}.",
        subjects=tuple(group),
        dimension=board.name,
        asserts_order=False,
    )
    open_ = [pair for pair in inside if not pair.significant]
    least = min(open_, key=lambda pair: pair.p)
    nearest = f"{least.high} and {least.low}, {p_words(least.p)}, threshold {least.alpha:.3g}"
    pairs, verb = counted(len(open_), "pair").capitalize(), "has" if len(open_) == 1 else "have"
    reason = f"{pairs} of {len(inside)} {verb} no evidence after Holm (the nearest to it: {nearest})."
    return Verdict(
        claim=claim,
        agreement_status="not judged",
        stability_status="tie-class",
        adversarial_status="not judged",
        publication_level="qualified",
        reasons=(reason,),
        binding=("stability_status",),
        measurements=tuple(pair.contrast.id for pair in inside),
        plan_hash=plan_hash,
        condition="No order inside the class may be read from its scores.",
    )


def _pair(standing: Standing, pair: Order, plan_hash: str) -> Verdict:
    board = standing.board
    claim = Claim(
        id=measurement_id("above", {"board": board.name, "high": pair.high, "low": pair.low}),
        scope="benchmark",
        statement=f"{pair.high} scores above {pair.low} on {board.words}.",
        subjects=(pair.high, pair.low),
        dimension=board.name,
        asserts_order=True,
    )
    said = f"{signed(pair.contrast.value or 0.0)} over {pair.contrast.n} items, {p_words(pair.p)} after Holm"
    if not pair.significant:
        reason = f"The difference is within the noise: {said}, threshold {pair.alpha:.3g}."
        return withheld(claim, reason, [pair.contrast.id], plan_hash, status="tie-class")
    conditions = [_turned_words(what, [pair]) for what in pair.turned]
    reason = f"The difference is significant: {said}."
    return _verdict(claim, board, reason, conditions, pair.turned, [pair.contrast.id], plan_hash)


def _verdict(
    claim: Claim,
    board: Board,
    reason: str,
    conditions: Sequence[str],
    turned: Sequence[str],
    rests: Sequence[str],
    plan_hash: str,
) -> Verdict:
    """A claim with evidence: a headline if nothing turns it and nothing has to be said with it."""
    said = [*conditions, *([board.caution] if board.caution else [])]
    return permitted(claim, reason, said, rests, plan_hash, turned=turned)


def permitted(
    claim: Claim,
    reason: str,
    conditions: Sequence[str],
    rests: Sequence[str],
    plan_hash: str,
    *,
    turned: Sequence[str] = (),
) -> Verdict:
    """The verdict of a claim that may be made: qualified where something has to be said with it."""
    level: Level = "qualified" if conditions else "headline"
    status: StabilityStatus = "rule-dependent" if turned else "stable"
    return Verdict(
        claim=claim,
        agreement_status="not judged",
        stability_status=status,
        adversarial_status="not judged",
        publication_level=level,
        reasons=(reason,),
        binding=("stability_status",) if conditions else (),
        measurements=tuple(rests),
        plan_hash=plan_hash,
        condition=" ".join(conditions) or None,
        fragility=dict.fromkeys(turned, "no-claim"),
    )


def withheld(
    claim: Claim,
    reason: str,
    rests: Sequence[str],
    plan_hash: str,
    *,
    status: Literal["tie-class", "rule-dependent", "stable"] = "stable",
) -> Verdict:
    """The verdict of a claim that may not be made."""
    return Verdict(
        claim=claim,
        agreement_status="not judged",
        stability_status=status,
        adversarial_status="not judged",
        publication_level="no-claim",
        reasons=(reason,),
        binding=("stability_status",),
        measurements=tuple(rests),
        plan_hash=plan_hash,
    )
