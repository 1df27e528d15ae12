"""An agent that is a function: python/python_agent:decide, with this folder on PYTHONPATH.

`context` is an assaymark.records.Context. A study and a season send one with a portfolio; what the benchmark asks is in
the prompt.
"""

import re

STAGES = {"TASK S1": "views", "TASK S2": "signals", "TASK S3": "weights"}


def decide(context):
    """Close the position with the worst hour (in a season: days), if it fell."""
    stage = next((key for task, key in STAGES.items() if task in context.prompt), "")
    if stage:
        return without_view(stage, context.prompt)
    if context.portfolio is None:
        return {"answer": neutral(context.prompt)}
    hours = {fact.instrument: fact.value for fact in context.facts if fact.field == "return_60m"}
    days = {one.instrument: one.close[-1] / one.close[0] - 1 for one in context.series}
    gains, span = (hours, "hour") if hours else (days, "days")
    held = [name for name, units in context.portfolio.positions.items() if units > 0 and gains.get(name, 0) < 0]
    if not held:
        return {"orders": [], "rationale": f"No position fell over the {span}, so nothing is changed."}
    worst = min(held, key=gains.__getitem__)
    why = f"{worst} fell most over the {span}, {gains[worst]:.2%}; the position is closed."
    return {"orders": [{"instrument": worst, "side": "close"}], "rationale": why}


def neutral(prompt):
    """An answer without a view to a question of the benchmark, in the form that the last line of its prompt gives."""
    form = prompt.rpartition("ANSWER:")[2].strip()
    if form.startswith("no,"):  # no, or: yes; <buy or sell> ...
        return "no"
    if "<" not in form:  # positive, negative or flat
        return form.split()[-1]
    shares = f"{1 / max(form.count('<weight>'), 1):.6f}"
    for name, value in (("number", "0"), ("weight", shares), ("regime", "sideways"), ("change", "hold")):
        form = form.replace(f"<{name}>", value)
    return form


def without_view(wanted, prompt):
    """Views, signals or weights without a view, for each ticker in the tables of a stage of the benchmark."""
    names = sorted(set(re.findall(r"^([A-Z][A-Z0-9.=^-]*)\t", prompt, re.M)))
    value = {"views": 0, "signals": "hold", "weights": round(1 / len(names), 6)}[wanted]
    return {wanted: [{"ticker": name, wanted[:-1]: value} for name in names], "rationale": "No view: all alike."}
