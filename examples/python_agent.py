"""An agent that is a function: python/python_agent:decide, with this folder on PYTHONPATH."""


def decide(context):
    """Close the position with the worst hour, if it fell; `context` is an assaymark.records.Context."""
    hours = {fact.instrument: fact.value for fact in context.facts if fact.field == "return_60m"}
    held = [name for name, units in context.portfolio.positions.items() if units > 0 and hours.get(name, 0) < 0]
    if not held:
        return {"orders": [], "rationale": "No position fell over the hour, so nothing is changed."}
    worst = min(held, key=hours.__getitem__)
    why = f"{worst} fell most over the hour, {hours[worst]:.2%}; the position is closed."
    return {"orders": [{"instrument": worst, "side": "close"}], "rationale": why}
