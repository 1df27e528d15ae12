"""Limits that a study sets for its judges, against their datasheets."""

from __future__ import annotations

import pytest

from assaymark.errors import InputError
from assaymark.metrology.datasheet import Datasheet, limit_measurements
from assaymark.protocol import parse_study
from assaymark.records import Measurement


def study(limits: str):
    return parse_study(f"""
name = "s"
seed = 1
judges = [{{name = "j", model = "m/j", family = "f"}}, {{name = "p", model = "human/table", family = "human"}}]
[datasheets]
{limits}
""")


def sheet(**values: float | None) -> Datasheet:
    names = {
        "dark_current": ("dark_current", {"prompt": "tie-allowed"}),
        "positional": ("delta0.positional", {"prompt": "tie-allowed", "condition": "same_subset"}),
        "threshold": ("threshold", {"prompt": "tie-allowed"}),
        "vacuum_score": ("point.vacuum_score", {"dimension": "aggregate"}),
        "slope": ("point.slope", {"dimension": "aggregate"}),
        "verbosity": ("point.verbosity", {"dimension": "aggregate"}),
    }
    found = tuple(
        Measurement(
            name=names[name][0], labels={"judge": "j", **names[name][1]}, value=value, n=10, n_of="calls", method="",
            state="ok" if value is not None else "undefined: no calls",
            detail={"censored": "right", "text": "> 5"} if name == "threshold" and value == 5.0 else {},
        )
        for name, value in values.items()
    )  # fmt: skip
    return Datasheet(judge="j", measurements=found, sketch=(), calls={}, tasks=1, source="run", model="m/j")


def gate(limits: str, one: Datasheet | None):
    (found,) = limit_measurements({} if one is None else {"j": one}, study(limits))
    return found


@pytest.mark.parametrize(
    ("limits", "values", "failed"),
    [
        ("dark_current = 0.05", {"dark_current": 0.05}, []),
        ("dark_current = 0.05", {"dark_current": 0.06}, ["dark_current 0.06, at most 0.05"]),
        ("slope = 0.2", {"slope": 0.2}, []),
        ("slope = 0.2", {"slope": 0.1}, ["slope 0.10, at least 0.2"]),
        ("verbosity = 0.15", {"verbosity": -0.15}, []),
        ("verbosity = 0", {"verbosity": 0.0}, []),
        ("verbosity = 0.15", {"verbosity": 0.27}, ["verbosity 0.27 points per 100 words, at most 0.15"]),
        ("verbosity = 0.15", {"verbosity": -0.27}, []),
        ("verbosity = 0.15", {"slope": 0.3}, ["verbosity not measured, at most 0.15"]),
        ("threshold = 5", {"threshold": 4.0}, []),
        ("threshold = 5", {"threshold": 5.0}, ["threshold > 5, at most 5"]),
        ("vacuum_score = 2", {"vacuum_score": None}, ["vacuum_score undefined: no calls, at most 2"]),
        ("positional = 0.1\nslope = 0.2", {"slope": 0.5}, ["positional not measured, at most 0.1"]),
    ],
)
def test_each_limit_is_held_against_its_own_measurement(limits, values, failed):
    found = gate(limits, sheet(**values))
    assert found.detail["failed"] == failed
    assert found.value == len(failed)


def test_a_judge_without_a_datasheet_or_with_one_of_another_model_has_a_state():
    assert gate("slope = 0.1", None).state == "not measured: no datasheet of this judge"
    other = sheet(slope=1.0)
    other = Datasheet(**{**{f: getattr(other, f) for f in other.__dataclass_fields__}, "model": "m/other"})
    assert gate("slope = 0.1", other).state == "not measured: of another model"


def test_people_have_no_datasheet_and_no_plan_asks_for_nothing():
    assert [m.labels["judge"] for m in limit_measurements({}, study("slope = 0.1"))] == ["j"]
    with pytest.raises(InputError, match="demanded without a limit"):
        study('on_failure = "no-claim"')
    with pytest.raises(InputError, match=r"verbosity.*0"):
        study("verbosity = -0.1")
