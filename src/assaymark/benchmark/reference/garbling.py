"""Faults that a reply can have: what the parsers are shown by the model that cannot keep to a form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from assaymark.benchmark.reply_forms import FORMS, reply_text
from assaymark.benchmark.stages import Stage
from assaymark.engine.calls import Finish

Values = Mapping[str, float | str]
"""What is meant, by ticker."""

Fault = Callable[[Stage, Values], tuple[str, Finish]]
"""A reply with one fault."""


def _kept(stage: Stage, values: Values) -> tuple[str, Finish]:
    return reply_text(stage, values), "stop"


def _lines(_stage: Stage, values: Values) -> tuple[str, Finish]:
    return "Here you are:\n" + "\n".join(f"- **{name}**: {value}" for name, value in values.items()), "stop"


def _fenced(stage: Stage, values: Values) -> tuple[str, Finish]:
    return f"Let me think.\n```json\n{json.dumps(json.loads(reply_text(stage, values)), indent=2)}\n```", "stop"


def _missing(stage: Stage, values: Values) -> tuple[str, Finish]:
    return reply_text(stage, dict(list(values.items())[::2])), "stop"


def _extra(stage: Stage, values: Values) -> tuple[str, Finish]:
    return reply_text(stage, {**values, "ZZTOP": next(iter(values.values()))}), "stop"


def _out_of_range(stage: Stage, values: Values) -> tuple[str, Finish]:
    name = next(iter(values))
    return reply_text(stage, {**values, name: "maybe" if stage == "S2" else -1.7}), "stop"


def _no_number(stage: Stage, values: Values) -> tuple[str, Finish]:
    name = next(iter(values))
    return reply_text(stage, {**values, name: float("nan")}), "stop"


def _cut(stage: Stage, values: Values) -> tuple[str, Finish]:
    whole = reply_text(stage, values)
    return whole[: len(whole) * 2 // 3], "length"


def _refused(_stage: Stage, _values: Values) -> tuple[str, Finish]:
    return "I'm sorry, but I cannot give investment advice.", "stop"


def _prose(_stage: Stage, _values: Values) -> tuple[str, Finish]:
    return "On balance the outlook is mixed, and a balanced stance across all of these seems prudent.", "stop"


def _code(stage: Stage, _values: Values) -> tuple[str, Finish]:
    return f"```python\n{FORMS[stage][0]} = {{name: rule(name) for name in assets}}\n```", "stop"


FAULTS: Final[Mapping[str, Fault]] = MappingProxyType(
    {
        "none": _kept,
        "lines": _lines,
        "fence": _fenced,
        "missing": _missing,
        "extra": _extra,
        "out of range": _out_of_range,
        "no number": _no_number,
        "cut": _cut,
        "refusal": _refused,
        "prose": _prose,
        "code": _code,
    }
)
"""The faults by name; the first three are forms that are read all the same."""
