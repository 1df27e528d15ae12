"""An agent of PortBench: python/portbench_agent:decide, with this folder on PYTHONPATH.

In the pipeline it buys what rose, weighs it by the inverse of its volatility, and keeps within the limits of the
investor. Questions it answers from the numbers that they state, as far as a few lines can.
"""

from statistics import pstdev


def decide(context):
    """Answer a stage or a question from its numbers; `context` is one of assaymark.engine.providers.

    A `MarketContext` has a `stage`, a `QuestionContext` a `template`.
    """
    if not hasattr(context, "stage"):
        return {"answer": answered(context.template, context.given) if context.given else "not known"}
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


def answered(template, given):
    """The answer to a question in the form that its prompt asks for."""
    if template == "T1":  # the trend goes on
        change = given["change"]
        return "positive" if change > 0.01 else "negative" if change < -0.01 else "flat"
    if template == "T2":
        return f"{quantile(given['returns'], 1 - given['level']):.8f}"
    if template == "T3":
        return f"{min(1, given['drawdown'] / abs(quantile(given['returns'], 0.01))):.8f}"
    if template == "T4":
        return shares(given["instruments"], least_variance(given))
    if template == "T5":  # as if no two moved together; without covariances all alike
        spread = [row[at] for at, row in enumerate(given.get("covariance", []))] or [1] * len(given["means"])
        pays = [max(mean - given["rf"], 0) / own for mean, own in zip(given["means"], spread, strict=True)]
        pays = pays if any(pays) else [1] * len(pays)
        return shares(given["instruments"], [one / sum(pays) for one in pays])
    if template == "T6":
        off = [now - wanted for now, wanted in zip(given["current"], given["target"], strict=True)]
        at = max(range(len(off)), key=lambda one: abs(off[one]))
        if abs(off[at]) <= given["threshold"]:
            return "no"
        return f"yes; {'sell' if off[at] > 0 else 'buy'} {abs(off[at]):.4f} of {given['instruments'][at]}"
    regime = "bull" if given["end"] > 105 else "bear" if given["end"] < 95 else "sideways"
    moves = ", ".join(f"{one['asset_class']}={'hold' if one['change'] > 0 else 'decrease'}" for one in given["moves"])
    return f"regime={regime}; {moves}"


def quantile(values, share):
    """Linear between order statistics."""
    ordered, at = sorted(values), share * (len(values) - 1)
    low = int(at)
    return ordered[low] + (at - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def least_variance(given):
    """The two weights of least variance with the required mean; without a covariance as if there were none."""
    (a, b), (one, two), joint = given["volatilities"], given["means"], given.get("covariance", 0)
    weight = min(max((b * b - joint) / (a * a + b * b - 2 * joint), 0), 1)
    if weight * one + (1 - weight) * two < given["floor"]:
        weight = min(max((given["floor"] - two) / (one - two), 0), 1)
    return [weight, 1 - weight]


def shares(names, weights):
    """Weights as the prompt asks for them."""
    return ", ".join(f"{name}={weight:.8f}" for name, weight in zip(names, weights, strict=True))
