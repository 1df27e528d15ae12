"""A naive diversifier: equal shares across asset classes, and few words."""

from __future__ import annotations

import numpy as np

from assaymark.agents.composition import Composition, by_weight
from assaymark.agents.observation import Asset, Observation
from assaymark.agents.wording import count, listing, move, percent

_BASE, _PENALTY = 0.6, 0.3


def compose(seen: Observation) -> Composition:
    """Equal shares of as many names as the rules allow, taken from the classes in turn, and a terse note.

    Within a class the calmest instrument comes first (in the context's order where no volatility is known); cash
    comes after everything else. Confidence is 0.6 less 0.3 times the share of holdings whose longest trailing return
    is negative.
    """
    order = _in_turn(seen.assets)
    most = seen.mandate.holdings_range(len(order))[1]
    wanted = np.zeros(len(order))
    wanted[order[:most]] = 1.0 / most
    weights = seen.mandate.fit(wanted)
    held = by_weight(seen.assets, weights)
    falling = [asset for asset, _ in held if asset.returns and asset.returns[-1].ratio < 0]
    confidence = round(_BASE - _PENALTY * len(falling) / len(held), 2)
    return Composition(
        weights=weights,
        summary=_summary(held, falling),
        portfolio=f"{_shares(held)} Classes in turn, calmest name first. {_left_out(seen, held)}"
        f"Confidence {confidence:.2f}, less for each name that falls.",
        risks=_risks(held),
        confidence=confidence,
    )


def _in_turn(assets: tuple[Asset, ...]) -> list[int]:
    """Indices of the assets, one class after the other in rounds; cash last."""
    ranks: dict[str, int] = {}
    keyed = []
    calmest = sorted(range(len(assets)), key=lambda i: (assets[i].volatility or 0.0, i))
    for i in calmest:
        place = ranks.setdefault(assets[i].asset_class, 0)
        keyed.append((assets[i].asset_class == "cash", place, _class_order(assets, i), i))
        ranks[assets[i].asset_class] += 1
    return [i for *_, i in sorted(keyed)]


def _class_order(assets: tuple[Asset, ...], index: int) -> int:
    """Where the class of an asset first appears."""
    return next(i for i, asset in enumerate(assets) if asset.asset_class == assets[index].asset_class)


def _summary(held: list[tuple[Asset, float]], falling: list[Asset]) -> str:
    shares = {round(weight, 9) for _, weight in held}
    start = f"Equal shares of {percent(held[0][1], 0)}" if len(shares) == 1 else "Shares as equal as the steps allow"
    trailing = "; ".join(
        f"{asset.short} {move(asset.returns[-1].ratio)} over {asset.returns[-1].words}" for asset in falling
    )
    tail = f" Falling: {trailing}." if falling else " None is falling."
    return f"{start} in {count(len(held))} names. No forecast.{tail}"


def _shares(held: list[tuple[Asset, float]]) -> str:
    return f"{', '.join(f'{asset.short} {percent(weight, 0)}{_class(asset)}' for asset, weight in held)}."


def _class(asset: Asset) -> str:
    return f" ({asset.asset_class.replace('_', ' ')})" if asset.asset_class else ""


def _left_out(seen: Observation, held: list[tuple[Asset, float]]) -> str:
    """The most volatile name that was left out, if one is known."""
    kept = {asset.id for asset, _ in held}
    out = [asset for asset in seen.assets if asset.id not in kept and asset.volatility]
    if not out:
        return ""
    asset = max(out, key=lambda item: item.volatility or 0.0)
    return f"Not {asset.short}: volatility {percent(asset.volatility or 0.0)}. "


def _risks(held: list[tuple[Asset, float]]) -> tuple[str, ...]:
    """The roughest holding and the one that fell the furthest; the class mix when no figure is known."""
    risks = []
    rough = [asset for asset, _ in held if asset.volatility is not None]
    if rough:
        asset = max(rough, key=lambda item: item.volatility or 0.0)
        risks.append(f"Roughest: {asset.short}, volatility {percent(asset.volatility or 0.0)}.")
    fallen = [asset for asset, _ in held if asset.drawdown is not None]
    if fallen:
        asset = min(fallen, key=lambda item: item.drawdown or 0.0)
        risks.append(f"Deepest fall: {asset.short}, max drawdown {percent(asset.drawdown or 0.0)}.")
    if len(risks) < 2:
        classes = list(dict.fromkeys(asset.asset_class.replace("_", " ") or "unnamed" for asset, _ in held))
        risks.append(f"Classes fall together: {listing(classes)}.")
    return tuple(risks)
