"""Every vector that was computed elsewhere, every field: the rule for orders, and judge bias."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assaymark import metrology

FOLDER = Path(os.environ.get("ASSAYMARK_SHARED") or Path(__file__).resolve().parents[3] / "shared") / "spec" / "vectors"
ORDERS = {
    "analyse": "order_analysis", "attainable": "attainable_equalities", "mde": "minimum_detectable_gap",
    "serial": "serial_contrasts", "stability": "stability_state",
}  # fmt: skip
# Building blocks of the bias vectors are given by position, and some of them are not public by themselves.
BLOCKS = {
    "cluster_t": lambda d, c: metrology.cluster_mean(np.array(d, dtype=float), np.unique(c, return_inverse=True)[1]),
    "weighted_kappa": metrology.kappa_of_records, "wilson": metrology.wilson, "holm": metrology.holm,
}  # fmt: skip


def vectors() -> Iterator[Any]:
    for name in ("orders", "bias"):
        file = FOLDER / f"{name}.json"
        if not file.is_file():
            reason = f"needs vectors: no {file} (set ASSAYMARK_SHARED to a folder that has it)"
            yield pytest.param(name, {}, marks=pytest.mark.skip(reason=reason), id=name)
        for vector in json.loads(file.read_text(encoding="utf-8")) if file.is_file() else ():
            about = vector.get("id") or f"{vector['kind']}: {vector['name']}"
            yield pytest.param(name, vector, id=f"{name}: {about}")


@pytest.mark.shared
@pytest.mark.parametrize(("kind", "vector"), [*vectors()])
def test_every_field_is_as_computed_elsewhere(kind, vector):
    given = vector["input"]
    if kind == "orders":
        found = getattr(metrology, ORDERS.get(vector["kind"], vector["kind"]))(**given)
    elif block := BLOCKS.get(vector["function"]):
        found = block(*given.values())
    else:
        found = getattr(metrology, vector["function"])(**given)
    assert [*differences(found, vector["expected"], "result", kind == "orders")] == []


def differences(found: Any, expected: Any, place: str, exact: bool) -> Iterator[str]:
    """List the differences of a result: numbers beyond 1e-9, relative above 1 (or 1e-8); states up to a colon."""
    same = found is expected
    if isinstance(expected, Mapping):
        for key, value in expected.items():
            yield from differences(field(found, key), value, f"{place}.{key}", exact)
        return
    if isinstance(expected, list):
        same = len(found) == len(expected)
        for k, (one, value) in enumerate(zip(found, expected, strict=False)):
            yield from differences(one, value, f"{place}[{k}]", exact)
    elif exact and (expected is None or (isinstance(expected, str) and expected != "inf")):
        same = found == expected
    elif exact:
        same = math.isclose(found, float(expected), rel_tol=1e-9, abs_tol=1e-9)
    elif isinstance(expected, str):
        same = str(found).partition(":")[0] == expected.partition(":")[0]
    elif expected is not None and not isinstance(expected, bool):
        same = isinstance(found, int | float) and math.isclose(found, expected, rel_tol=0, abs_tol=1e-8)
    if not same:
        yield f"{place}: {found!r} is not {expected!r}"


def field(record: Any, name: str) -> Any:
    """A field of a record, or an entry of a dict whose keys are names, numbers or pairs."""
    if not isinstance(record, Mapping):
        return getattr(record, name)
    numbers = tuple(int(part) for part in name.split("-") if part.isdigit())
    return next(record[key] for key in (name, numbers, numbers[0] if numbers else name) if key in record)
