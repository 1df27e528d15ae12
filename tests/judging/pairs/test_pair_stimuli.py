"""Stimuli: tasks, pairs whose difference is known, and the same texts one at a time."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from assaymark.errors import InputError
from assaymark.judging import judgment, load_rubric, plan_calls, reference_judges
from assaymark.judging import pairs as judge_pairs
from assaymark.judging.pairs import calls
from assaymark.judging.pairs.calls import names
from assaymark.judging.pairs.stimuli import closing, with_other_unit, with_synonym, with_typo
from assaymark.protocol import parse_study

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
        name, [f"The {name} was put at 12 by us.", f"We have put the {name} at 12."],
        f"The {name} was put somewhere by us.", f"Nothing is said of the {len(name)}{name[::-1]} here.",
    )  # fmt: skip


def task(*changes: Callable[[list[Written]], object], name: str = "one") -> str:
    """A task file with five requirements, each changed as asked."""
    found = [requirement(thing) for thing in THINGS]
    for change in changes:
        change(found)
    return f'[[task]]\nname = "{name}"\nquestion = "What now?"\n' + "".join(one.toml() for one in found)


def problems(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        judge_pairs.load_tasks(text, "mine.toml")
    assert caught.value.source == "mine.toml"
    return [str(problem) for problem in caught.value.problems]


def test_the_shipped_tasks_are_ten_different_situations_whose_sentences_do_what_their_field_says():
    (own,) = judge_pairs.load_tasks(task())
    assert (own.names, own.requirements[0].met[1]) == (THINGS, "We have put the stop at 12.")
    found = judge_pairs.finance_tasks()
    assert len(found) == len({one.question for one in found}) == 10
    wordings = [text for one in found for r in one.requirements for text in (*r.met, r.partly, r.neutral)]
    assert len(set(wordings)) == len(wordings)
    for one in found:
        assert len(one.requirements) == 5
        for at, item in enumerate(one.requirements):
            for earned, texts in ((0.0, (item.neutral,)), (0.5, (item.partly,)), (1.0, item.met)):
                expected = tuple(earned if at == other else 0.0 for other in range(5))
                assert {judge_pairs.marks(text, one.names) for text in texts} == {expected}


def change(at: int, field: str, value: object) -> Callable[[list[Written]], object]:
    return lambda found: setattr(found[at], field, value)


@pytest.mark.parametrize(("changed", "where", "what"), [
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
])  # fmt: skip
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


@pytest.mark.parametrize(("text", "what"), [
    ("", "task: is missing"),
    ("task = []", "task: at least one is needed (got 0)"),
    ("[[task]]\nname = 3", "task.0.name"),
    ("[[task", "not TOML"),
    (task().replace("question", "answer"), "task.0.answer: unknown key"),
    (task().replace('"What now?"', '""'), "task.0.question"),
    (task(change(0, "name", "The Stop")), "task.0.requirement.0.name"),
    (task().replace('"States it."', '"a\\tb"'), "task.0.requirement.0.must"),
    (task(name="a b"), "task.0.name"),
])  # fmt: skip
def test_a_file_of_another_form_is_refused(text, what):
    assert any(one.removeprefix(": ").startswith(what) for one in problems(text)), problems(text)


@pytest.mark.parametrize(("text", "expected"), [
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
])  # fmt: skip
def test_what_counts_as_met(text, expected):
    assert judge_pairs.marks(text, ("stop",)) == (expected,)


def test_an_ending_has_exactly_the_length_that_was_asked_for_and_says_nothing_that_could_be_a_value():
    assert calls.sentences("Stop at 8.5 now. Next!") == [
        "Stop at 8.5 now.",
        "Next!",
    ]  # a decimal point ends no sentence
    assert calls.has_value("a 1")
    assert not names("stopgap", "stop")
    assert [len(closing(length).split()) for length in range(200)] == [*range(200)]
    assert closing(-3) == ""
    assert all(len(sentence.split()) == length for length, sentence in calls.CLOSERS.items())
    assert {len(sentence.split()) for sentence in calls.BEFORE_CLOSERS} == {8}
    assert not any(map(calls.has_value, calls.FIXED_SENTENCES))
    assert len(set(calls.FILLERS)) == len(calls.FILLERS)


@pytest.mark.parametrize(("change", "text", "expected"), [
    (with_typo, "The momentum is strong enough.", "The momentum is stornger enough."),
    (with_typo, "Up by 3 bps.", None),
    (with_other_unit, "At 4% it is fine, at 5% too.", "At 4 percent it is fine, at 5% too."),
    (with_other_unit, "At 4 percent.", "At 4 %."),
    (with_other_unit, "At 9 bps.", "At 9 bp."),
    (with_other_unit, "At $1,200.50 each.", "At 1,200.50 dollars each."),
    (with_other_unit, "At 4 tonnes.", None),
    (with_synonym, "It is large.", "It is big."),
    (with_synonym, "It is long.", None),
    (with_typo, "The discount stays.", None),  # a name of a requirement
    (with_synonym, "The large sum.", None),
])  # fmt: skip
def test_changes_that_leave_the_content(change, text, expected):
    found = change(text, ["large sum"] if "sum" in text else ["momentum", "discount"])
    if change is with_typo and expected is not None:
        assert found is not None
        assert found != text
        assert sorted(found) == sorted(text)
        assert "momentum" in found
    else:
        assert found == expected


def test_repeated_tasks_are_tasks_with_other_numbers(tasks):
    found = judge_pairs.repeated_tasks(tasks, 35)
    assert len({one.name for one in found}) == 35
    assert calls.task_problems(found) == []
    first, later = found[0].requirements[0].met[0], found[30].requirements[0].met[0]
    assert first != later
    assert re.sub(r"\d", "#", first) == re.sub(r"\d", "#", later)


def of(pairs, condition, **fields):
    found = [pair for pair in pairs if pair.condition == condition]
    return [pair for pair in found if all(getattr(pair, name) == value for name, value in fields.items())]


def test_the_counts_of_ten_tasks(pairs):
    made = judge_pairs.manifest_of(pairs, 7)
    assert (made.tasks, made.pairs, made.calls) == (10, 450, 900)
    assert made.counts == {
        "ladder": 190, "same_subset": 60, "different_subset": 60, "filler": 50, "vacuum": 60, "graded_vacuum": 30,
    }  # fmt: skip
    assert Counter(pair.delta for pair in of(pairs, "ladder")) == {0.5: 40, 1: 50, 2: 40, 3: 30, 4: 20, 5: 10}
    same = Counter(pair.variant for pair in of(pairs, "same_subset"))
    assert same == {"wording": 20, "order": 20, "formatting": 20}
    assert Counter(pair.variant for pair in of(pairs, "vacuum")) == {"empty": 10, "whitespace": 20, "identical": 30}
    assert Counter(pair.variant for pair in of(pairs, "graded_vacuum")) == {"typo": 10, "unit": 10, "synonym": 10}


def test_one_seed_is_one_manifest_and_a_task_does_not_depend_on_its_neighbours(tasks, pairs):
    again = judge_pairs.build_stimuli(tasks, 7)
    assert again == pairs
    assert judge_pairs.manifest_of(again, 7) == judge_pairs.manifest_of(pairs, 7)
    assert judge_pairs.build_stimuli(tasks[4:5], 7) == tuple(pair for pair in pairs if pair.task == tasks[4].name)
    digests = {judge_pairs.manifest_of(pairs, 7).sha256}
    for seed in (0, 1, 2**40):
        other = judge_pairs.build_stimuli(tasks, seed)
        assert judge_pairs.check(other)["orders"] == 450
        digests.add(judge_pairs.manifest_of(other, seed).sha256)
    assert len(digests) == 4


def test_the_hash_covers_every_field(pairs):
    base = judge_pairs.manifest_of(pairs[:1], 7).sha256
    one = pairs[0]
    other = replace(one.u, text=one.u.text + " ")
    changes = (
        {"id": "x"},
        {"variant": "x"},
        {"condition": "filler"},
        {"delta": 2.0},
        {"better": "u" if one.better == "v" else "v"},
        {"u": other},
        {"v": replace(one.v, met=())},
        {"v": replace(one.v, partly=("cash",))},
        {"orders": ("uv",)},
        {"brief": replace(one.brief, question="What else?")},
    )
    assert all(judge_pairs.manifest_of([replace(one, **change)], 7).sha256 != base for change in changes)
    assert judge_pairs.manifest_of([pairs[1], one], 7).sha256 != judge_pairs.manifest_of([one, pairs[1]], 7).sha256


def test_a_chain_adds_one_requirement_at_a_time(pairs):
    steps = [pair for pair in of(pairs, "ladder") if pair.delta == 1]
    for _, found in itertools.groupby(steps, key=lambda pair: pair.task):
        chain: list[set[str]] = [set()]
        for pair in found:
            better, other = (pair.u, pair.v) if pair.better == "u" else (pair.v, pair.u)
            assert set(other.met) == chain[-1]
            assert set(better.met) > set(other.met)
            chain.append(set(better.met))
        assert [len(level) for level in chain] == [0, 1, 2, 3, 4, 5]


def test_a_half_step_turns_on_the_value_alone(pairs):
    half = [pair for pair in pairs if pair.delta == 0.5]
    assert Counter(pair.variant for pair in half) == {"met over partly": 20, "partly over missing": 20}
    for pair in half:
        u, v = (judge_pairs.marks(text.text, pair.brief.names) for text in (pair.u, pair.v))
        assert sorted(abs(a - b) for a, b in zip(u, v, strict=True)) == [0, 0, 0, 0, 0.5]


def test_primary_texts_of_a_task_have_one_length_and_orders_and_sides_are_drawn(pairs):
    lengths = defaultdict(set)
    for pair in pairs:
        if pair.condition in ("ladder", "same_subset", "different_subset"):
            lengths[pair.task] |= {pair.u.tokens, pair.v.tokens}
    assert {len(found) for found in lengths.values()} == {1}
    first = {pair.brief.names.index((pair.u.met + pair.v.met)[0]) for pair in pairs if pair.variant == "Q1 over Q0"}
    assert len(first) > 1
    assert 60 < Counter(pair.better for pair in of(pairs, "ladder"))["u"] < 130


def test_pairs_of_equal_worth_differ_in_what_their_variant_says(pairs):
    for pair in of(pairs, "same_subset"):
        assert pair.u.met == pair.v.met
        u, v = (text.text.replace("\n- ", "\n").removeprefix("- ").split() for text in (pair.u, pair.v))
        body = [words[: min(len(u), len(v)) - 20] for words in (u, v)]
        if pair.variant == "formatting":
            assert body[0] == body[1]
            assert ("\n" in pair.u.text) != ("\n" in pair.v.text)
        else:
            assert body[0] != body[1]
            assert (Counter(u) == Counter(v)) == (pair.variant == "order")
    for pair in of(pairs, "different_subset"):
        assert len(pair.u.met) == len(pair.v.met) > 0
        shared = set(pair.u.met) & set(pair.v.met)
        assert (not shared) if pair.variant == "disjoint" else len(shared) == len(pair.u.met) - 1
    for pair in of(pairs, "filler"):  # longer, and always v
        assert pair.u.met == pair.v.met
        assert 1.45 < pair.v.tokens / pair.u.tokens < 1.8
    for pair in of(pairs, "vacuum"):
        assert pair.u.text.strip() == pair.v.text.strip()
        assert (pair.u.text.strip() != "") == (pair.variant == "identical")


def test_a_task_with_more_requirements_has_the_same_ladder(tasks):
    extra = judge_pairs.Requirement(
        name="tax", must="States the tax.",
        met=("The tax on a gain would come to 25 percent.", "On a gain the tax would come to 25 percent."),
        partly="The tax on a gain would come to something.", neutral="Forms for it are sent out in the spring.",
    )  # fmt: skip
    wider = tasks[0].model_copy(update={"requirements": (*tasks[0].requirements, extra)})
    pairs = judge_pairs.build_stimuli([wider], 3)
    assert judge_pairs.check(pairs)["orders"] == 45
    assert max(len(pair.u.met) for pair in pairs) == 5


def test_tasks_that_cannot_carry_stimuli_are_refused(tasks):
    short = tasks[0].model_copy(update={"requirements": tasks[0].requirements[:4]})
    for build in (judge_pairs.build_stimuli, judge_pairs.point_stimuli):
        with pytest.raises(InputError, match="at least 5 requirements"):
            build([short], 1)
        with pytest.raises(InputError, match="at least one is needed"):
            build([], 1)


def test_a_task_without_a_unit_has_no_unit_pair():
    text = "\n".join(
        f'[[task.requirement]]\nname = "{name}"\nmust = "x"\n'
        f'met = ["The {name} was put at 12.", "At 12 we put the {name}."]\n'
        f'partly = "The {name} was put at something."\nneutral = "Nothing about the {other} is spoken of."'
        for name, other in zip(("ab", "cd", "ef", "gh", "ij"), "vwxyz", strict=True)
    )
    made = judge_pairs.build_stimuli(judge_pairs.load_tasks(f'[[task]]\nname = "one"\nquestion = "x"\n{text}'), 1)
    assert {pair.variant for pair in of(made, "graded_vacuum")} == {"synonym", "typo"}


def test_stimuli_go_to_a_file_and_back_and_a_file_that_was_touched_is_refused(pairs):
    made = judge_pairs.manifest_of(pairs, 7)
    text = judge_pairs.stimuli_json(pairs, made)
    assert judge_pairs.read_stimuli(text) == (pairs, made)
    assert judge_pairs.stimuli_json(*judge_pairs.read_stimuli(text)) == text
    text = judge_pairs.stimuli_json(pairs[:45], judge_pairs.manifest_of(pairs[:45], 7))
    for touched, what in (
        (text.replace("8,640", "8,641", 1), "not those it was made of"),
        ('"task":"lost"'.join(text.rsplit('"task":"copper-breakout"', 1)), "its situation is not in the file"),
        ("{}", "is missing"),
    ):
        with pytest.raises(InputError, match=what):
            judge_pairs.read_stimuli(touched)


STUDY = parse_study(
    """
name = "points"
seed = 1
[records]
derivations = ["honest", "vacuum", "ladder", "length_matched"]
[[judges]]
name = "reader"
model = "reference/reader"
family = "reference"
args = {noise = 0.0}
"""
)


RUBRIC = load_rubric("v1.0")


def test_two_texts_without_content_six_levels_and_four_with_filler_for_each_task(tasks):
    found = judge_pairs.point_stimuli(tasks, 7)
    assert len(found) == 120
    assert len({one.id for one in found}) == 120
    numbers = {"vacuum": (1, 2), "ladder": range(6), "filler": range(1, 5)}
    names = [f"{tasks[0].name}.point.{kind}.{number}" for kind, all_of in numbers.items() for number in all_of]
    assert [one.id for one in found[:12]] == names
    for one in found:
        assert sum(judge_pairs.marks(one.text, one.brief.names)) == one.level
        assert (not one.text.strip()) == (one.variant == "vacuum")


def test_the_levels_are_those_of_the_pairs_and_filler_meets_nothing_more(tasks, pairs):
    stimuli = judge_pairs.point_stimuli(tasks, 7)
    known = {one.id: one for one in stimuli}
    steps = {(pair.task, pair.variant): pair for pair in pairs if pair.delta == 1}
    longer = {pair.v.text: pair.u.text for pair in pairs if pair.condition == "filler"}
    assert {one.level for one in stimuli if one.variant == "filler"} == {1, 2, 3, 4}
    for one, decision in zip(stimuli, judge_pairs.point_records(stimuli)[0], strict=True):
        kind = "length_matched" if one.variant == "filler" else one.variant
        assert (decision.derivation.kind, decision.derivation.parent) == (kind, one.parent)
        assert (one.parent is None) == (one.variant != "filler")
        if one.variant == "ladder" and one.level:
            pair = steps[one.task, f"Q{one.level} over Q{one.level - 1}"]
            assert one.text == (pair.u if pair.better == "u" else pair.v).text
        if one.variant == "filler":
            parent = known[one.parent]
            assert (parent.variant, parent.level, parent.task) == ("ladder", one.level, one.task)
            assert longer[one.text] == parent.text  # the very pair that passed the gates
            assert judge_pairs.marks(one.text, one.brief.names) == judge_pairs.marks(parent.text, one.brief.names)
            assert one.tokens >= 1.5 * parent.tokens
            rest = one.text
            for filler in calls.FILLERS:
                rest = rest.replace(f"{filler} ", "")
            assert rest == parent.text


def test_they_are_planned_and_graded_like_any_decision(tasks):
    stimuli = judge_pairs.point_stimuli(tasks, 7)
    decisions, contexts = judge_pairs.point_records(stimuli)
    assert len(contexts) == len(tasks)
    planned = plan_calls(decisions, contexts, STUDY, RUBRIC)
    assert [one.trajectory for one in planned] == [one.id for one in stimuli]
    scores = defaultdict(list)
    for one, call in zip(stimuli, planned, strict=True):
        user = call.call.messages[1].text
        assert one.text in user
        assert one.brief.question in user
        assert "[agent" not in user
        assert not any(secret in user for secret in (one.id, one.task, "vacuum", "ladder", "filler"))
        reply = asyncio.run(reference_judges()[call.call.model].complete(call.call))
        found = judgment(call, reply, RUBRIC)
        assert found.status == "ok"
        scores[one.variant, one.level].append(np.mean(list(found.scores.values())))
    means = [float(np.mean(scores["ladder", level])) for level in range(6)]
    assert means == sorted(means)
    assert np.mean(scores["vacuum", 0]) < means[0]
