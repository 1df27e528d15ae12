"""An agent behind an address, with the standard library only: python examples/agent_server.py [PORT]."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def decide(context):
    """Buy the instrument with the best hour, as far as cash and limits allow, and say why."""
    facts = {(fact["instrument"], fact["field"]): fact["value"] for fact in context["facts"]}
    limits = {rule["kind"]: rule["limit"] for rule in context["constraints"]}
    cash, nav, held = (context["portfolio"][name] for name in ("cash", "nav", "positions"))
    best = max((item["id"] for item in context["instruments"]), key=lambda name: facts[name, "return_60m"])
    price, gain = facts[best, "price"], facts[best, "return_60m"]
    exposure = sum(abs(units) * facts[name, "price"] for name, units in held.items())
    room = min(
        cash - limits["min_cash"] * nav,
        limits["max_weight"] * nav - held.get(best, 0) * price,
        limits["max_leverage"] * nav - exposure,
    )
    units = round(0.9 * room / price, 4)  # the tenth pays the fee
    why = f"{best} has the best hour, {gain:+.2%}; the limits leave room for {max(room, 0):,.2f}."
    if gain <= 0 or units <= 0:
        return {"orders": [], "rationale": f"{why} Nothing is bought."}
    order = {"instrument": best, "side": "buy", "quantity": units}
    return {"orders": [order], "rationale": f"{why} Bought {units} at {price:,.2f}.", "confidence": 0.6}


class Desk(BaseHTTPRequestHandler):
    """Answers each POST with a decision."""

    def do_POST(self):
        """One context in, one decision out."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps({**decide(request["context"]), "model": "best-hour-1"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8700
    ThreadingHTTPServer(("127.0.0.1", port), Desk).serve_forever()
