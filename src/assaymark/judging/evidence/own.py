"""What a decision itself puts forward: weights, confidence, forecasts, and whom each of its texts is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assaymark.judging.books import book_of
from assaymark.judging.evidence.material import OwnNumbers
from assaymark.records import JSON, Action, Context, Decision

_ID_KEYS = ("instrument", "option_id", "id", "symbol", "asset")
_DEEPEST = 12
_ACTION_UNITS = {
    "weight": "ratio",
    "confidence": "ratio",
    "expected_return": "ratio",
    "quantity": "count",
    "price": "price",
    "leverage": "multiple",
    "stop": "price",
    "target": "price",
}

Entry = tuple[str, str, float, str]


def own_numbers(decision: Decision, context: Context | None = None) -> OwnNumbers:
    """Every number of a decision's actions, stages and confidence, under the name it is stored by.

    Orders also put forward the book that they lead to: with ``context``, the weights, values, cash, exposure and
    leverage after them are the decision's own, as target weights are (`portfolio.orders.settle`). So are the units that
    were held.
    """
    entries: list[Entry] = []
    if decision.confidence is not None:
        entries.append(("", "confidence probability", decision.confidence, "ratio"))
    for action in decision.actions:
        entries += _of_action(action)
    for name in sorted(decision.stages):
        entries += _walk(decision.stages[name], name, "", 0)
    if context is not None:
        entries += _of_book(decision, context)
        held = {} if context.portfolio is None else context.portfolio.positions
        entries += [(name, "units held before", units, "count") for name, units in held.items()]
    return OwnNumbers.of(dict.fromkeys(entries))


def _of_book(decision: Decision, context: Context) -> Iterator[Entry]:
    """The arithmetic of the book after a decision's orders; nothing where it cannot be worked out."""
    book = book_of(context, decision.actions)
    if book is None or book.after is None or book.after.equity <= 0:
        return
    after = book.after
    for name, weight in after.weights.items():
        yield name, "weight allocation position share", weight, "ratio"
        yield name, "value", weight * after.equity, "usd"
    yield "", "exposure over equity", after.leverage, "ratio"
    yield "", "leverage", after.leverage, "multiple"
    yield "", "cash share of equity", after.residual / after.equity, "ratio"
    for name, amount in (
        ("cash before", after.cash),
        ("cost of the orders", after.cost),
        ("cash residual", after.residual),
        ("fees", after.fees),
        ("exposure", after.exposure),
        ("equity", after.equity),
    ):
        yield "", name, amount, "usd"


def owners_of(decision: Decision) -> dict[str, str]:
    """The texts that are the reason of exactly one instrument's action, with that instrument."""
    found: dict[str, set[str]] = {}
    for action in decision.actions:
        if action.rationale:
            found.setdefault(action.rationale.strip(), set()).add(action.instrument)
    return {text: next(iter(owners)) for text, owners in found.items() if len(owners) == 1}


def _of_action(action: Action) -> Iterator[Entry]:
    for name, unit in _ACTION_UNITS.items():
        value = getattr(action, name)
        if value is not None:
            label = "weight allocation" if name == "weight" else name
            yield action.instrument, label, float(value), unit


def _walk(value: JSON, path: str, subject: str, depth: int, *, percent: bool = False) -> Iterator[Entry]:
    """The numbers in a structured part; keys that name instruments, or an id beside them, say whose they are.

    ``percent`` holds below a part some of whose keys say so: holdings listed by instrument beside a ``portfolio_pct``
    are in percent too, and have no key of their own to say it.
    """
    if depth > _DEEPEST or isinstance(value, (str, bool)) or value is None:
        return
    if isinstance(value, (int, float)):
        yield subject, path, float(value), "percent" if percent else _unit_of(path)
    elif isinstance(value, Mapping):
        named = next((value[key] for key in _ID_KEYS if isinstance(value.get(key), str)), subject)
        says = any(key.endswith("_pct") for key in value)
        for key in sorted(value):
            own = value[key]
            leaf = isinstance(own, (int, float))
            if leaf and path.rsplit(".", 1)[-1] in ("holdings", "weights"):
                yield from _walk(own, path, key, depth + 1, percent=percent)
            else:
                whose = named or ("" if leaf else key)
                yield from _walk(own, f"{path}.{key}", whose, depth + 1, percent=says and not leaf)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _walk(item, path, subject, depth + 1, percent=percent)


def _unit_of(path: str) -> str:
    """The unit that a key's last word names."""
    key = path.rsplit(".", 1)[-1].lower()
    if key.endswith(("pct", "percent")) or "pct" in path:
        return "percent"
    if key.endswith("bps"):
        return "bps"
    return "ratio" if key in ("weight", "confidence") or key.startswith("p_") else "count"
