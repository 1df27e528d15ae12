"""Stimuli: tasks, pairs whose difference is known, and the same texts one at a time."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest

from assaymark.errors import InputError
from assaymark.judging import judgment, load_rubric, plan_calls, reference_judges
from assaymark.judging import pairs as judge_pairs
from assaymark.judging.pairs import calls
from assaymark.judging.pairs.calls import is_named
from assaymark.judging.pairs.stimuli import neutral_ending, with_other_unit, with_synonym, with_typo
from assaymark.protocol import parse_study

THINGS = ("stop", "cash", "horizon", "size", "carry")


def task(at=0, field="name", value="stop", name="one", things=THINGS):
    """A task file with so many requirements; one field of one of them is another."""
    text = f'[[task]]\nname = "{name}"\nquestion = "What now?"\n'
    for number, thing in enumerate(things):
        fields = {
            "name": thing, "must": "States it.",
            "met": [f"The {thing} was put at 12 by us.", f"We have put the {thing} at 12."],
            "partly": f"The {thing} was put somewhere by us.",
            "neutral": f"Nothing is said of the {len(thing)}{thing[::-1]} here.",
        } | ({field: value} if number == at else {})  # fmt: skip
        text += "[[task.requirement]]\n" + "".join(f"{key} = {json.dumps(kept)}\n" for key, kept in fields.items())
    return text


def problems(text):
    with pytest.raises(InputError) as caught:
        judge_pairs.load_tasks(text, "mine.toml")
    assert caught.value.source == "mine.toml"
    return [str(problem) for problem in caught.value.problems]


def test_the_shipped_tasks_are_ten_different_situations_whose_sentences_do_what_their_field_says(tasks):
    (own,) = judge_pairs.load_tasks(task())
    assert (own.names, own.requirements[0].met[1]) == (THINGS, "We have put the stop at 12.")
    assert len(tasks) == len({one.question for one in tasks}) == 10
    wordings = [text for one in tasks for r in one.requirements for text in (*r.met, r.partly, r.neutral)]
    assert len(set(wordings)) == len(wordings)
    for one in tasks:
        assert len(one.requirements) == 5
        for at, item in enumerate(one.requirements):
            for earned, texts in ((0.0, (item.neutral,)), (0.5, (item.partly,)), (1.0, item.met)):
                expected = tuple(earned if at == other else 0.0 for other in range(5))
                assert {judge_pairs.marks(text, one.names) for text in texts} == {expected}


@pytest.mark.parametrize(("changed", "where", "what"), [
    ((0, "partly", "The stop was put at 12 by us."), "stop", "must hold no value"),
    ((0, "met", ["The stop was put there by us.", "We put the stop at 12."]), "stop", "must hold a value"),
    ((1, "met", ["It was put at 12 by us.", "We put the cash at 12."]), "cash", "must name 'cash'"),
    ((1, "neutral", "Nothing is said of the cash here."), "cash", "must not name 'cash'"),
    ((2, "partly", "The horizon and the size were put."), "horizon", "another requirement, 'size'"),
    ((2, "partly", "The horizon. It was put somewhere."), "horizon", "one sentence with a stop"),
    ((3, "partly", "The size was put somewhere by us"), "size", "one sentence with a stop"),
    ((3, "neutral", "No."), "size", "0.6 to 1.6 times"),
    ((4, "met", ["We have put the carry at 12."]), "carry", "two or more wordings"),
    ((4, "met", ["We have put the carry at 12."] * 2), "carry", "two or more wordings"),
    ((4, "met", []), "carry", "all different (got 0, 0"),
    ((4, "neutral", "Nothing is said of the 4pots here."), "", "share a neutral sentence"),
    ((1, "name", "stop"), "", "two requirements are called 'stop'"),
    ((1, "name", "stop loss"), "", "also names 'stop'"), ((1, "name", "care"), "", "lengthen a text"),
])  # fmt: skip
def test_what_a_sentence_does_not_do_is_named(changed, where, what):
    place = f"task one, {where}: " if where else "task one: "
    found = problems(task(*changed))
    assert any(one.startswith(place) and what in one for one in found), found


def test_all_problems_come_at_once_and_a_file_of_another_form_is_refused():
    found = problems(task(0, "partly", "No name here at all.") + task(1, "neutral", "The cash is short."))
    assert {one.partition(":")[0] for one in found} >= {"task one", "task one, stop", "task one, cash"}
    assert sum("another task has this name" in one for one in found) == 1
    for text, what in (
        ("", "task: is missing"), ("task = []", "task: at least one is needed (got 0)"),
        ("[[task]]\nname = 3", "task.0.name"), ("[[task", "not TOML"), (task(name="a b"), "task.0.name"),
        (task().replace("question", "answer"), "task.0.answer: unknown key"),
        (task().replace('"What now?"', '""'), "task.0.question"), (task(value="The Stop"), "task.0.requirement.0.name"),
        (task(0, "must", "a\tb"), "task.0.requirement.0.must"),
        (task(things=THINGS[:4]), "task one: at least 5 requirements are needed (got 4)"),
    ):  # fmt: skip
        assert any(one.removeprefix(": ").startswith(what) for one in problems(text)), problems(text)


def test_what_counts_as_met():
    for text, expected in (
        ("The stop is 12.", 1.0), ("- **Stop**: 12", 1.0), ("The STOP is near.", 0.5), ("We stopped at 12.", 0.0),
        ("The stop is near. The price is 12.", 0.5), ("The stop is near.\n12", 0.5), (" \n\t", 0.0), ("12", 0.0),
        ('The stop is "when it rains".', 1.0), ("The stop is “when it rains”.", 1.0), ("", 0.0),
        ("A non-stop flight at 12.", 1.0), ("The stop is near. The stop is 8.5!", 1.0),
    ):  # fmt: skip
        assert judge_pairs.marks(text, ("stop",)) == (expected,), text
    assert calls.split_sentences("Stop at 8.5 now. Next!") == ["Stop at 8.5 now.", "Next!"]  # a decimal point ends none
    assert calls.has_value("a 1")
    assert not is_named("stopgap", "stop")


def test_changes_that_leave_the_content_and_endings_of_exactly_the_length_that_was_asked_for():
    assert [len(neutral_ending(length).split()) for length in range(200)] == [*range(200)]
    assert neutral_ending(-3) == ""
    assert all(len(sentence.split()) == length for length, sentence in calls.CLOSERS.items())
    assert {len(sentence.split()) for sentence in calls.BEFORE_CLOSERS} == {8}
    assert not any(map(calls.has_value, calls.FIXED_SENTENCES))
    assert len(set(calls.FILLERS)) == len(calls.FILLERS)
    for change, text, expected in (
        (with_typo, "Up by 3 bps.", None), (with_typo, "The discount stays.", None),  # a name of a requirement
        (with_other_unit, "At 4% it is fine, at 5% too.", "At 4 percent it is fine, at 5% too."),
        (with_other_unit, "At 4 percent.", "At 4 %."), (with_other_unit, "At 9 bps.", "At 9 bp."),
        (with_other_unit, "At $1,200.50 each.", "At 1,200.50 dollars each."), (with_other_unit, "At 4 tonnes.", None),
        (with_synonym, "It is large.", "It is big."), (with_synonym, "It is long.", None),
        (with_synonym, "The large sum.", None),
    ):  # fmt: skip
        assert change(text, ["large sum"] if "sum" in text else ["momentum", "discount"]) == expected, text
    text = "The momentum is strong enough."
    found = with_typo(text, ["momentum", "discount"])
    assert found != text
    assert (sorted(found), "momentum" in found) == (sorted(text), True)


def of(pairs, condition, **fields):
    found = [pair for pair in pairs if pair.condition == condition]
    return [pair for pair in found if all(getattr(pair, name) == value for name, value in fields.items())]


def test_the_counts_of_ten_tasks_and_one_seed_is_one_manifest(tasks, pairs):
    made = judge_pairs.manifest_of(pairs, 7)
    assert (made.tasks, made.pairs, made.calls) == (10, 450, 900)
    assert made.counts == {
        "ladder": 190, "same_subset": 60, "different_subset": 60, "filler": 50, "vacuum": 60, "graded_vacuum": 30,
    }  # fmt: skip
    assert Counter(pair.delta for pair in of(pairs, "ladder")) == {0.5: 40, 1: 50, 2: 40, 3: 30, 4: 20, 5: 10}
    variants = {
        condition: Counter(pair.variant for pair in of(pairs, condition))
        for condition in ("same_subset", "vacuum", "graded_vacuum")
    }
    assert variants == {
        "same_subset": {"wording": 20, "order": 20, "formatting": 20},
        "vacuum": {"empty": 10, "whitespace": 20, "identical": 30},
        "graded_vacuum": {"typo": 10, "unit": 10, "synonym": 10},
    }
    again = judge_pairs.build_stimuli(tasks, 7)
    assert (again, judge_pairs.manifest_of(again, 7)) == (pairs, made)
    # a task does not depend on its neighbours
    assert judge_pairs.build_stimuli(tasks[4:5], 7) == tuple(pair for pair in pairs if pair.task == tasks[4].name)
    digests = {made.sha256}
    for seed in (0, 1, 2**40):
        other = judge_pairs.build_stimuli(tasks, seed)
        assert judge_pairs.check(other)["orders"] == 450
        digests.add(judge_pairs.manifest_of(other, seed).sha256)
    assert len(digests) == 4


def test_the_hash_covers_every_field_and_the_file_has_it_and_every_text(pairs):
    one, made = pairs[0], judge_pairs.manifest_of(pairs, 7)
    base = judge_pairs.manifest_of(pairs[:1], 7).sha256
    for change in (
        {"id": "x"}, {"variant": "x"}, {"condition": "filler"}, {"delta": 2.0}, {"orders": ("uv",)},
        {"better": "u" if one.better == "v" else "v"}, {"u": replace(one.u, text=one.u.text + " ")},
        {"v": replace(one.v, met=())}, {"v": replace(one.v, partly=("cash",))},
        {"brief": replace(one.brief, question="What else?")},
    ):  # fmt: skip
        assert judge_pairs.manifest_of([replace(one, **change)], 7).sha256 != base, change
    assert judge_pairs.manifest_of([pairs[1], one], 7).sha256 != judge_pairs.manifest_of([one, pairs[1]], 7).sha256
    stored = json.loads(judge_pairs.stimuli_json(pairs, made))
    texts = [(one.id, one.task, one.u.text, one.v.text) for one in pairs]
    assert [(one["id"], one["task"], one["u"]["text"], one["v"]["text"]) for one in stored["pairs"]] == texts
    assert stored["manifest"]["sha256"] == made.sha256


def test_a_chain_adds_one_requirement_at_a_time_in_texts_of_one_length(pairs):
    steps = [pair for pair in of(pairs, "ladder") if pair.delta == 1]
    for _, found in itertools.groupby(steps, key=lambda pair: pair.task):
        chain: list[set[str]] = [set()]
        for pair in found:
            better, other = (pair.u, pair.v) if pair.better == "u" else (pair.v, pair.u)
            assert set(other.met) == chain[-1]
            assert set(better.met) > set(other.met)
            chain.append(set(better.met))
        assert [len(level) for level in chain] == [0, 1, 2, 3, 4, 5]
    half = [pair for pair in pairs if pair.delta == 0.5]
    assert Counter(pair.variant for pair in half) == {"met over partly": 20, "partly over missing": 20}
    for pair in half:
        u, v = (judge_pairs.marks(text.text, pair.brief.names) for text in (pair.u, pair.v))
        assert sorted(abs(a - b) for a, b in zip(u, v, strict=True)) == [0, 0, 0, 0, 0.5]
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
        one, other = (words[: min(len(u), len(v)) - 20] for words in (u, v))
        if pair.variant == "formatting":
            assert one == other
            assert ("\n" in pair.u.text) != ("\n" in pair.v.text)
        else:
            assert one != other
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


def test_tasks_with_more_requirements_fewer_of_them_or_no_unit(tasks):
    extra = judge_pairs.Requirement(
        name="tax", must="States the tax.", partly="The tax on a gain would come to something.",
        met=("The tax on a gain would come to 25 percent.", "On a gain the tax would come to 25 percent."),
        neutral="Forms for it are sent out in the spring.",
    )  # fmt: skip
    wider = tasks[0].model_copy(update={"requirements": (*tasks[0].requirements, extra)})
    pairs = judge_pairs.build_stimuli([wider], 3)  # the same ladder
    assert judge_pairs.check(pairs)["orders"] == 45
    assert max(len(pair.u.met) for pair in pairs) == 5
    short = tasks[0].model_copy(update={"requirements": tasks[0].requirements[:4]})
    for build in (judge_pairs.build_stimuli, judge_pairs.point_stimuli):
        for some, what in (([short], "at least 5 requirements"), ([], "at least one is needed")):
            with pytest.raises(InputError, match=what):
                build(some, 1)
    made = judge_pairs.build_stimuli(judge_pairs.load_tasks(task()), 1)
    assert {pair.variant for pair in of(made, "graded_vacuum")} == {"synonym", "typo"}


STUDY = parse_study("""
name = "points"
seed = 1
records.derivations = ["honest", "vacuum", "ladder", "length_matched"]
judges = [{name = "reader", model = "reference/reader", family = "reference", args = {noise = 0.0}}]
""")


def test_points_are_two_texts_without_content_six_levels_and_four_with_filler_for_each_task(tasks, pairs):
    stimuli = judge_pairs.point_stimuli(tasks, 7)
    known = {one.id: one for one in stimuli}
    assert len(stimuli) == len(known) == 120
    numbers = {"vacuum": (1, 2), "ladder": range(6), "filler": range(1, 5)}
    names = [f"{tasks[0].name}.point.{kind}.{number}" for kind, all_of in numbers.items() for number in all_of]
    assert [one.id for one in stimuli[:12]] == names
    steps = {(pair.task, pair.variant): pair for pair in pairs if pair.delta == 1}
    longer = {pair.v.text: pair.u.text for pair in pairs if pair.condition == "filler"}
    assert {one.level for one in stimuli if one.variant == "filler"} == {1, 2, 3, 4}
    for one, decision in zip(stimuli, judge_pairs.point_records(stimuli)[0], strict=True):
        assert sum(judge_pairs.marks(one.text, one.brief.names)) == one.level
        assert (not one.text.strip()) == (one.variant == "vacuum")
        kind = "length_matched" if one.variant == "filler" else one.variant
        assert (decision.derivation.kind, decision.derivation.parent) == (kind, one.parent)
        assert (one.parent is None) == (one.variant != "filler")
        if one.variant == "ladder" and one.level:  # the levels are those of the pairs
            pair = steps[one.task, f"Q{one.level} over Q{one.level - 1}"]
            assert one.text == (pair.u if pair.better == "u" else pair.v).text
        if one.variant == "filler":  # it meets nothing more
            parent = known[one.parent]
            assert (parent.variant, parent.level, parent.task) == ("ladder", one.level, one.task)
            assert longer[one.text] == parent.text  # the very pair that passed the gates
            assert judge_pairs.marks(one.text, one.brief.names) == judge_pairs.marks(parent.text, one.brief.names)
            assert one.tokens >= 1.5 * parent.tokens
            rest = one.text
            for filler in calls.FILLERS:
                rest = rest.replace(f"{filler} ", "")
            assert rest == parent.text


def test_points_are_planned_and_graded_like_any_decision(tasks):
    stimuli, rubric = judge_pairs.point_stimuli(tasks, 7), load_rubric("v1.0")
    decisions, contexts = judge_pairs.point_records(stimuli)
    assert len(contexts) == len(tasks)
    planned = plan_calls(decisions, contexts, STUDY, rubric)
    assert [one.about for one in planned] == [one.id for one in stimuli]
    scores = defaultdict(list)
    for one, call in zip(stimuli, planned, strict=True):
        user = call.call.messages[1].text
        assert one.text in user
        assert one.brief.question in user
        assert not any(secret in user for secret in (one.id, one.task, "vacuum", "ladder", "filler", "[agent"))
        found = judgment(call, asyncio.run(reference_judges()[call.call.model].complete(call.call)))
        assert found.status == "ok"
        scores[one.variant, one.level].append(np.mean(list(found.scores.values())))
    means = [float(np.mean(scores["ladder", level])) for level in range(6)]
    assert means == sorted(means)
    assert np.mean(scores["vacuum", 0]) < means[0]
