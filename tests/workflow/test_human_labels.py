"""The draw of cycles for people to grade, and how it and the grades are stored."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from assaymark.engine import Ledger
from assaymark.errors import AssayError, InputError, LedgerError, PlanError
from assaymark.workflow.human_labels import (
    Draw,
    HumanGrade,
    draw_sample,
    recompute,
    store_draw,
    store_grades,
    stored_draw,
    stored_grades,
)
from assaymark.workflow.run_folder import RunFolder

AT = "2025-03-01T12:00:00Z"
CYCLES = {f"{cluster}/{k}": cluster for cluster, size in (("a", 3), ("b", 7), ("c", 5)) for k in range(size)}


def drawn(number: int = 6, seed: int = 1, **more: float) -> Draw:
    return draw_sample(CYCLES, number, seed=seed, agents_a_cycle=4, at=AT, **more)


def grade(trajectory: str = "a/0 north", at: str = "2025-03-02T09:00:00Z", **more: object) -> HumanGrade:
    known = {"trajectory": trajectory, "cycle": "a/0", "grader": "ab", "dimension": "risk", "score": 4.0, "at": at}
    return HumanGrade(**{**known, **more})  # type: ignore[arg-type]


def test_every_cycle_has_the_same_probability_and_every_cluster_its_share() -> None:
    draws = [drawn(seed=seed) for seed in range(3000)]
    times = Counter(name for one in draws for name in one.units)
    # 6 of 15: 0.4 with a standard error of 0.009
    assert all(abs(times[name] / 3000 - 0.4) < 0.036 for name in CYCLES)
    assert {round(one.pi[name], 12) for one in draws[:5] for name in CYCLES} == {0.4}
    shares = [Counter(CYCLES[name] for name in one.units) for one in draws]
    assert {(one["a"] in (1, 2), one["b"] in (2, 3), one["c"]) for one in shares} == {(True, True, 2)}
    firsts = Counter(one.units[0] for one in draws)
    assert all(abs(firsts[name] / 3000 - 1 / 15) < 0.02 for name in CYCLES)


def test_a_draw_is_recomputed_from_its_frame_and_seed() -> None:
    one = drawn()
    assert one.units == ("c/3", "b/3", "b/4", "c/2", "a/2", "b/5") == recompute(one)
    assert recompute(replace(one, seed=2)) != one.units
    assert drawn(15).units != tuple(sorted(CYCLES))
    assert sorted(drawn(15).units) == sorted(CYCLES)


@pytest.mark.parametrize(("number", "share", "twice"), [(15, 0.2, 5), (15, 0.5, 8), (3, 0.2, 3), (15, 0.0, 0)])
def test_enough_cycles_are_graded_twice(number: int, share: float, twice: int) -> None:
    one = drawn(number, twice=share)
    assert len(one.twice) == twice == len(set(one.twice) & set(one.units))


def test_what_cannot_be_drawn_is_said_at_once() -> None:
    with pytest.raises(InputError, match="3 problems") as caught:
        draw_sample(CYCLES, 16, seed=1, twice=1.5, agents_a_cycle=0, at=AT)
    assert "--sample: must be 1 to 15" in str(caught.value)


@pytest.mark.parametrize("ledger", [True, False])
def test_a_draw_and_grades_are_kept(tmp_path: Path, ledger: bool) -> None:
    folder = RunFolder(tmp_path)
    if ledger:
        Ledger.open(folder.ledger).close()
    assert stored_draw(folder) is None
    first = store_draw(folder, drawn())
    assert stored_draw(folder) == first == drawn()
    assert store_draw(folder, replace(drawn(), at="2025-03-05T12:00:00Z")).at == AT  # the same again
    other = store_draw(folder, drawn(seed=2))  # nothing was graded yet
    assert stored_draw(folder) == other != first
    given = [grade(score=None), grade(dimension="thesis", comment="odd", seconds=2.5)]
    assert store_grades(folder, given) == 2 == store_grades(folder, given)
    assert stored_grades(folder) == tuple(given)
    # the last by time counts, whatever the order in which they come
    assert store_grades(folder, [grade(score=2.0, at="2025-03-01T23:00:00+01:00"), grade("b/1 north")]) == 3
    assert stored_grades(folder)[0].score is None
    assert store_grades(folder, [grade(score=2.0, at="2025-03-02T12:00:00+02:00")]) == 3
    assert stored_grades(folder)[0].score == 2.0
    assert store_draw(folder, drawn(seed=2)) == other
    with pytest.raises(PlanError, match="a second draw would choose among labels"):
        store_draw(folder, drawn())
    with pytest.raises(InputError, match="a time with its zone"):
        store_grades(folder, [grade(at="2025-03-02 09:00")])


def test_an_edited_draw_is_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    store_draw(folder, drawn())
    path = tmp_path / "draw.json"
    path.write_text(path.read_text().replace("b/3", "b/0"))
    with pytest.raises(LedgerError, match="damaged or was edited"):
        stored_draw(folder)
    path.write_text("[]")
    with pytest.raises(AssayError, match="damaged or was edited"):
        stored_draw(folder)
    with pytest.raises(InputError, match="no such run folder"):
        store_draw(RunFolder(tmp_path / "gone"), drawn())
