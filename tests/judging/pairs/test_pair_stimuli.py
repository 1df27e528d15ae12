"""Stimuli: how many, how long, what differs, and that a seed says all of it."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import replace

import pytest

from assaymark.errors import InputError
from assaymark.judging.pairs import (
    Requirement,
    build_stimuli,
    check,
    load_tasks,
    manifest_of,
    marks,
    read_stimuli,
    stimuli_json,
)


def of(pairs, condition, **fields):
    found = [pair for pair in pairs if pair.condition == condition]
    return [pair for pair in found if all(getattr(pair, name) == value for name, value in fields.items())]


def test_the_counts_of_ten_tasks(pairs):
    made = manifest_of(pairs, 7)
    assert (made.tasks, made.pairs, made.calls) == (10, 450, 900)
    assert made.counts == {
        "ladder": 190,
        "same_subset": 60,
        "different_subset": 60,
        "filler": 50,
        "vacuum": 60,
        "graded_vacuum": 30,
    }
    assert Counter(pair.delta for pair in of(pairs, "ladder")) == {0.5: 40, 1: 50, 2: 40, 3: 30, 4: 20, 5: 10}
    same = Counter(pair.variant for pair in of(pairs, "same_subset"))
    assert same == {"wording": 20, "order": 20, "formatting": 20}
    assert Counter(pair.variant for pair in of(pairs, "vacuum")) == {"empty": 10, "whitespace": 20, "identical": 30}
    assert Counter(pair.variant for pair in of(pairs, "graded_vacuum")) == {"typo": 10, "unit": 10, "synonym": 10}


def test_one_seed_is_one_manifest(tasks, pairs):
    again = build_stimuli(tasks, 7)
    assert again == pairs
    assert manifest_of(again, 7) == manifest_of(pairs, 7)
    assert manifest_of(build_stimuli(tasks, 8), 8).sha256 != manifest_of(pairs, 7).sha256


def test_a_task_does_not_depend_on_its_neighbours(tasks, pairs):
    alone = build_stimuli(tasks[4:5], 7)
    assert alone == tuple(pair for pair in pairs if pair.task == tasks[4].name)


@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_any_seed_passes_the_gates(tasks, seed):
    assert check(build_stimuli(tasks, seed)).pairs == 450


def test_the_hash_covers_every_field(pairs):
    base = manifest_of(pairs[:1], 7).sha256
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
    assert all(manifest_of([replace(one, **change)], 7).sha256 != base for change in changes)
    assert manifest_of([pairs[1], one], 7).sha256 != manifest_of([one, pairs[1]], 7).sha256


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


def test_orders_of_requirements_differ_between_tasks(pairs):
    first = {pair.brief.names.index((pair.u.met + pair.v.met)[0]) for pair in pairs if pair.variant == "Q1 over Q0"}
    assert len(first) > 1


def test_a_half_step_turns_on_the_value_alone(pairs):
    half = [pair for pair in pairs if pair.delta == 0.5]
    assert Counter(pair.variant for pair in half) == {"met over partly": 20, "partly over missing": 20}
    for pair in half:
        u, v = (marks(text.text, pair.brief.names) for text in (pair.u, pair.v))
        assert sorted(abs(a - b) for a, b in zip(u, v, strict=True)) == [0, 0, 0, 0, 0.5]


def test_primary_texts_of_a_task_have_one_length(pairs):
    lengths = defaultdict(set)
    for pair in pairs:
        if pair.condition in ("ladder", "same_subset", "different_subset"):
            lengths[pair.task] |= {pair.u.tokens, pair.v.tokens}
    assert {len(found) for found in lengths.values()} == {1}


def test_surface_pairs_differ_in_what_their_variant_says(pairs):
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


def test_different_subsets_are_of_equal_number(pairs):
    for pair in of(pairs, "different_subset"):
        assert len(pair.u.met) == len(pair.v.met) > 0
        shared = set(pair.u.met) & set(pair.v.met)
        assert (not shared) if pair.variant == "disjoint" else len(shared) == len(pair.u.met) - 1


def test_filler_is_longer_and_always_v(pairs):
    for pair in of(pairs, "filler"):
        assert pair.u.met == pair.v.met
        assert 1.45 < pair.v.tokens / pair.u.tokens < 1.8


def test_vacuum_pairs_have_no_content_to_tell_apart(pairs):
    for pair in of(pairs, "vacuum"):
        assert pair.u.text.strip() == pair.v.text.strip()
        assert (pair.u.text.strip() != "") == (pair.variant == "identical")


def test_which_text_is_called_u_is_drawn(pairs):
    better = Counter(pair.better for pair in of(pairs, "ladder"))
    assert 60 < better["u"] < 130


def test_a_task_with_more_requirements_has_the_same_ladder(tasks):
    extra = Requirement(
        name="tax",
        must="States the tax.",
        met=("The tax on a gain would come to 25 percent.", "On a gain the tax would come to 25 percent."),
        partly="The tax on a gain would come to something.",
        neutral="Forms for it are sent out in the spring.",
    )
    wider = tasks[0].model_copy(update={"requirements": (*tasks[0].requirements, extra)})
    pairs = build_stimuli([wider], 3)
    assert check(pairs).pairs == 45
    assert max(len(pair.u.met) for pair in pairs) == 5


def test_tasks_that_cannot_carry_stimuli_are_refused(tasks):
    short = tasks[0].model_copy(update={"requirements": tasks[0].requirements[:4]})
    with pytest.raises(InputError, match="at least 5 requirements"):
        build_stimuli([short], 1)
    with pytest.raises(InputError, match="at least one is needed"):
        build_stimuli([], 1)


def test_a_task_without_a_unit_has_no_unit_pair():
    text = "\n".join(
        f'[[task.requirement]]\nname = "{name}"\nmust = "x"\n'
        f'met = ["The {name} was put at 12.", "At 12 we put the {name}."]\n'
        f'partly = "The {name} was put at something."\nneutral = "Nothing about the {other} is spoken of."'
        for name, other in zip(("ab", "cd", "ef", "gh", "ij"), "vwxyz", strict=True)
    )
    made = build_stimuli(load_tasks(f'[[task]]\nname = "one"\nquestion = "x"\n{text}'), 1)
    assert {pair.variant for pair in of(made, "graded_vacuum")} == {"synonym", "typo"}


# --- files ------------------------------------------------------------------------------------------------------------


def test_stimuli_go_to_a_file_and_back(pairs):
    made = manifest_of(pairs, 7)
    text = stimuli_json(pairs, made)
    assert read_stimuli(text) == (pairs, made)
    assert stimuli_json(*read_stimuli(text)) == text


def test_a_file_that_was_touched_is_refused(pairs):
    text = stimuli_json(pairs[:45], manifest_of(pairs[:45], 7))
    with pytest.raises(InputError, match="not those it was made of"):
        read_stimuli(text.replace("8,640", "8,641", 1))
    with pytest.raises(InputError, match="its situation is not in the file"):
        read_stimuli('"task":"lost"'.join(text.rsplit('"task":"copper-breakout"', 1)))
    with pytest.raises(InputError):
        read_stimuli("{}")
