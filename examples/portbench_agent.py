"""An agent of PortBench's pipeline: python/portbench_agent:decide, with this folder on PYTHONPATH.

It buys what rose, weighs it by the inverse of its volatility, and keeps within the limits of the investor.
"""

from statistics import pstdev


def decide(context):
    """Answer a stage from its numbers; `context` is an assaymark.engine.models.MarketContext."""
    if not hasattr(context, "stage"):
        return {"answer": "none: this agent manages portfolios and answers no questions"}
    names = [one.id for one in context.instruments]
    columns = dict(zip(names, zip(*context.returns, strict=True), strict=True))  # the daily returns of each instrument
    if context.stage == "S1":
        views = {name: max(-1.0, min(1.0, 5 * sum(daily))) for name, daily in columns.items()}
        return {"views": views, "rationale": "The trend of the last 60 days goes on; 20 % is full conviction."}
    if context.stage == "S2":
        signals = {
            name: "buy" if view > 0.2 else "sell" if view < -0.2 else "hold" for name, view in context.views.items()
        }
        return {"signals": signals, "rationale": "What rose by more than 4 % is bought."}
    bought = [name for name, signal in context.signals.items() if signal == "buy"] or names
    return {"weights": within_limits(context, {name: 1 / max(pstdev(columns[name]), 1e-4) for name in bought})}


def within_limits(context, sizes):
    """Weights in proportion to sizes; what the cap and the floor do not allow is moved to bonds and cash."""
    limits = {rule.kind: rule.limit for rule in context.constraints}
    classes = {one.id: one.asset_class for one in context.instruments}
    safe = [name for name, kind in classes.items() if kind in ("bond", "cash")]
    weights = {name: size / sum(sizes.values()) for name, size in sizes.items()}
    risky = sum(weight for name, weight in weights.items() if classes[name] in ("equity", "crypto"))
    held = sum(weights.get(name, 0) for name in safe)
    most, least = limits["max_weight"], limits["min_weight"]
    keep = min(1, most / max(risky, 1e-9), (1 - least) / max(1 - held, 1e-9))
    weights = {name: weight if name in safe else keep * weight for name, weight in weights.items()}
    missing = 1 - sum(weights.values())
    for name in safe:
        weights[name] = weights.get(name, 0) + missing / len(safe)
    return weights
