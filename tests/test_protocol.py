from __future__ import annotations

import pytest

from assaymark.errors import InputError
from assaymark.protocol import parse_study, plan_hash

MINIMAL = """
name = "x"
seed = 7
[[judges]]
name = "a"
model = "reference/auditor"
family = "fa"
"""


def test_the_defaults_are_the_sources():
    study = parse_study(MINIMAL)
    assert (study.gates.publish, study.gates.halt) == (0.4, 0.2)
    assert (study.stability.rho, study.gates.repetition_stability, study.inference.alpha) == (0.9, 0.90, 0.05)
    assert study.families == ("fa",)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("gates.publsh = 0.5", "gates.publsh"),
        ("gates.publish = 0.1", "halt must not exceed publish"),
        ("gates.publish = nan", "gates.publish"),
        ("inference.alpha = 0.0", "inference.alpha"),
        ("seed = -1", "seed"),
        ("nonsense = true", "nonsense"),
        ("rubric.weights.a = -1.0", "rubric.weights.a"),
    ],
)
def test_a_wrong_field_is_named(change, told):
    text = change + "\n" + (MINIMAL if not change.startswith("seed") else MINIMAL.replace("seed = 7\n", ""))
    with pytest.raises(InputError) as caught:
        parse_study(text, source="s.toml")
    assert str(caught.value).startswith("s.toml: ")
    assert told in str(caught.value)


def test_all_problems_of_a_study_file_at_once():
    with pytest.raises(InputError) as caught:
        parse_study('name = "x"\nseed = "7"\n[gates]\npublsh = 0.5\n[[judges]]\nname = "a"\ntrials = 0\n')
    assert len(caught.value.problems) == 5  # seed, publsh, trials, and two missing fields of the judge


def test_a_judge_named_twice_is_refused():
    with pytest.raises(InputError, match="a name of its own"):
        parse_study(MINIMAL + '[[judges]]\nname = "a"\nmodel = "reference/reader"\nfamily = "fb"\n')


def test_a_judge_cannot_take_the_name_of_the_aggregate():
    with pytest.raises(InputError, match="not available"):
        parse_study(MINIMAL.replace('name = "a"', 'name = "aggregate"'))


def test_what_is_not_toml_is_refused():
    with pytest.raises(InputError, match="not TOML: Invalid value"):
        parse_study("name = ")


def test_a_number_too_long_to_read_is_refused():
    with pytest.raises(InputError, match="a number with too many digits"):
        parse_study("seed = " + "9" * 5000)


def test_equal_plans_have_equal_hashes_and_changed_ones_do_not():
    texts, tables = {"rubric": "r"}, {"decisions": "d"}
    base = plan_hash(parse_study(MINIMAL), texts, tables)
    assert base == plan_hash(parse_study("# a comment\n" + MINIMAL.replace("7", "0x7")), texts, tables)
    assert base != plan_hash(parse_study(MINIMAL.replace("7", "8")), texts, tables)
    assert base != plan_hash(parse_study(MINIMAL), {"rubric": "r "}, tables)
    assert base != plan_hash(parse_study(MINIMAL), texts, {"decisions": "e"})


def test_how_calls_are_made_is_no_part_of_the_plan():
    assert plan_hash(parse_study(MINIMAL), {}) == plan_hash(parse_study("engine.concurrency = 3\n" + MINIMAL), {})
