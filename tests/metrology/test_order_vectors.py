"""The rule for orders against numbers computed elsewhere: every vector, every field."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from assaymark.metrology import (
    attainable_equalities,
    cluster_differences,
    minimum_detectable_gap,
    order_analysis,
    panel_scores,
    serial_contrasts,
    shaffer,
    shaffer_pooled,
    stability_state,
    trigamma_inverse,
)

FOLDER = Path(os.environ.get("ASSAYMARK_SHARED") or Path(__file__).resolve().parents[3] / "shared")
FILE = FOLDER / "spec" / "vectors" / "orders.json"
VECTORS: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else []
KINDS = {
    "analyse": order_analysis, "attainable": attainable_equalities, "cluster_differences": cluster_differences,
    "mde": minimum_detectable_gap, "panel_scores": panel_scores, "serial": serial_contrasts, "shaffer": shaffer,
    "shaffer_pooled": shaffer_pooled, "stability": stability_state, "trigamma_inverse": trigamma_inverse,
}  # fmt: skip

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not VECTORS, reason=f"needs vectors: no {FILE} (set ASSAYMARK_SHARED to a folder that has it)"),
]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['kind']}: {vector['name']}")
def test_every_field_is_as_computed_elsewhere(vector):
    found = KINDS[vector["kind"]](**vector["input"])
    assert [*differences(found, vector["expected"], "result")] == []


def differences(found: Any, expected: Any, place: str):
    """Where a result differs: numbers by more than 1e-9, relative above 1."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            yield from differences(field(found, key), value, f"{place}.{key}")
    elif isinstance(expected, list):
        if len(found) != len(expected):
            yield f"{place}: {found} is not {expected}"
        for k, (one, value) in enumerate(zip(found, expected, strict=False)):
            yield from differences(one, value, f"{place}[{k}]")
    elif expected is None or (isinstance(expected, str) and expected != "inf"):
        if found != expected:
            yield f"{place}: {found!r} is not {expected!r}"
    elif not math.isclose(found, float(expected), rel_tol=1e-9, abs_tol=1e-9):
        yield f"{place}: {found!r} is not {expected!r}"


def field(found: Any, key: str) -> Any:
    if dataclasses.is_dataclass(found):
        return getattr(found, key)
    return found[key] if key in found else found[tuple(map(int, key.split("-")))]
