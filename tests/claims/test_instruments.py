"""What a plan that demands datasheets does to the claims of a panel."""

from __future__ import annotations

import pytest
from analysis import kappa, measured, panel

from assaymark.claims import certificates, decide_claims, index, verify
from assaymark.protocol import parse_study
from assaymark.records import to_json

LEVELS = {"a": 4.5, "b": 3.9, "c": 3.2}


def study(on_failure: str = "qualified"):
    judges = "".join(f'[[judges]]\nname = "{j}"\nmodel = "m/{j}"\nfamily = "{j}"\n' for j in ("fa", "fb", "fc"))
    extra = f'[datasheets]\ndark_current = 0.05\non_failure = "{on_failure}"\n' if on_failure else ""
    return parse_study(f'name = "s"\nseed = 1\n{judges}{extra}[claims]\ndimensions = ["aggregate"]\n')


def controls():
    gate = {"n_of": "trajectories", "method": "by hand"}
    passed = {"p": 1e-4, "p_holm": 2e-4, "outcome": "passed", "cluster_sums": {}, "primary": "panel"}
    substance = {**passed, "outcome": "substance", "p": 0.4, "p_holm": 0.4}
    found = []
    for cell, value, detail in (("cell_a", -2.0, passed), ("cell_b", -0.05, substance)):
        found.append(measured("cell.gate", {"cell": cell}, value, detail=detail, **gate))
        found.append(measured("cell.halo", {"cell": cell}, 0.0, detail={"family": None, "triggered": False}, **gate))
        found.append(measured("cell.kappa", {"cell": cell, "dimension": "aggregate"}, 0.8, **gate))
    return found


def gates(**failed: list[str] | None):
    return [
        measured(
            "datasheet.gate", {"judge": judge}, None if names is None else float(len(names)),
            state="not measured: no datasheet of this judge" if names is None else "ok",
            n_of="limits", detail={"failed": names or []},
        )
        for judge, names in failed.items()
    ]  # fmt: skip


def first(plan, found):
    return next(v for v in decide_claims(found, plan, "0" * 64) if v.claim.id.startswith("first[agent=a"))


BASE = [kappa(0.8), *panel(LEVELS), *controls()]
BAD = ["dark_current 0.40, at most 0.05"]


def test_a_panel_whose_judges_keep_their_limits_loses_nothing():
    verdict = first(study(), [*BASE, *gates(fa=[], fb=[], fc=[])])
    assert verdict.publication_level == "headline"
    assert "Every judge keeps the limits of its datasheet." in verdict.reasons


@pytest.mark.parametrize("failing", [BAD, None])
@pytest.mark.parametrize(("on_failure", "level"), [("qualified", "qualified"), ("no-claim", "no-claim")])
def test_a_judge_that_fails_or_shows_none_takes_claims_down_as_the_plan_says(failing, on_failure, level):
    verdict = first(study(on_failure), [*BASE, *gates(fa=[], fb=failing, fc=[])])
    assert verdict.publication_level == level
    assert "datasheets" in verdict.binding
    assert any("Judged as an instrument, fb fails the limits" in reason for reason in verdict.reasons)
    if level == "qualified":
        assert "Not every judge keeps the limits that the plan sets for them: fb." in verdict.condition


def test_the_plan_decides_whether_datasheets_matter():
    assert first(study(""), [*BASE, *gates(fa=BAD, fb=BAD, fc=BAD)]).publication_level == "headline"


def test_a_certificate_holds_the_gates_and_a_changed_one_is_found():
    plan, found = study("no-claim"), [*BASE, *gates(fa=[], fb=BAD, fc=[])]
    verdict = first(plan, found)
    (made,) = certificates([verdict], index(found), plan)
    stated = to_json(made)
    assert [entry["id"] for entry in stated["instruments"]] == [
        f"datasheet.gate[judge={j}]" for j in ("fa", "fb", "fc")
    ]
    stated["instruments"][1].update(value=0.0, failed=[])
    assert any("Every judge keeps the limits" in text for text in verify(stated).differences)
