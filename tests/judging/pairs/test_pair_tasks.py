"""Task files: what is read, and that everything wrong with one is said at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from assaymark.errors import InputError
from assaymark.judging.pairs import finance_tasks, load_tasks, marks, repeated_tasks
from assaymark.judging.pairs.stimuli import with_other_unit, with_synonym, with_typo
from assaymark.judging.pairs.tasks import (
    BEFORE_CLOSERS,
    CLOSERS,
    FILLERS,
    FIXED_SENTENCES,
    closing,
    has_value,
    names,
    sentences,
    task_problems,
)

THINGS = ("stop", "cash", "horizon", "size", "carry")


@dataclass
class Written:
    """One requirement as it stands in a file."""

    name: str
    met: list[str]
    partly: str
    neutral: str

    def toml(self) -> str:
        fields = f'name = "{self.name}"\nmust = "States it."\nmet = {self.met}\n'
        return f"[[task.requirement]]\n{fields}partly = {self.partly!r}\nneutral = {self.neutral!r}\n"


def requirement(name: str) -> Written:
    return Written(
        name,
        [f"The {name} was put at 12 by us.", f"We have put the {name} at 12."],
        f"The {name} was put somewhere by us.",
        f"Nothing is said of the {len(name)}{name[::-1]} here.",
    )


def task(*changes: Callable[[list[Written]], object], name: str = "one") -> str:
    """A task file with five requirements, each changed as asked."""
    found = [requirement(thing) for thing in THINGS]
    for change in changes:
        change(found)
    return f'[[task]]\nname = "{name}"\nquestion = "What now?"\n' + "".join(one.toml() for one in found)


def problems(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_tasks(text, "mine.toml")
    assert caught.value.source == "mine.toml"
    return [str(problem) for problem in caught.value.problems]


def test_a_task_of_ones_own():
    (found,) = load_tasks(task())
    assert found.names == THINGS
    assert found.requirements[0].met[1] == "We have put the stop at 12."


def test_the_shipped_tasks_are_ten_different_situations():
    found = finance_tasks()
    assert len(found) == len({one.question for one in found}) == 10
    assert all(len(one.requirements) == 5 for one in found)
    wordings = [text for one in found for r in one.requirements for text in (*r.met, r.partly, r.neutral)]
    assert len(set(wordings)) == len(wordings)


def test_every_shipped_sentence_does_what_its_field_says():
    for one in finance_tasks():
        for at, item in enumerate(one.requirements):
            expected = [0.0] * 5
            assert marks(item.neutral, one.names) == tuple(expected)
            expected[at] = 0.5
            assert marks(item.partly, one.names) == tuple(expected)
            expected[at] = 1.0
            assert all(marks(wording, one.names) == tuple(expected) for wording in item.met)


def change(at: int, field: str, value: object) -> Callable[[list[Written]], object]:
    return lambda found: setattr(found[at], field, value)


@pytest.mark.parametrize(
    ("changed", "where", "what"),
    [
        (change(0, "partly", "The stop was put at 12 by us."), "stop", "must hold no value"),
        (change(0, "met", ["The stop was put there by us.", "We put the stop at 12."]), "stop", "must hold a value"),
        (change(1, "met", ["It was put at 12 by us.", "We put the cash at 12."]), "cash", "must name 'cash'"),
        (change(1, "neutral", "Nothing is said of the cash here."), "cash", "must not name 'cash'"),
        (change(2, "partly", "The horizon and the size were put."), "horizon", "another requirement, 'size'"),
        (change(2, "partly", "The horizon. It was put somewhere."), "horizon", "one sentence with a stop"),
        (change(3, "partly", "The size was put somewhere by us"), "size", "one sentence with a stop"),
        (change(3, "neutral", "No."), "size", "0.6 to 1.6 times"),
        (change(4, "met", ["We have put the carry at 12."]), "carry", "two or more wordings"),
        (change(4, "met", ["We have put the carry at 12."] * 2), "carry", "two or more wordings"),
        (change(4, "met", []), "carry", "all different (got 0, 0"),
        (change(4, "neutral", "Nothing is said of the 4pots here."), "", "share a neutral sentence"),
        (change(1, "name", "stop"), "", "two requirements are called 'stop'"),
        (change(1, "name", "stop loss"), "", "also names 'stop'"),
        (change(1, "name", "care"), "", "lengthen a text"),
        (list.pop, "", "at least 5 requirements are needed (got 4)"),
    ],
)
def test_what_a_sentence_does_not_do_is_named(changed, where, what):
    found = problems(task(changed))
    place = f"task one, {where}" if where else "task one"
    assert any(one.startswith(f"{place}: ") and what in one for one in found), found


def test_all_problems_come_at_once():
    found = problems(
        task(change(0, "partly", "No name here at all."), change(1, "neutral", "The cash is short.")) + task()
    )
    assert {one.partition(":")[0] for one in found} >= {"task one", "task one, stop", "task one, cash"}
    assert sum("another task has this name" in one for one in found) == 1


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "task: is missing"),
        ("task = []", "task: at least one is needed (got 0)"),
        ("[[task]]\nname = 3", "task.0.name"),
        ("[[task", "not TOML"),
        (task().replace("question", "answer"), "task.0.answer: unknown key"),
        (task().replace('"What now?"', '""'), "task.0.question"),
        (task(change(0, "name", "The Stop")), "task.0.requirement.0.name"),
        (task().replace('"States it."', '"a\\tb"'), "task.0.requirement.0.must"),
        (task(name="a b"), "task.0.name"),
    ],
)
def test_a_file_of_another_form_is_refused(text, what):
    assert any(one.removeprefix(": ").startswith(what) for one in problems(text)), problems(text)


# --- the rule ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The stop is 12.", 1.0),
        ("- **Stop**: 12", 1.0),
        ("The STOP is near.", 0.5),
        ("The stop is near. The price is 12.", 0.5),
        ("The stop is near.\n12", 0.5),
        ('The stop is "when it rains".', 1.0),
        ("The stop is “when it rains”.", 1.0),
        ("We stopped at 12.", 0.0),
        ("A non-stop flight at 12.", 1.0),
        ("12", 0.0),
        ("", 0.0),
        (" \n\t", 0.0),
        ("The stop is near. The stop is 8.5!", 1.0),
    ],
)
def test_what_counts_as_met(text, expected):
    assert marks(text, ("stop",)) == (expected,)


def test_a_decimal_point_ends_no_sentence():
    assert sentences("Stop at 8.5 now. Next!") == ["Stop at 8.5 now.", "Next!"]
    assert has_value("a 1")
    assert not names("stopgap", "stop")


# --- words that meet nothing ------------------------------------------------------------------------------------------


def test_an_ending_has_exactly_the_length_that_was_asked_for():
    for length in range(200):
        assert len(closing(length).split()) == length
    assert closing(-3) == ""
    assert all(len(sentence.split()) == length for length, sentence in CLOSERS.items())
    assert all(len(sentence.split()) == 8 for sentence in BEFORE_CLOSERS)


def test_fixed_sentences_say_nothing_that_could_be_a_value():
    assert not any(map(has_value, FIXED_SENTENCES))
    assert len(set(FILLERS)) == len(FILLERS)


@pytest.mark.parametrize(
    ("change", "text", "expected"),
    [
        (with_typo, "The momentum is strong enough.", "The momentum is stornger enough."),
        (with_typo, "Up by 3 bps.", None),
        (with_other_unit, "At 4% it is fine, at 5% too.", "At 4 percent it is fine, at 5% too."),
        (with_other_unit, "At 4 percent.", "At 4 %."),
        (with_other_unit, "At 9 bps.", "At 9 bp."),
        (with_other_unit, "At $1,200.50 each.", "At 1,200.50 dollars each."),
        (with_other_unit, "At 4 tonnes.", None),
        (with_synonym, "It is large.", "It is big."),
        (with_synonym, "It is long.", None),
    ],
)
def test_changes_that_leave_the_content(change, text, expected):
    found = change(text, ["momentum"])
    if change is with_typo and expected is not None:
        assert found is not None
        assert found != text
        assert sorted(found) == sorted(text)
        assert "momentum" in found
    else:
        assert found == expected


def test_no_change_touches_the_name_of_a_requirement():
    assert with_typo("The discount stays.", ["discount"]) is None
    assert with_synonym("The large sum.", ["large sum"]) is None


# --- many tasks -------------------------------------------------------------------------------------------------------


def test_repeated_tasks_are_tasks_with_other_numbers(tasks):
    found = repeated_tasks(tasks, 35)
    assert len({one.name for one in found}) == 35
    assert task_problems(found) == []
    first, later = found[0].requirements[0].met[0], found[30].requirements[0].met[0]
    assert first != later
    assert re.sub(r"\d", "#", first) == re.sub(r"\d", "#", later)
