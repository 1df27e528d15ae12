"""Gates: every planted violation is caught, each by its own gate, all at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assaymark.errors import InputError
from assaymark.judging.pairs import GATES, check
from assaymark.judging.pairs import calls as module


@pytest.fixture
def by(pairs):
    """The first pair of a condition."""
    return lambda condition: next(pair for pair in pairs if pair.condition == condition)


def refused(*pairs):
    with pytest.raises(InputError) as caught:
        check(pairs)
    return [str(problem) for problem in caught.value.problems]


def longer(text, tokens):
    return replace(text, text=f"{text.text} {'and so on ' * tokens}")


def test_what_was_built_passes(pairs):
    report = check(pairs)
    assert report.pairs == 450
    assert report.checked == {"dominance": 450, "length": 390, "leakage": 450, "orders": 450, "duplicates": 450}
    assert report.words == GATES


@pytest.mark.parametrize(
    ("condition", "changed", "gate", "what"),
    [
        ("ladder", lambda p: {"better": "u" if p.better == "v" else "v"}, "dominance", "does not meet everything"),
        ("ladder", lambda _: {"delta": 2.0}, "dominance", "the difference is 1 requirements, not 2"),
        ("ladder", lambda _: {"better": None}, "dominance", "needs a better text"),
        ("ladder", lambda _: {"delta": 0.0}, "dominance", "needs a better text"),
        ("ladder", lambda p: {"u": replace(p.u, met=p.brief.names)}, "dominance", "u does not meet what it is said"),
        ("ladder", lambda p: {"v": replace(p.v, text=p.u.text)}, "dominance", "v does not meet what it is said"),
        ("ladder", lambda p: {"u": longer(p.u, 5)}, "length", "more than 5 % apart"),
        ("graded_vacuum", lambda p: {"u": longer(p.u, 5)}, "length", "more than 5 % apart"),
        ("same_subset", lambda p: {"v": p.u}, "dominance", "must differ"),
        ("same_subset", lambda _: {"better": "u"}, "dominance", "neither text can be better"),
        ("same_subset", lambda _: {"condition": "different_subset"}, "dominance", "equally many different"),
        ("different_subset", lambda _: {"condition": "same_subset"}, "dominance", "must meet the same"),
        ("vacuum", lambda p: {"v": longer(p.v, 1)}, "dominance", "must not differ"),
        ("filler", lambda p: {"v": replace(p.u, text=f"{p.u.text} Oh.")}, "length", "longer by a fifth"),
        ("filler", lambda p: {"u": p.v, "v": p.u}, "length", "longer by a fifth"),
        ("ladder", lambda _: {"orders": ("uv",)}, "orders", "both orders once (got uv)"),
        ("ladder", lambda _: {"orders": ("uv", "uv")}, "orders", "both orders once"),
        ("ladder", lambda _: {"orders": ()}, "orders", "got none"),
        ("filler", lambda p: {"v": replace(p.v, text=f"{p.v.text} ({p.id})")}, "leakage", "v tells about the pair"),
        ("filler", lambda p: {"v": replace(p.v, text=f"{p.v.text} level: 3")}, "leakage", "got 'level: 3'"),
        ("filler", lambda p: {"brief": replace(p.brief, question="delta=2, or not?")}, "leakage", "the task tells"),
    ],
)
def test_a_violation_is_caught_by_its_gate(by, condition, changed, gate, what):
    pair = by(condition)
    found = refused(replace(pair, **changed(pair)))
    assert any(one.startswith(f"pair {pair.id}: {gate}: ") and what in one for one in found), found


def test_a_task_has_one_length(pairs):
    mine = [pair for pair in pairs if pair.task == pairs[0].task and pair.condition == "ladder"]
    stretched = [
        replace(pair, u=longer(pair.u, 3), v=longer(pair.v, 3)) if pair.delta == 0.5 else pair for pair in mine
    ]
    assert any("its texts have 105 to 114 tokens" in one for one in refused(*stretched))


def test_duplicates_are_caught(by):
    pair = by("ladder")
    turned = replace(pair, id="other", u=pair.v, v=pair.u, better="u" if pair.better == "v" else "v")
    assert refused(pair, turned) == [f"pair other: duplicates: has the same two texts as {pair.id}"]
    assert any("another pair has this id" in one for one in refused(pair, pair))


def test_all_problems_come_at_once(by):
    ladder, filler = by("ladder"), by("filler")
    found = refused(replace(ladder, delta=3.0, orders=("vu",)), replace(filler, orders=("uv",)))
    assert len(found) == 3


def test_nothing_is_no_set_of_stimuli():
    assert refused() == ["at least one pair is needed (got 0)"]


def test_a_renderer_that_leaks_is_caught(by, monkeypatch):
    honest = module.pair_texts
    monkeypatch.setattr(module, "pair_texts", lambda pair, *rest: (*honest(pair, *rest), pair.condition))
    assert sum("depends on more than the texts" in one for one in refused(by("ladder"))) == 4
