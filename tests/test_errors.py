from __future__ import annotations

import pytest

from assaymark.errors import AssayError, InputError, LedgerError, ModelError, PlanError, Problem, UnknownNameError


def test_one_problem_is_one_line():
    assert str(InputError("a.csv", [Problem("line 3", "is empty")])) == "a.csv: line 3: is empty"


def test_all_problems_of_a_file_are_listed():
    error = InputError("a.csv", [Problem("line 3", "is empty"), "has no header"])
    assert str(error).splitlines() == ["a.csv: 2 problems", "  line 3: is empty", "  has no header"]
    assert error.problems[1] == Problem("", "has no header")


def test_of_very_many_problems_the_first_are_listed_and_the_rest_counted():
    error = InputError("fr.toml", [Problem(f"key {n}", "is missing") for n in range(1137)])
    first, *lines = str(error).splitlines()
    assert first == "fr.toml: 1137 problems"
    assert lines == [*(f"  key {n}: is missing" for n in range(20)), "  and 1117 more"]
    assert len(error.problems) == 1137
    assert len(str(InputError("fr.toml", ["is missing"] * 20)).splitlines()) == 21


def test_problems_that_nobody_kept_are_counted():
    assert str(InputError("log.csv", ["is empty"], more=2)).splitlines() == [
        "log.csv: 3 problems", "  is empty", "  and 2 more",
    ]  # fmt: skip


def test_a_wrong_name_is_answered_with_the_right_one():
    assert "Did you mean 'reference/auditor'?" in str(
        UnknownNameError("model", "reference/audtor", ["reference/auditor", "reference/reader"])
    )
    assert "Did you mean" not in str(UnknownNameError("model", "zzz", ["reference/auditor"]))
    assert str(UnknownNameError("model", "zzz", [])).endswith("Known: none")


@pytest.mark.parametrize("kind", [InputError, PlanError, UnknownNameError, LedgerError, ModelError])
def test_everything_raised_on_purpose_has_one_base(kind):
    assert issubclass(kind, AssayError)
