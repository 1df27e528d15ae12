"""Every conformance vector of judge bias: own family, length, dimensions, cells, judges as a sample, human graders."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import assaymark.metrology
from assaymark.metrology import cluster_mean, kappa_of_records
from assaymark.metrology.estimates import cluster_codes, scores_of

_FILE = (Path(os.environ.get("ASSAYMARK_SHARED",
    Path(__file__).resolve().parents[3] / "shared")) / "spec" / "vectors" / "bias.json")  # fmt: skip


def _vectors() -> list[Any]:
    if not _FILE.is_file():
        reason = f"needs the conformance vectors {_FILE.name} (set ASSAYMARK_SHARED to a folder that has them)"
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason))]
    return [pytest.param(vector, id=vector["id"]) for vector in json.loads(_FILE.read_text())]


# Building blocks are given by position, and some of them are not public by themselves.
_BLOCKS: dict[str, Callable[..., Any]] = {
    "cluster_t": lambda d, cluster: cluster_mean(scores_of("", "d", d, 1), cluster_codes("", cluster, len(d))),
    "weighted_kappa": kappa_of_records,
}


@pytest.mark.shared
@pytest.mark.parametrize("vector", _vectors())
def test_the_expected_fields_come_out(vector):
    name = vector["function"]
    if name in _BLOCKS or name in ("wilson", "holm"):
        found = _BLOCKS.get(name, getattr(assaymark.metrology, name))(*vector["input"].values())
    else:
        found = getattr(assaymark.metrology, name)(**vector["input"])
    assert list(_differences(found, vector["expected"], name)) == []


def _differences(found: Any, expected: Any, where: str):
    """Where a result is not what is expected: numbers to 1e-8, states up to their colon."""
    if isinstance(expected, Mapping):
        for name, value in expected.items():
            yield from _differences(_field(found, name), value, f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for place, value in enumerate(expected):
            yield from _differences(found[place], value, f"{where}[{place}]")
    elif isinstance(expected, bool) or expected is None:
        if found is not expected:
            yield where, found, expected
    elif isinstance(expected, str):
        if str(found).partition(":")[0] != expected.partition(":")[0]:
            yield where, found, expected
    elif not isinstance(found, int | float) or not math.isclose(found, expected, rel_tol=0, abs_tol=1e-8):
        yield where, found, expected


def _field(record: Any, name: str) -> Any:
    """A field of a record, or an entry of a dict whose keys are names, numbers or pairs."""
    if not isinstance(record, Mapping):
        return getattr(record, name)
    numbers = tuple(int(part) for part in name.split("-") if part.isdigit())
    keys = (name, numbers, numbers[0] if numbers else name)
    return next(record[key] for key in keys if key in record)
