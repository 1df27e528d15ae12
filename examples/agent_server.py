"""An agent behind an address, with the standard library only: python examples/agent_server.py [PORT].

It answers what a study, a season and the benchmark ask; the schema of the reply says which of them it is.
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def answer(request):
    """The answer to a request, in the form that its schema asks for."""
    context, wanted = request["context"], request["reply_schema"].get("required", ["orders"])
    if "orders" in wanted:
        return decide(context)
    if "answer" in wanted:
        return {"answer": neutral(context["prompt"])}
    return stage(wanted[0], context["prompt"])


def decide(context):
    """Buy the instrument with the best hour (in a season: days), as far as cash and limits allow, and say why."""
    prices = {fact["instrument"]: fact["value"] for fact in context["facts"] if fact["field"] == "price"}
    hours = {fact["instrument"]: fact["value"] for fact in context["facts"] if fact["field"] == "return_60m"}
    days = {one["instrument"]: one["close"][-1] / one["close"][0] - 1 for one in context["series"]}
    gains, span = (hours, "hour") if hours else (days, "days")
    limits = {rule["kind"]: rule["limit"] for rule in context["constraints"]}
    cash, nav, held = (context["portfolio"][name] for name in ("cash", "nav", "positions"))
    best = max((item["id"] for item in context["instruments"]), key=gains.__getitem__)
    price, gain = prices[best], gains[best]
    exposure = sum(abs(units) * prices[name] for name, units in held.items())
    room = min(
        cash - limits["min_cash"] * nav,
        limits.get("max_weight", 1) * nav - held.get(best, 0) * price,
        limits["max_leverage"] * nav - exposure,
    )
    units = round(0.9 * room / price, 4)  # the tenth pays the fee
    if "whole_units" in limits:
        units -= units % limits["whole_units"]
    why = f"{best} has the best {span}, {gain:+.2%}; the limits leave room for {max(room, 0):,.2f}."
    if gain <= 0 or units <= 0:
        return {"orders": [], "rationale": f"{why} Nothing is bought."}
    order = {"instrument": best, "side": "buy", "quantity": units}
    return {"orders": [order], "rationale": f"{why} Bought {units} at {price:,.2f}.", "confidence": 0.6}


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


def stage(wanted, prompt):
    """Views, signals or weights without a view, for each ticker in the tables of a stage of the benchmark."""
    names = sorted(set(re.findall(r"^([A-Z][A-Z0-9.=^-]*)\t", prompt, re.M)))
    value = {"views": 0, "signals": "hold", "weights": round(1 / len(names), 6)}[wanted]
    return {wanted: [{"ticker": name, wanted[:-1]: value} for name in names], "rationale": "No view: all alike."}


class Desk(BaseHTTPRequestHandler):
    """Answers each POST with a decision."""

    def do_POST(self):
        """One context in, one decision out."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = json.dumps({**answer(request), "model": "best-hour-1"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        """Requests are not listed."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8700
    ThreadingHTTPServer(("127.0.0.1", port), Desk).serve_forever()
