"""A trend follower: buys what has risen, sizes by how much, and explains itself in a memo."""

from __future__ import annotations

import numpy as np

from assaymark.agents.composition import Composition, book_forecast, by_weight
from assaymark.agents.mandate import Floats
from assaymark.agents.observation import Asset, Observation, Trailing
from assaymark.agents.wording import count, listing, move, opening, percent, plain
from assaymark.errors import NotMeasurableError

HORIZON = 5
"""The forecast is for this many sessions."""

PERSISTENCE = 0.25
"""The share of the trailing daily pace that is expected to go on."""

_SHORTEST = 10.0  # a return over fewer sessions is a swing, not a trend
_FLOOR, _SPAN = 0.4, 0.4
_WIDE_SPREAD_BPS = 200.0
_HIGH_INFLATION = 4.0


def compose(seen: Observation) -> Composition:
    """The book of a trend follower and its memo.

    An asset's score is its mean return per session over the trailing windows of at least ten sessions. Assets with a
    positive score are wanted in proportion to it; where the rules ask for more names, the next best fill up. The
    forecast is a quarter of the score for five sessions. Confidence is 0.4 plus 0.4 times the share of the holdings'
    trailing returns that are positive.

    Raises
    ------
    NotMeasurableError
        An asset has no trailing return.
    """
    scores = np.array([_score(asset) for asset in seen.assets])
    weights = seen.mandate.fit(_wanted(scores, seen.mandate.holdings_range(len(seen.assets))[0]))
    forecast = tuple(round(100 * PERSISTENCE * HORIZON * float(score), 2) + 0.0 for score in scores)
    held = by_weight(seen.assets, weights)
    up, total = _agreement(held)
    confidence = round(_FLOOR + _SPAN * up / total, 2)
    paragraphs = (
        _sizes(held),
        _holdings(held),
        _left_out(seen, scores, weights),
        _outlook(seen.benchmark, book_forecast(weights, forecast), forecast[seen.base]),
        _conviction(confidence, up, total),
    )
    return Composition(
        weights=weights,
        summary=_summary(seen, scores),
        portfolio=" ".join(part for part in paragraphs if part),
        risks=_risks(seen, held),
        confidence=confidence,
        forecast=forecast,
    )


def _trend_windows(asset: Asset) -> tuple[Trailing, ...]:
    """The windows long enough to show a trend, or all there are."""
    return tuple(item for item in asset.returns if item.sessions >= _SHORTEST) or asset.returns


def _score(asset: Asset) -> float:
    """Mean return per session over the trend windows."""
    windows = _trend_windows(asset)
    if not windows:
        raise NotMeasurableError(f"the context states no trailing return for {asset.id}")
    return float(np.mean([item.ratio / item.sessions for item in windows]))


def _wanted(scores: Floats, fewest: int) -> Floats:
    """Wanted weights: the positive part of the scores; a sliver for the best others when those are too few."""
    wanted = np.maximum(scores, 0.0)
    missing = fewest - int(np.count_nonzero(wanted))
    if missing > 0:
        rising = float(wanted.max()) or 1.0
        others = [int(i) for i in np.argsort(-scores, kind="stable") if wanted[i] == 0.0][:missing]
        wanted[others] = rising * 1e-6 * np.arange(len(others), 0, -1)
    return np.asarray(wanted, dtype=np.float64)


def _agreement(held: list[tuple[Asset, float]]) -> tuple[int, int]:
    """How many of the holdings' trailing returns are positive, and how many there are."""
    ratios = [item.ratio for asset, _ in held for item in asset.returns]
    return sum(ratio > 0 for ratio in ratios), len(ratios)


def _conviction(confidence: float, up: int, total: int) -> str:
    reason = "because" if up / total >= 0.7 else "since only"
    counts = f"all {count(total)}" if up == total else f"{count(up)} of the {count(total)}"
    return f"Confidence is {confidence:.2f}, {reason} {counts} trailing returns in the book are positive."


def _summary(seen: Observation, scores: Floats) -> str:
    order = np.argsort(-scores, kind="stable")
    lead, lag = seen.assets[order[0]], seen.assets[order[-1]]
    return f"{_breadth(seen)} {_leaders(lead, lag)} {_market(seen.benchmark)}".rstrip()


def _breadth(seen: Observation) -> str:
    """How much of the market has risen, and what follows for the book."""
    rising = sum(asset.returns[-1].ratio > 0 for asset in seen.assets)
    share, total, words = rising / len(seen.assets), len(seen.assets), seen.benchmark.returns[-1].words
    said = f"{count(rising)} of the {count(total)} instruments stand above where they were {words} ago"
    if share >= 0.7:
        return f"The advance is broad: {said}, so the book leans into the strongest of them."
    if share >= 0.4:
        return f"Leadership is narrow: {said}, so the book stays with the few that carry the market."
    return f"Most of the market is falling: only {said}, so the book shelters where prices still hold."


def _leaders(lead: Asset, lag: Asset) -> str:
    if lead.returns[-1].ratio > 0:
        ahead, behind = _over(_trend_windows(lead)), _over(lag.returns[-1:])
        return f"{lead.name} leads, {ahead}; {lag.name} trails, {behind}."
    return (
        f"Even the best of them, {lead.name}, is {_over(lead.returns[-1:])}, and {lag.name} is far behind, "
        f"{_over(lag.returns[-1:])}."
    )


def _market(bench: Asset) -> str:
    """Whether the benchmark's latest swing agrees with its trend."""
    swing, trend = bench.returns[0], bench.returns[-1]
    if swing is trend or swing.ratio == 0:
        return ""
    if swing.ratio * trend.ratio > 0:
        return f"The latest swing in {bench.name}, {_over((swing,))}, confirms its direction."
    return f"The latest swing in {bench.name}, {_over((swing,))}, runs against its trend."


def _over(windows: tuple[Trailing, ...]) -> str:
    """Moves with their windows: 'up 4.2% over 21 sessions and up 9.0% over 63 sessions'."""
    return listing([f"{move(item.ratio)} over {item.words}" for item in windows])


def _sizes(held: list[tuple[Asset, float]]) -> str:
    return f"I put {listing([f'{percent(weight, 0)} in {asset.name}' for asset, weight in held])}."


def _holdings(held: list[tuple[Asset, float]]) -> str:
    """Why each holding is in the book. What has been said of one is said more briefly of the next."""
    sentences, told = [], set()
    for asset, weight in held:
        for pattern, first, again in (_course(asset, weight), _roughness(asset)):
            sentences.append(again if pattern in told else first)
            told.add(pattern)
    return " ".join(sentence for sentence in sentences if sentence)


def _course(asset: Asset, weight: float) -> tuple[str, str, str]:
    """How an asset's windows hang together: the pattern, a sentence for its first case, and one for later cases."""
    ups = [item.ratio > 0 for item in asset.returns]
    name, said = asset.name, _over(asset.returns)
    if all(ups):
        reason = f"{name} earns its {percent(weight, 0)} because every window points the same way: {said}."
        return "rising", reason, f"{name} rises in every window too: {said}."
    if ups[-1] and not ups[0]:
        return "paused", f"{name} has paused, yet the larger move is intact: {said}.", f"{name} pauses as well: {said}."
    if ups[-1]:
        return "recovered", f"{name} has shaken off a setback: {said}.", f"{name} recovered in the same way: {said}."
    if _score(asset) > 0:
        reason = f"{name} has turned, though it has not yet made up its earlier loss: {said}."
        return "turned", reason, f"{name} is at the same point: {said}."
    return "filler", f"{name} is held for want of anything stronger: {said}.", f"So is {name}: {said}."


def _roughness(asset: Asset) -> tuple[str, str, str]:
    """What a holding's volatility means for keeping it, in the same three parts as `_course`."""
    if asset.volatility is None:
        return "unknown", "", ""
    said = f"{opening(asset.short)} volatility is {percent(asset.volatility)}"
    if asset.volatility >= 0.25:
        return "rough", f"{said}, so the position must be left quickly when it turns.", f"{said}, no calmer."
    if asset.volatility >= 0.08:
        return "fair", f"{said}, which is tolerable for a move of this size.", f"{said}."
    return "calm", f"{said}, so it steadies the rest.", f"{said}."


def _left_out(seen: Observation, scores: Floats, weights: Floats) -> str:
    """The best asset that did not make it, and why not."""
    out = [i for i in np.argsort(-scores, kind="stable") if weights[i] == 0]
    if not out:
        return ""
    asset = seen.assets[out[0]]
    said = _over(_trend_windows(asset))
    if scores[out[0]] > 0:
        return f"{asset.name} was considered and left out: {said}; its pace is slower than that of the names above."
    return f"{asset.name} was considered and left out: {said}; there is no trend in it to follow."


def _outlook(bench: Asset, book: float, market: float) -> str:
    """The forecast for the book beside that for the benchmark."""
    verdict = "ahead of" if book > market else "level with" if book == market else "behind"
    return (
        f"If a quarter of the trailing daily pace goes on, I expect {book:.2f}% from this book over the next "
        f"{count(HORIZON)} sessions, {verdict} the {market:.2f}% that the same rule gives {bench.name}."
    )


def _risks(seen: Observation, held: list[tuple[Asset, float]]) -> tuple[str, ...]:
    risks = [_reversal(*held[0]), _crowding(seen.benchmark, held), _economy(seen)]
    return tuple(text for text in risks if text)


def _reversal(asset: Asset, weight: float) -> str:
    """What would prove the largest holding wrong."""
    window = _trend_windows(asset)[0]
    exit_rule = f"I would cut it when its return over {window.words} turns negative."
    if window.ratio <= 0:
        exit_rule = f"Its return over {window.words} is not positive, so I would cut it at the first stronger name."
    fall = "" if not asset.drawdown else f" Its worst drawdown was {percent(abs(asset.drawdown))}."
    return (
        f"Reversal: {asset.name} is {percent(weight, 0)} of the book, and trends end without notice.{fall} {exit_rule}"
    )


def _crowding(bench: Asset, held: list[tuple[Asset, float]]) -> str:
    """The holding that would follow the benchmark down the furthest."""
    exposed = [(asset, asset.beta) for asset, _ in held if asset.beta is not None and asset.id != bench.id]
    if not exposed:
        return ""
    asset, beta = max(exposed, key=lambda pair: pair[1])
    text = f"Common shock: {asset.name} has a beta of {plain(beta)} to {bench.name}"
    if beta >= 0.8:
        return f"{text}, so a fall in the broad market would reach this book almost undiluted."
    if beta >= 0.3:
        return f"{text}, so part of any fall in the broad market would reach this book."
    return f"{text}, the most of any holding beside it, so the danger lies in each name rather than in the market."


def _economy(seen: Observation) -> str:
    """The number about the economy that threatens a trend most."""
    spread, inflation, rate = (seen.economy.get(name) for name in ("credit_spread", "inflation_yoy", "policy_rate"))
    if spread is not None and spread >= _WIDE_SPREAD_BPS:
        return f"Credit: a credit spread of {spread:.0f} bps says that lenders are nervous, and prices tend to follow."
    if inflation is not None and inflation >= _HIGH_INFLATION:
        return f"Inflation: with inflation at {inflation:.1f}%, a policy surprise could end several trends at once."
    if rate is not None:
        return f"Policy: the policy rate stands at {rate:.2f}%, and a change of course would reprice every holding."
    return ""
